"""What became of a written row is told here: to the windows that know what is next, and to those who wait for it.

All functions that take a row want the store's mutex, and that the row is written.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp
from libcpp.vector cimport vector

from keys cimport LEASED, PENDING, SCOPE_BYTES, key_state
from memory cimport JobId, Kinds, Lock, Waiter, Window, WindowPtr
from outcome cimport Fault, List, Outcome
from record cimport Bytes, kind_of
from rocksdb cimport WriteBatch
from row cimport Row
from scan cimport is_wanted
from store cimport Store, Visit


cdef inline void tell_moved(Store* store, const Outcome* moved) noexcept nogil:
    """Tell of a job that has moved, or was seen where it is: windows, the reaper of a lease, and who waits for it.

    To be called before the job's claim is given back: the rows that windows hold rely on it.
    """
    store.moves.fetch_add(1)
    store.windows.withdraw(moved.row.key())
    if not moved.before.is_null():
        store.windows.withdraw(moved.before.key())
    if key_state(moved.row.key()) == LEASED:
        store.leased.put(moved.row)
        if store.knows_leases:
            store.leases.push(moved.due_us, moved.row.key())
        return
    store.leased.forget(moved.row.job_id())
    if key_state(moved.row.key()) == PENDING:
        _offer(store, moved.row, moved.due_us, True)
    else:
        store.waiters.ends.announce(moved.row.job_id())


cdef inline Fault commit_claimed(
    Store* store, WriteBatch* batch, List[JobId]* claimed, List[Outcome]* seen, Fault fault
) noexcept nogil:
    """Write what was gathered under claims, unless that met a fault; give them back, and tell of what was seen."""
    cdef Lock lock
    cdef size_t i
    if fault.ok() and batch.Count() > 0:
        fault = store.commit(batch)
    lock = Lock(store.mutex)
    for i in range(claimed.size()):
        store.claims.give_back(claimed.at(i)[0])
    if fault.ok():
        for i in range(seen.size()):
            tell_moved(store, seen.at(i))
    lock.unlock()
    return fault


cdef inline void tell_new(Store* store, const Outcome* job, uint64_t moves_before) noexcept nogil:
    """Tell of a job that was just enqueued: it may be the first of its scope.

    Nobody claims a new job. If anything has moved since before it was written, it may have been met and leased
    already, so the windows are told where to look and not what is there.
    """
    if store.scopes.is_complete():
        store.scopes.add(job.row.key())
    _offer(store, job.row, job.due_us, store.moves.load() == moves_before)


cdef inline void _offer(Store* store, const Row& row, int64_t not_before, bint is_current) noexcept nogil:
    """Tell the windows of a job whose kind they want, and those who wait. `is_current`: the row is what is stored."""
    cdef Bytes kind = kind_of(row.value())
    _offer_to(store, store.windows.of(row.key()), row, kind, not_before, is_current)
    _offer_to(store, store.windows.of(NULL), row, kind, not_before, is_current)
    store.windows.trim()
    _wake(store, row.key(), kind)


cdef inline void _offer_to(
    Store* store, const vector[WindowPtr]* windows, const Row& row, Bytes kind, int64_t not_before, bint is_current
) noexcept nogil:
    cdef Window* window
    cdef size_t i
    for i in range(windows.size()):
        window = windows[0][i]
        if is_wanted(&window.kinds, kind):
            window.offer(row, not_before, is_current)
            store.windows.count(window)


cdef inline void _wake(Store* store, const char* scope, Bytes kind) noexcept nogil:
    """Wake the waiters whom a job concerns, gated or not: who waits has to know of a new gate too."""
    cdef Waiter* waiter = store.waiters.first()
    store.waiters.announce(scope)
    while waiter != NULL:
        if (waiter.scope == NULL or memcmp(waiter.scope, scope, SCOPE_BYTES) == 0) and is_wanted(
            <const Kinds*>waiter.kinds, kind
        ):
            store.waiters.wake(waiter)
        waiter = waiter.next


cdef inline Fault wait_told(
    Store* store, Waiter* waiter, uint64_t ticket, int64_t timeout_us, bint* is_over
) noexcept nogil:
    """Sleep until what is waited for is told, or for `timeout_us`; `is_over` says whether to look again now."""
    cdef Visit visit
    cdef Lock lock
    cdef Fault fault = visit.enter(store)
    if not fault.ok():
        return fault
    lock = Lock(store.mutex)
    # close() clears the flag under the mutex: a store that is open here wakes this waiter when it closes.
    if not store.is_open():
        is_over[0] = True
    elif waiter.job_id != NULL:
        is_over[0] = store.waiters.ends.sleep(lock, waiter, ticket, timeout_us)
    else:
        is_over[0] = store.waiters.sleep(lock, waiter, ticket, timeout_us)
    return fault


cdef inline Fault ready_ticket(Store* store, const char* scope, uint64_t* ticket) noexcept nogil:
    """A number that grows whenever a job of the scope, of any for NULL, may have become ready."""
    cdef Visit visit
    cdef Lock lock
    cdef Fault fault = visit.enter(store)
    if fault.ok():
        lock = Lock(store.mutex)
        ticket[0] = store.waiters.ticket(scope)
        lock.unlock()
    return fault


cdef inline Fault ended_ticket(Store* store, const char* job_id, uint64_t* ticket) noexcept nogil:
    """A number that grows whenever that job is completed or dead, and for some others too."""
    cdef Visit visit
    cdef Lock lock
    cdef Fault fault = visit.enter(store)
    if fault.ok():
        lock = Lock(store.mutex)
        ticket[0] = store.waiters.ends.ticket(job_id)
        lock.unlock()
    return fault


cdef inline void wake_all(Store* store) noexcept nogil:
    """Make every waiter look again."""
    cdef Visit visit
    cdef Lock lock
    if visit.enter(store).ok():
        lock = Lock(store.mutex)
        store.waiters.wake_all()
        lock.unlock()
