"""Lease: pick the next jobs under the mutex, read and write them outside it.

A picked job is claimed until its write is done and stands in no window meanwhile, so no other thread picks it, and
threads that lease different jobs share RocksDB's log writes.
"""

from libc.stdint cimport int64_t
from libcpp.string cimport string

from announce cimport tell_moved
from keys cimport JOB_ID_AT, KEY_BYTES
from lookup cimport get_job
from record cimport View
from rocksdb cimport WriteBatch
from scan cimport Wanted, fill_window, is_gated
from store cimport (
    CLAIM_LEASE,
    CLAIM_OTHER,
    CODE_NOT_FOUND,
    Claim,
    Fault,
    JobId,
    List,
    Lock,
    Outcome,
    Row,
    Store,
    Visit,
    Window,
    fresh_batch,
    set_text,
    view_row,
)
from transit cimport transit_viewed
from transitions cimport Command


cdef inline Fault lease(
    Store* store, const char* scope, Wanted wanted, size_t n, const Command* command, List[Outcome]* out
) noexcept nogil:
    """Lease up to n jobs of one scope, or of all (NULL), in one write; adds one outcome per job leased."""
    cdef Visit visit
    cdef WriteBatch* batch = fresh_batch()
    cdef List[string] picked
    cdef List[Row] left
    cdef Lock lock
    cdef size_t i
    cdef size_t done = 0
    cdef Fault fault = visit.enter(store)
    if not fault.ok():
        return fault
    wanted.now_us = store.see(wanted.now_us)
    lock = Lock(store.mutex)
    while fault.ok() and out.size() < n:
        fault = _pick(store, &lock, scope, wanted, n - out.size(), &picked)
        if picked.size() == done:
            break
        lock.unlock()
        while done < picked.size():
            if fault.ok():
                fault = _take(store, picked.at(done), wanted.now_us, command, batch, out, &left)
            done += 1
        lock.lock()
    lock.unlock()
    if fault.ok() and batch.Count() > 0:
        fault = store.commit(batch)
    lock.lock()
    for i in range(picked.size()):
        store.claims.give_back(JobId(picked.at(i).data() + JOB_ID_AT))
    for i in range(left.size()):
        tell_moved(store, left.at(i))
    if fault.ok():
        for i in range(out.size()):
            tell_moved(store, &out.at(i).row)
    elif picked.size() > 0:
        _forget(store, &picked)
    return fault


cdef inline Fault _pick(
    Store* store, Lock* lock, const char* scope, Wanted wanted, size_t n, List[string]* picked
) noexcept nogil:
    """Claim up to n more jobs that are next and add their keys. Lets go of the mutex while it waits or scans on."""
    cdef Window* window
    cdef const char* key
    cdef string found
    cdef Claim claim
    cdef Fault fault
    while n > 0:
        window = store.windows.find(scope, wanted.kinds[0])
        key = window.first(wanted.now_us)
        if key == NULL:
            if window.is_complete():
                break
            fault = fill_window(store, window, wanted.now_us)
            if not fault.ok():
                return fault
            lock.unlock()
            lock.lock()
            continue
        claim = store.claims.of(JobId(key + JOB_ID_AT))
        if claim == CLAIM_OTHER:
            # What that verb leaves decides whether the job is next.
            store.claims.wait_for(lock[0], JobId(key + JOB_ID_AT))
            continue
        set_text(&found, key, KEY_BYTES)
        store.windows.withdraw(found.data())
        if claim == CLAIM_LEASE:
            continue  # a scan met it while another lease was taking it
        store.claims.take(JobId(found.data() + JOB_ID_AT), CLAIM_LEASE)
        picked.add()[0] = found
        n -= 1
    return Fault()


cdef inline Fault _take(
    Store* store,
    const string* key,
    int64_t now_us,
    const Command* command,
    WriteBatch* batch,
    List[Outcome]* out,
    List[Row]* left,
) noexcept nogil:
    """Lease a picked job, if its row is as the window had it; a row that is still gated goes to `left`."""
    cdef Row row
    cdef Row moved
    cdef View job
    cdef Fault fault = get_job(store, key[0], &row)
    if fault.code == CODE_NOT_FOUND:
        return Fault()  # it has left the Pending state
    if not fault.ok():
        return fault
    if not view_row(row.key.data(), row.value.data(), row.value.size(), &job).ok():
        store.corrupt_rows.fetch_add(1)
    elif is_gated(&job, now_us):
        left.add()[0] = row
    elif transit_viewed(store, &row, &job, command, now_us, batch, &moved).ok():
        out.add().row = moved
    return Fault()


cdef inline void _forget(Store* store, List[string]* picked) noexcept nogil:
    """After a failed call: the windows no longer know the picked jobs, so they are told of those still there."""
    cdef Row row
    cdef size_t i
    for i in range(picked.size()):
        if get_job(store, picked.at(i)[0], &row).ok():
            tell_moved(store, &row)


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
    while fault.ok() and not window.is_complete():
        if window.first(wanted.now_us) != NULL:
            due_us[0] = wanted.now_us
            return fault
        fault = fill_window(store, window, wanted.now_us)
        lock.unlock()
        lock.lock()
        window = store.windows.find(scope, wanted.kinds[0])
    due_us[0] = min(due_us[0], window.next_due_us())
    lock.unlock()
    return fault
