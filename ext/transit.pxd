"""One job through one transition: its row in, its next row out, both in the batch. For verbs that hold its claim."""

from libc.stdint cimport int64_t

from backoff cimport Policy
from batch cimport drop_expiry, put_expiry, put_moved_job
from command cimport APPLIED, LEASE_CONFLICT, Command, Step
from keys cimport DEAD, LEASED, PENDING, key_priority
from outcome cimport CODE_INVALID_TRANSITION, CODE_LEASE_CONFLICT, Fault, Outcome, fault_refused
from record cimport View
from rocksdb cimport WriteBatch
from row cimport Row, encode_row
from store cimport Store, policy_for, view_row
from transitions cimport step


cdef inline Fault transit(
    Store* store, const Row& row, const Command* command, int64_t now_us, WriteBatch* batch, Outcome* moved
) noexcept nogil:
    """Apply a command to a row. On a fault `moved` and the batch are left as they are.

    CODE_INVALID_TRANSITION also stands for "not due": no verb that a user calls can be refused for that.
    """
    cdef View job
    cdef Fault fault = view_row(row.key(), row.value(), &job)
    if fault.ok():
        fault = transit_viewed(store, row, &job, command, now_us, batch, moved)
    return fault


cdef inline Fault transit_viewed(
    Store* store,
    const Row& row,
    const View* job,
    const Command* command,
    int64_t now_us,
    WriteBatch* batch,
    Outcome* moved,
) noexcept nogil:
    """The same for a row that has been taken apart already."""
    cdef View after
    cdef Step made
    cdef Policy policy
    cdef int refusal
    policy_for(store, job.kind, &policy)
    refusal = step(job, command, now_us, &policy, &after, &made)
    if refusal != APPLIED:
        return fault_refused(
            CODE_LEASE_CONFLICT if refusal == LEASE_CONFLICT else CODE_INVALID_TRANSITION,
            job.lease_generation,
            job.state,
        )
    moved.row = encode_row(row.key(), after, &made.event)
    moved.due_us = after.lease_deadline if after.state == LEASED else after.not_before
    moved.is_written = True
    if key_priority(row.key()) != after.priority:
        moved.before = row
    put_moved_job(store, batch, row, moved.row)
    if job.expires_at >= 0 and job.state == DEAD and after.state == PENDING:
        # The row of a job that was dead at its time may be gone; that of one that expires no more has to go.
        if after.expires_at >= 0:
            put_expiry(store, batch, after.expires_at, row.job_id())
        else:
            drop_expiry(store, batch, job.expires_at, row.job_id())
    return Fault()
