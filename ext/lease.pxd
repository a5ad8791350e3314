"""Lease: pick the next jobs under the mutex, read and write them outside it.

A picked job is claimed until its write is done and stands in no window meanwhile, so no other thread picks it, and
threads that lease different jobs share RocksDB's log writes.
"""

from libc.stdint cimport INT64_MAX, int64_t

from announce cimport tell_moved
from command cimport Command
from effects cimport is_expired
from gone cimport find_gone, is_picked
from keys cimport JOB_ID_AT, LEASED
from lookup cimport find_claimed, get_job
from memory cimport CLAIM_LEASE, CLAIM_OTHER, Claim, JobId, Lock, ReadyJob, Taken, Window
from move cimport Move, find_leased
from outcome cimport CODE_NOT_FOUND, Fault, List, Outcome
from record cimport View
from rocksdb cimport WriteBatch
from row cimport Row
from scan cimport Wanted, fill_window, is_gated
from store cimport Store, Visit, fresh_batch, view_row
from transit cimport transit, transit_viewed

cdef enum:
    MAX_RESERVED = 1000


cdef inline Fault lease(
    Store* store,
    const char* scope,
    Wanted wanted,
    size_t n,
    int64_t max_bytes,
    const Command* command,
    List[Outcome]* out,
) noexcept nogil:
    """Lease up to n jobs of one scope, or of all (NULL), in one write; adds one outcome per job leased.

    The payloads of all but the first come to `max_bytes` at most.
    """
    cdef Visit visit
    cdef WriteBatch* batch = fresh_batch()
    cdef Taken taken
    cdef Lock lock
    cdef Fault fault = visit.enter(store)
    if not fault.ok():
        return fault
    wanted.now_us = store.see(wanted.now_us)
    taken.room_bytes = max_bytes
    fault = _gather(store, scope, wanted, n, True, command, batch, &taken, out)
    if fault.ok() and batch.Count() > 0:
        fault = store.commit(batch)
    if taken.gone.size() > 0:
        find_gone(store, &taken, out)
    lock = Lock(store.mutex)
    _settle(store, fault.ok(), &taken, out)
    lock.unlock()
    return fault


cdef inline Fault complete_and_lease(
    Store* store, const Move* move, Wanted wanted, const Command* command, Outcome* completed, List[Outcome]* out
) noexcept nogil:
    """Finish a job and lease the next of its scope, if there is one, in one write.

    A job that stands next and is claimed by another verb is leased by a write of its own. The first job is finished
    by then, so a fault of that write is not told: it is as if nothing were ready, and the next call meets the cause.
    """
    cdef Row held
    cdef bint is_blocked = False
    cdef Fault fault = _complete_and_take(store, move, wanted, command, &held, &is_blocked, completed, out)
    if is_blocked and fault.ok() and not lease(store, held.key(), wanted, 1, INT64_MAX, command, out).ok():
        out.clear()
    return fault


cdef inline Fault _complete_and_take(
    Store* store,
    const Move* move,
    Wanted wanted,
    const Command* command,
    Row* held,
    bint* is_blocked,
    Outcome* completed,
    List[Outcome]* out,
) noexcept nogil:
    """The one write. The finished job's claim is held meanwhile, so no other claim may be waited for."""
    cdef Visit visit
    cdef WriteBatch* batch = fresh_batch()
    cdef Taken taken
    cdef List[JobId] ids
    cdef Lock lock
    cdef Fault fault = visit.enter(store)
    if not fault.ok():
        return fault
    wanted.now_us = store.see(wanted.now_us)
    taken.room_bytes = INT64_MAX
    ids.add()[0] = JobId(move.job_id)
    lock = Lock(store.mutex)
    store.claims.wait_and_take(lock, ids.items())
    held[0] = find_leased(store, move)
    lock.unlock()
    if held.is_null():
        completed.fault = find_claimed(store, move.scope, move.job_id, move.known_key, LEASED, held)
    if completed.fault.ok():
        completed.fault = transit(store, held[0], &move.command, wanted.now_us, batch, completed)
    if completed.fault.ok():
        fault = _gather(store, held.key(), wanted, 1, False, command, batch, &taken, out)
        if fault.ok():
            fault = store.commit(batch)
    if taken.gone.size() > 0:
        find_gone(store, &taken, out)
    lock.lock()
    store.claims.give_back(ids.at(0)[0])
    if completed.fault.ok() and fault.ok():
        tell_moved(store, completed)
    _settle(store, fault.ok(), &taken, out)
    lock.unlock()
    is_blocked[0] = taken.is_blocked
    return fault


cdef inline Fault _gather(
    Store* store,
    const char* scope,
    Wanted wanted,
    size_t n,
    bint may_wait,
    const Command* command,
    WriteBatch* batch,
    Taken* taken,
    List[Outcome]* out,
) noexcept nogil:
    """Pick jobs and lease them into the batch until there are n, or no more, or no more room."""
    cdef Lock lock = Lock(store.mutex)
    cdef Fault fault
    out.reserve(min(n, <size_t>MAX_RESERVED))
    taken.picked.reserve(min(n, <size_t>MAX_RESERVED))
    while fault.ok() and out.size() < n and not taken.is_full:
        fault = _pick(store, &lock, scope, wanted, n - out.size(), may_wait, taken)
        if taken.picked.size() == taken.done:
            break
        lock.unlock()
        while taken.done < taken.picked.size():
            if fault.ok():
                fault = _take(store, taken.picked.at(taken.done), wanted.now_us, command, batch, taken, out)
            taken.done += 1
        lock.lock()
    return fault


