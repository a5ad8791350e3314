"""The reaper's pass: takes back the leases that have run out, in all scopes, then has jobs buried that have expired."""

from libc.stdint cimport INT64_MAX, int64_t, uint64_t
from libcpp.string cimport string

from announce cimport commit_claimed
from command cimport REAP, Command
from expire cimport expire
from keys cimport DEAD, JOB_ID_AT, KEY_BYTES, LEASED, STATE_PREFIX_BYTES, key_state, state_prefix
from lookup cimport get_job
from memory cimport JobId, Lock
from outcome cimport CODE_INVALID_TRANSITION, CODE_NOT_FOUND, Fault, List, Outcome, set_text, sort_unique
from record cimport View
from rocksdb cimport WriteBatch
from row cimport Row
from scan cimport has_job_key, list_scopes, view_at
from store cimport Cursor, Store, Visit, fresh_batch, view_row
from transit cimport transit_viewed

cdef enum:
    # Jobs per write. Claims are held for one write at a time, so that no worker waits for a whole pass.
    REAP_BATCH_JOBS = 256
    # Dead jobs told of one by one; further ones are only counted, so that a pass has a bound in memory.
    MAX_DEAD_TOLD = 1000

cdef struct Reaped:
    uint64_t reclaimed
    uint64_t dead
    uint64_t corrupt
    uint64_t expired


cdef inline Fault reap(Store* store, int64_t now_us, Reaped* counts, List[Row]* dead_rows) noexcept nogil:
    """Take back every lease whose deadline, grace included, has passed, and bury the pending jobs that have expired.

    Adds the rows of up to MAX_DEAD_TOLD jobs that died to `dead_rows`.
    """
    cdef Visit visit
    cdef List[string] expired
    cdef Lock pass_lock
    cdef Lock lock
    cdef int64_t due_us = max(now_us - store.settings.lease_grace_us, 0)
    cdef Fault fault
    store.heal()
    fault = visit.enter(store)
    if not fault.ok():
        return fault
    if now_us == INT64_MAX:
        due_us = now_us  # at the end of time grace has ended too: deadlines and grace add up to no more
    store.see(now_us)
    pass_lock = Lock(store.reaping)
    while fault.ok():
        lock = Lock(store.mutex)
        _pop_expired(store, due_us, &expired)
        if expired.size() == 0 and store.knows_leases and not store.leases.is_past_horizon(due_us):
            break
        lock.unlock()
        if expired.size() == 0:
            fault = _read_leases(store)
        else:
            fault = _reap_batch(store, &expired, now_us, counts, dead_rows)
        expired.clear()
    if fault.ok():
        counts.corrupt += store.corrupt_leases  # under the lock that the loop was left with
        lock.unlock()
        fault = expire(store, now_us, &counts.expired)
    else:
        lock = Lock(store.mutex)
        store.knows_leases = False  # what was popped and not reaped has to be found again
        lock.unlock()
    pass_lock.unlock()
    return fault


cdef inline void _pop_expired(Store* store, int64_t due_us, List[string]* expired) noexcept nogil:
    """Move the keys of jobs whose time has come from the table to `expired`, for one write."""
    cdef const char* key = store.leases.top(due_us)
    while key != NULL and expired.size() < REAP_BATCH_JOBS:
        set_text(expired.add(), key, KEY_BYTES)
        store.leases.pop()
        key = store.leases.top(due_us)
    sort_unique(expired)  # a job that was leased twice stands there twice


cdef inline Fault _read_leases(Store* store) noexcept nogil:
    """Fill the table of leases from disk: at the first pass, and when its horizon is reached.

    Leases taken meanwhile are told of by those who take them, so none is missed between the two.
    """
    cdef List[string] scopes
    cdef Lock lock
    cdef size_t i
    cdef Fault fault
    lock = Lock(store.mutex)
    store.leases.clear()
    store.knows_leases = True
    store.corrupt_leases = 0
    lock.unlock()
    fault = list_scopes(store, &scopes)
    for i in range(scopes.size()):
        if fault.ok():
            fault = _read_scope(store, scopes.at(i).data())
    return fault


cdef inline Fault _read_scope(Store* store, const char* scope) noexcept nogil:
    cdef Cursor cursor
    cdef char[STATE_PREFIX_BYTES] prefix
    cdef View job
    cdef Lock lock
    state_prefix(prefix, scope, LEASED)
    cursor.open(store, prefix, STATE_PREFIX_BYTES)
    while cursor.is_on_row():
        lock = Lock(store.mutex)
        if has_job_key(store, cursor.key()) and view_at(&cursor, &job).ok():
            store.leases.push(job.lease_deadline, cursor.key().data())
        else:
            store.corrupt_leases += 1
        lock.unlock()
        cursor.step()
    return cursor.fault()


cdef inline Fault _reap_batch(
    Store* store, List[string]* expired, int64_t now_us, Reaped* counts, List[Row]* dead_rows
) noexcept nogil:
    """Reap jobs that the table says are expired, as they are now: under their claims, each row is read."""
    cdef List[JobId] ids
    cdef List[Outcome] seen
    cdef WriteBatch* batch = fresh_batch()
    cdef Lock lock
    cdef size_t i
    cdef Fault fault
    for i in range(expired.size()):
        ids.add()[0] = JobId(expired.at(i).data() + JOB_ID_AT)
    lock = Lock(store.mutex)
    store.claims.wait_and_take(lock, ids.items())
    lock.unlock()
    for i in range(expired.size()):
        if fault.ok():
            fault = _reap_one(store, expired.at(i), now_us, batch, counts, &seen, dead_rows)
    return commit_claimed(store, batch, &ids, &seen, fault)


cdef inline Fault _reap_one(
    Store* store,
    const string* key,
    int64_t now_us,
    WriteBatch* batch,
    Reaped* counts,
    List[Outcome]* seen,
    List[Row]* dead_rows,
) noexcept nogil:
    """Reap one job; adds its row to `seen`, moved or, when its deadline has moved instead, as it is."""
    cdef Row row
    cdef Outcome moved
    cdef Command command
    cdef View job
    cdef Fault fault = get_job(store, key.data(), &row)
    if fault.code == CODE_NOT_FOUND:
        return Fault()  # it has left the Leased state
    if not fault.ok():
        return fault
    command.verb = REAP
    fault = view_row(row.key(), row.value(), &job)
    if fault.ok():
        fault = transit_viewed(store, row, &job, &command, now_us, batch, &moved)
    if fault.code == CODE_INVALID_TRANSITION:
        moved.row = row
        moved.due_us = job.lease_deadline
        seen.add()[0] = moved
        return Fault()
    if not fault.ok():
        counts.corrupt += 1  # it decoded when it was leased, and is left as it is
        return Fault()
    seen.add()[0] = moved
    if key_state(moved.row.key()) != DEAD:
        counts.reclaimed += 1
        return Fault()
    counts.dead += 1
    if dead_rows.size() < MAX_DEAD_TOLD:
        dead_rows.add()[0] = moved.row
    return Fault()
