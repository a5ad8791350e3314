"""Heartbeats for a keeper of leases, which asks for them from a thread of its own: see keeper.hpp."""

from libc.stdint cimport int64_t
from libcpp cimport bool

from command cimport EXTEND
from convert cimport command_of
from keeper cimport RENEWED_COMPLETED, RENEWED_FAILED, RENEWED_KEPT, RENEWED_LOST, Renewal, Renewed
from keys cimport COMPLETED
from move cimport Move, move_jobs
from outcome cimport CODE_CLOSED, CODE_FORKED, CODE_LEASE_CONFLICT, CODE_NOT_FOUND, Fault, List, Outcome
from record cimport View
from store cimport Store, view_row


cdef inline bool renew(void* to, Renewal* renewals, size_t count, int64_t now_us) noexcept nogil:
    """Extend leases by their own ttls in one write. False when the store is closed."""
    cdef Store* store = <Store*>to
    cdef List[Move] moves
    cdef List[Outcome] out
    cdef Fault fault
    cdef size_t i
    moves.resize(count)
    for i in range(count):
        moves.at(i).scope = renewals[i].scope
        moves.at(i).job_id = renewals[i].job_id
        moves.at(i).known_key = renewals[i].known_key
        moves.at(i).command = command_of(EXTEND)
        moves.at(i).command.worker_id = renewals[i].worker_id
        moves.at(i).command.lease_generation = renewals[i].lease_generation
    store.take_turn()
    fault = move_jobs(store, moves.at(0), count, False, now_us, &out)
    store.give_turn_back()
    if fault.ok():
        for i in range(count):
            renewals[i].renewed = _renewed(out.at(i), &renewals[i])
    return fault.code != CODE_CLOSED and fault.code != CODE_FORKED


cdef inline Renewed _renewed(Outcome* extended, Renewal* renewal) noexcept nogil:
    cdef View job
    cdef Fault* fault = &extended.fault
    if fault.code == CODE_NOT_FOUND:
        return RENEWED_LOST
    if fault.code == CODE_LEASE_CONFLICT:
        # Completed under the very lease that was to be renewed: by its holder, then.
        if fault.state == COMPLETED and fault.held == renewal.lease_generation:
            return RENEWED_COMPLETED
        return RENEWED_LOST
    if not fault.ok() or not view_row(extended.row.key(), extended.row.value(), &job).ok():
        return RENEWED_FAILED
    renewal.deadline_us = job.lease_deadline
    renewal.ttl_us = job.lease_ttl_us
    return RENEWED_KEPT


cdef inline int64_t last_seen_of(void* store) noexcept nogil:
    """The latest time that the store has seen."""
    return <int64_t>(<Store*>store).last_seen_us()