cdef inline void _settle(Store* store, bint is_written, Taken* taken, List[Outcome]* out) noexcept nogil:
    """Give the claims back and tell what became of the jobs. Requires the mutex."""
    cdef size_t i
    for i in range(taken.picked.size()):
        store.claims.give_back(JobId(taken.picked.at(i).key + JOB_ID_AT))
    for i in range(taken.left.size()):
        tell_moved(store, taken.left.at(i))
    if is_written:
        for i in range(out.size()):
            tell_moved(store, out.at(i))
    elif taken.picked.size() > 0:
        _forget(store, &taken.picked)


cdef inline Fault _pick(
    Store* store, Lock* lock, const char* scope, Wanted wanted, size_t n, bint may_wait, Taken* taken
) noexcept nogil:
    """Claim up to n more jobs that are next and add them. Lets go of the mutex while it waits or scans on."""
    cdef Window* window
    cdef const ReadyJob* ready
    cdef ReadyJob* picked
    cdef Claim claim
    cdef Fault fault
    while n > 0:
        window = store.windows.find(scope, wanted.kinds[0])
        ready = window.first(wanted.now_us)
        if ready == NULL:
            if window.is_complete():
                break
            fault = fill_window(store, window, wanted.now_us)
            if not fault.ok():
                return fault
            lock.unlock()
            lock.lock()
            continue
        claim = store.claims.of(JobId(ready.key + JOB_ID_AT))
        if claim == CLAIM_OTHER:
            # What that verb leaves decides whether the job is next.
            if not may_wait:
                taken.is_blocked = True
                break
            store.claims.wait_for(lock[0], JobId(ready.key + JOB_ID_AT))
            continue
        picked = taken.picked.add()
        picked[0] = ready[0]
        store.windows.withdraw(picked.key)
        if claim == CLAIM_LEASE and not is_picked(taken, picked.key + JOB_ID_AT):
            taken.picked.remove_last()  # a scan met it while another lease was taking it
            continue
        if claim != CLAIM_LEASE:
            store.claims.take(JobId(picked.key + JOB_ID_AT), CLAIM_LEASE)
        n -= 1
    return Fault()


cdef inline Fault _take(
    Store* store,
    const ReadyJob* picked,
    int64_t now_us,
    const Command* command,
    WriteBatch* batch,
    Taken* taken,
    List[Outcome]* out,
) noexcept nogil:
    """Lease a picked job, if its row is as the window had it. One that is still gated, or too large, is left.

    One that has expired since it came into the window is dropped: only the reaper has anything to do with it.
    """
    cdef Row row = picked.row
    cdef Outcome moved
    cdef View job
    cdef Fault fault
    if row.is_null():
        fault = get_job(store, picked.key, &row)
    if fault.code == CODE_NOT_FOUND:
        taken.gone.add()[0] = taken.done  # it has left the Pending state, or its place in line
        return Fault()
    if not fault.ok():
        return fault
    if not view_row(row.key(), row.value(), &job).ok():
        store.corrupt_rows.fetch_add(1)
        return Fault()
    if is_expired(&job, now_us):
        return Fault()
    taken.is_full = taken.is_full or (out.size() > 0 and <int64_t>job.payload_bytes > taken.room_bytes)
    if taken.is_full or is_gated(&job, now_us):
        moved.row = row
        moved.due_us = job.not_before
        taken.left.add()[0] = moved
    elif transit_viewed(store, row, &job, command, now_us, batch, out.add()).ok():
        taken.room_bytes -= <int64_t>job.payload_bytes
    else:
        out.remove_last()
    return Fault()


cdef inline void _forget(Store* store, List[ReadyJob]* picked) noexcept nogil:
    """After a failed call: the windows no longer know the picked jobs, so they are told of those still there."""
    cdef Outcome left
    cdef View job
    cdef size_t i
    for i in range(picked.size()):
        if get_job(store, picked.at(i).key, &left.row).ok() and view_row(left.row.key(), left.row.value(), &job).ok():
            left.due_us = job.not_before
            tell_moved(store, &left)


cdef inline Fault due_after(Store* store, const char* scope, Wanted wanted, int64_t* due_us) noexcept nogil:
    """Lower `due_us` to the time at which it is worth looking again, if nothing new is announced before."""
    cdef Visit visit
    cdef Lock lock
    cdef Window* window
    cdef Fault fault = visit.enter(store)
    if not fault.ok():
        return fault
    lock = Lock(store.mutex)
    window = store.windows.find(scope, wanted.kinds[0])
    while fault.ok():
        if window.first(wanted.now_us) != NULL:  # others may have seen gates open since this caller looked
            due_us[0] = wanted.now_us
            return fault
        if window.is_complete():
            break
        fault = fill_window(store, window, wanted.now_us)
        lock.unlock()
        lock.lock()
        window = store.windows.find(scope, wanted.kinds[0])
    due_us[0] = min(due_us[0], window.next_due_us())
    lock.unlock()
    return fault
