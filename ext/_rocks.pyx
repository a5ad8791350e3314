"""The Python boundary of the store: convert, release the GIL, call one verb, map its fault.

`Store` has the verbs of telha_queue/engine.py, which says what they mean. Arguments have been checked by the face;
inputs are borrowed from Python objects that the caller holds, so nothing is copied before the GIL is released.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, int64_t, uint64_t

from announce cimport ended_ticket, ready_ticket, wake_all
from asks cimport call_counts, call_due, call_list, call_wait_ended, call_wait_ready
from browse cimport STATES
from built cimport how_built
from calls cimport call_complete_and_lease, call_enqueue, call_lease, call_moves
from command cimport CANCEL, CHECKPOINT, COMPLETE, EXTEND, FAIL, LEASE, PROGRESS, RELEASE, RESCHEDULE, RETRY, STATS
from command cimport Command
from commits cimport call_data_get, call_data_scan, call_transact
from convert cimport bytes_of, bytes_or_null, command_of, text_bytes
from convert cimport read_kinds, read_loss, read_new_job, read_result, read_token
from enqueue cimport NewJob as CoreJob
from faults cimport error_of, forked, raise_for, shown
from keys cimport JOB_ID_BYTES, SCOPE_BYTES
from lifetime cimport close_store, failure_of, flush_store, open_store, recovered_of, reopen_store
from lookup cimport read_aside, read_job
from memory cimport Kinds
from move cimport Move
from names cimport find_scopes, name_scope
from outcome cimport Fault, List, Outcome, ScopeName
from reap cimport Reaped, reap
from record cimport Bytes
from renew cimport last_seen_of, renew
from results cimport counts_of, outcomes_of, record_of, records_of, refusal_of, report_of, scopes_of
from rocksdb cimport PinnableSlice
from row cimport Row
from scan cimport next_by_scan
from store cimport PAYLOADS, RESULTS, Family
from store cimport Store as CoreStore
from store cimport Visit, close_all_stores, is_child, skip_destructors, watch
from telha_queue._keeper cimport Renewer
from telha_queue._seam cimport NewJob, Token
from upkeep cimport call_checkpoint, call_crc32c, call_drop_name, call_fence, call_fsck, call_list_names
from upkeep cimport call_mark_copy

import atexit
import sys
import threading

if watch() != 0:
    raise MemoryError("no room for a fork handler")


include "open_store.pxi"


cdef class Store(OpenStore):
    """One open queue directory. Safe to call from many threads; after close() every verb raises StoreClosed."""

    def name_scope(self, bytes scope not None, str name not None):
        cdef const char* c_scope = bytes_or_null(scope, SCOPE_BYTES)
        cdef Bytes c_name = text_bytes(name)
        cdef Fault fault
        with nogil:
            fault = name_scope(self._c, c_scope, c_name)
        raise_for(&fault)

    def enqueue(self, bytes scope not None, NewJob job not None, int64_t now_us):
        cdef CoreJob c_job
        cdef List[Outcome] out
        read_new_job(job, &c_job)
        call_enqueue(self._c, scope, &c_job, 1, True, now_us, &out)
        return record_of(out.at(0).row, self)

    def enqueue_many(self, bytes scope not None, jobs not None, bint atomic, int64_t now_us):
        cdef List[CoreJob] c_jobs
        cdef List[Outcome] out
        c_jobs.reserve(len(jobs))
        for job in jobs:
            read_new_job(job, c_jobs.add())
        call_enqueue(self._c, scope, c_jobs.at(0), c_jobs.size(), atomic, now_us, &out)
        return outcomes_of(&out, None, self)

    def lease_next(self, bytes scope, tuple kinds, str worker_id not None, int64_t ttl_us, int64_t now_us):
        cdef Command command = command_of(LEASE)
        cdef List[Outcome] out
        command.worker_id = text_bytes(worker_id)
        command.ttl_us = ttl_us
        call_lease(self._c, scope, 1, 0, kinds, &command, now_us, &out)
        return record_of(out.at(0).row, self) if out.size() > 0 else None

    def lease_many(
        self,
        bytes scope,
        size_t n,
        int64_t max_bytes,
        tuple kinds,
        str worker_id not None,
        int64_t ttl_us,
        int64_t now_us,
    ):
        cdef Command command = command_of(LEASE)
        cdef List[Outcome] out
        command.worker_id = text_bytes(worker_id)
        command.ttl_us = ttl_us
        call_lease(self._c, scope, n, max_bytes, kinds, &command, now_us, &out)
        return records_of(&out, self)

    def complete_and_lease(self, Token token not None, tuple kinds, int64_t ttl_us, int64_t now_us):
        cdef Move move
        cdef Command command = command_of(LEASE)
        cdef Outcome completed
        cdef List[Outcome] out
        move.command = command_of(COMPLETE)
        read_token(token, &move)
        command.worker_id = token.worker
        command.ttl_us = ttl_us
        call_complete_and_lease(self._c, &move, kinds, &command, now_us, &completed, &out)
        if not completed.fault.ok():
            raise refusal_of(&completed, token)
        return record_of(out.at(0).row, self) if out.size() > 0 else None

    def next_by_scan(self, bytes scope not None, tuple kinds, int64_t now_us):
        """The job that a lease has to take, by the plain scan that defines it. For tests."""
        cdef const char* c_scope = bytes_or_null(scope, SCOPE_BYTES)
        cdef Kinds c_kinds
        cdef Row found
        cdef Fault fault
        read_kinds(kinds, &c_kinds)
        with nogil:
            fault = next_by_scan(self._c, c_scope, &c_kinds, now_us, &found)
        raise_for(&fault)
        return None if found.is_null() else record_of(found, self)

    def extend(self, Token token not None, int64_t ttl_us, int64_t now_us):
        cdef Command command = command_of(EXTEND)
        command.ttl_us = ttl_us
        return self._fenced(token, &command, now_us)

    def checkpoint(
        self, Token token not None, bytes continuation not None, bint durable, int64_t ttl_us, int64_t now_us
    ):
        cdef Command command = command_of(CHECKPOINT)
        command.continuation = bytes_of(continuation)
        command.durable = durable
        command.ttl_us = ttl_us
        return self._fenced(token, &command, now_us)

    def progress(self, Token token not None, int64_t millionths, str text, int64_t ttl_us, int64_t now_us):
        cdef Command command = command_of(PROGRESS)
        command.progress = millionths
        if text is not None:
            command.detail = text_bytes(text)
        command.ttl_us = ttl_us
        return self._fenced(token, &command, now_us)

    def stats(self, Token token not None, str detail not None, int64_t now_us):
        cdef Command command = command_of(STATS)
        command.detail = text_bytes(detail)
        return self._fenced(token, &command, now_us)

    def complete(self, Token token not None, bint accept_late, bytes result, int64_t now_us):
        cdef Command command = command_of(COMPLETE)
        command.accept_late = accept_late
        read_result(result, &command)
        return self._fenced(token, &command, now_us)

    def fail(self, Token token not None, loss not None, int64_t now_us):
        cdef Command command = command_of(FAIL)
        read_loss(loss, &command)
        return self._fenced(token, &command, now_us)

    def release(self, Token token not None, int64_t delay_us, int64_t now_us):
        cdef Command command = command_of(RELEASE)
        command.delay_us = delay_us
        return self._fenced(token, &command, now_us)

    def extend_many(self, tokens not None, int64_t ttl_us, bint atomic, int64_t now_us):
        cdef Command command = command_of(EXTEND)
        command.ttl_us = ttl_us
        return self._fenced_many(tokens, None, &command, atomic, now_us)

    def complete_many(self, tokens not None, bint accept_late, bint atomic, int64_t now_us):
        cdef Command command = command_of(COMPLETE)
        command.accept_late = accept_late
        return self._fenced_many(tokens, None, &command, atomic, now_us)

    def fail_many(self, tokens not None, list losses not None, bint atomic, int64_t now_us):
        cdef Command command = command_of(FAIL)
        return self._fenced_many(tokens, losses, &command, atomic, now_us)

    cdef list _fenced_many(self, tokens, list losses, const Command* command, bint atomic, int64_t now_us):
        """One outcome per token. `losses` has one per token, or is None."""
        cdef list held = list(tokens)
        cdef List[Move] moves
        cdef List[Outcome] out
        cdef size_t i
        if losses is not None and len(losses) != len(held):
            raise ValueError("one loss is needed for each token")
        moves.resize(len(held))
        for i in range(moves.size()):
            moves.at(i).command = command[0]
            if losses is not None:
                read_loss(losses[i], &moves.at(i).command)
            read_token(held[i], moves.at(i))
        call_moves(self._c, moves.at(0), moves.size(), atomic, now_us, &out)
        if atomic:
            for i in range(moves.size()):
                if not out.at(i).fault.ok():
                    raise refusal_of(out.at(i), held[i])
        return outcomes_of(&out, held, self)

    cdef object _fenced(self, Token token, const Command* command, int64_t now_us):
        cdef Move move
        move.command = command[0]
        read_token(token, &move)
        return self._move_one(&move, now_us)

    def retry(self, bytes scope not None, bytes job_id not None, int64_t now_us):
        cdef Command command = command_of(RETRY)
        return self._named(scope, job_id, &command, now_us)

    def cancel(self, bytes scope not None, bytes job_id not None, str reason, int64_t now_us):
        cdef Command command = command_of(CANCEL)
        if reason is not None:
            command.detail = text_bytes(reason)
        return self._named(scope, job_id, &command, now_us)

    def reschedule(
        self, bytes scope not None, bytes job_id not None, priority, not_before, str detail not None, int64_t now_us
    ):
        cdef Command command = command_of(RESCHEDULE)
        command.priority = -1 if priority is None else priority
        command.not_before = -1 if not_before is None else not_before
        command.detail = text_bytes(detail)
        return self._named(scope, job_id, &command, now_us)

    cdef object _named(self, bytes scope, bytes job_id, const Command* command, int64_t now_us):
        cdef Move move
        move.scope = bytes_or_null(scope, SCOPE_BYTES)
        move.job_id = bytes_or_null(job_id, JOB_ID_BYTES)
        move.known_key = NULL
        move.command = command[0]
        return self._move_one(&move, now_us)

    cdef object _move_one(self, const Move* move, int64_t now_us):
        cdef List[Outcome] out
        call_moves(self._c, move, 1, False, now_us, &out)
        if out.at(0).fault.ok():
            return record_of(out.at(0).row, self)
        job_id = PyBytes_FromStringAndSize(move.job_id, JOB_ID_BYTES)
        raise error_of(&out.at(0).fault, job_id, move.command.lease_generation, None, None, move.command.verb)

    def transact(self, changes not None, groups not None, puts not None, int64_t now_us):
        return call_transact(self._c, changes, groups, puts, now_us, self)

    def data_get(self, bytes key not None):
        return call_data_get(self._c, key)

    def data_scan(self, bytes prefix not None, bytes after not None, size_t limit, size_t max_bytes):
        return call_data_scan(self._c, prefix, after, limit, max_bytes)

    def get(self, bytes scope not None, bytes job_id not None):
        return self._find(scope, job_id)

    def find(self, bytes job_id not None):
        return self._find(None, job_id)

    cdef object _find(self, bytes scope, bytes job_id):
        cdef const char* c_scope = bytes_or_null(scope, SCOPE_BYTES)
        cdef const char* c_job_id = bytes_or_null(job_id, JOB_ID_BYTES)
        cdef Row row
        cdef Fault fault
        with nogil:
            fault = read_job(self._c, c_scope, c_job_id, &row)
        if not fault.ok():
            raise error_of(&fault, job_id, 0)
        return record_of(row, self)

    def load_payload(self, bytes job_id not None):
        return self._load(PAYLOADS, job_id)

    def load_result(self, bytes job_id not None):
        return self._load(RESULTS, job_id)

    cdef bytes _load(self, Family family, bytes job_id):
        cdef const char* c_job_id = bytes_or_null(job_id, JOB_ID_BYTES)
        cdef Visit visit  # outlives what is read, which may pin a block of the store
        cdef PinnableSlice aside
        cdef Fault fault
        with nogil:
            fault = read_aside(self._c, &visit, family, c_job_id, &aside)
        if not fault.ok():
            raise error_of(&fault, job_id, 0)
        return PyBytes_FromStringAndSize(aside.data(), aside.size())

    def list(self, bytes scope, state, tuple kinds, size_t limit, bytes after):
        cdef List[Outcome] out
        call_list(self._c, scope, state, kinds, limit, after, &out)
        return records_of(&out, self)

    def counts(self, bytes scope):
        cdef uint64_t[STATES] counted
        call_counts(self._c, scope, counted)
        return counts_of(counted)

    def scopes(self):
        cdef List[ScopeName] found
        cdef Fault fault
        with nogil:
            fault = find_scopes(self._c, &found)
        raise_for(&fault)
        return scopes_of(&found)

    def reap_expired(self, int64_t now_us):
        cdef Reaped counts
        cdef List[Row] dead
        cdef size_t i
        cdef Fault fault
        counts.reclaimed = counts.dead = counts.corrupt = counts.expired = 0
        with nogil:
            fault = reap(self._c, now_us, &counts, &dead)
        raise_for(&fault)
        return report_of(&counts, [record_of(dead.at(i)[0], self) for i in range(dead.size())])

    def ready_ticket(self, bytes scope):
        cdef const char* c_scope = bytes_or_null(scope, SCOPE_BYTES)
        cdef uint64_t ticket = 0
        cdef Fault fault
        with nogil:
            fault = ready_ticket(self._c, c_scope, &ticket)
        raise_for(&fault)
        return ticket

    def next_due_us(self, bytes scope, tuple kinds, int64_t now_us):
        cdef int64_t due_us = INT64_MAX
        call_due(self._c, scope, kinds, now_us, &due_us)
        return None if due_us == INT64_MAX else due_us

    def wait_ready(self, bytes scope, tuple kinds, uint64_t ticket, int64_t timeout_us):
        call_wait_ready(self._c, scope, kinds, ticket, timeout_us, _in_main_thread())

    def ended_ticket(self, bytes job_id not None):
        cdef const char* c_job_id = bytes_or_null(job_id, JOB_ID_BYTES)
        cdef uint64_t ticket = 0
        cdef Fault fault
        with nogil:
            fault = ended_ticket(self._c, c_job_id, &ticket)
        raise_for(&fault)
        return ticket

    def wait_ended(self, bytes job_id not None, uint64_t ticket, int64_t timeout_us):
        call_wait_ended(self._c, job_id, ticket, timeout_us, _in_main_thread())


cdef bint _in_main_thread() except -1:
    return threading.current_thread() is threading.main_thread()


@atexit.register
def _close_all():
    cdef size_t failed
    if is_child():
        skip_destructors()
        return
    with nogil:
        failed = close_all_stores()
    if failed:
        print(f"telha_queue: {failed} queues could not be closed well at exit", file=sys.stderr)


def refuse_in_child():
    """Raise StoreForked in a process that was forked from one that had a store open."""
    if is_child():
        raise forked()


def mark_copy(bytes path not None, uint64_t sequence):
    """Write the mark of a copy of which all is on disk. Raises OSError."""
    call_mark_copy(path, sequence)


def crc32c(bytes data not None):
    """The checksum of the files that the store writes itself."""
    return call_crc32c(data)


def build_info():
    return how_built()
