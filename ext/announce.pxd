"""What became of a written row is told here: to the windows that know what is next, and to those who wait for it.

All functions that take a row want the store's mutex, and that the row is written.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp

from keys cimport LEASED, PENDING, SCOPE_BYTES, key_state
from record cimport Bytes, View
from scan cimport is_wanted
from store cimport Fault, Kinds, Lock, Row, Store, Visit, Waiter, Window, view_row


cdef inline void tell_moved(Store* store, Row* row) noexcept nogil:
    """Tell of a row that is new or has moved; the reaper of a lease, and everybody of a job that may be next."""
    cdef View job
    cdef uint8_t state = key_state(row.key.data())
    if state == LEASED:
        store.leased.put(row[0])
    else:
        store.leased.forget(row.job_id())
    if state != PENDING and not (state == LEASED and store.knows_leases):
        return
    if not view_row(row.key.data(), row.value.data(), row.value.size(), &job).ok():
        return
    if job.state == PENDING:
        _offer(store, row.key.data(), job.kind, job.not_before)
        _wake(store, row.key.data(), job.kind)
    else:
        store.leases.push(job.lease_deadline, row.key.data())


cdef inline void tell_new(Store* store, Row* row) noexcept nogil:
    """Tell of a job that was just enqueued: it may be the first of its scope."""
    if store.scopes.is_complete():
        store.scopes.add(row.key.data())
    tell_moved(store, row)


cdef inline void _offer(Store* store, const char* key, Bytes kind, int64_t not_before) noexcept nogil:
    _offer_to(store, key, key, kind, not_before)
    _offer_to(store, NULL, key, kind, not_before)


cdef inline void _offer_to(
    Store* store, const char* scope, const char* key, Bytes kind, int64_t not_before
) noexcept nogil:
    """Tell the windows of one scope, or those of all scopes (NULL), of a job whose kind they want."""
    cdef Window* window
    cdef size_t i
    for i in range(store.windows.count_of(scope)):
        window = store.windows.of(scope, i)
        if is_wanted(&window.kinds, kind):
            window.offer(key, not_before)
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


cdef inline Fault wait_ready(
    Store* store, const char* scope, const Kinds* kinds, uint64_t ticket, int64_t timeout_us, bint* is_over
) noexcept nogil:
    """Sleep until a job is announced that fits, or for `timeout_us`; `is_over` says whether to look again now."""
    cdef Visit visit
    cdef Waiter waiter
    cdef Lock lock
    cdef Fault fault = visit.enter(store)
    if not fault.ok():
        return fault
    waiter.scope = scope
    waiter.kinds = kinds
    lock = Lock(store.mutex)
    # close() clears the flag under the mutex: a store that is open here wakes this waiter when it closes.
    if store.is_open():
        is_over[0] = store.waiters.sleep(lock, &waiter, ticket, timeout_us)
    else:
        is_over[0] = True
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


cdef inline void wake_all(Store* store) noexcept nogil:
    """Make every waiter look again."""
    cdef Visit visit
    cdef Lock lock
    if visit.enter(store).ok():
        lock = Lock(store.mutex)
        store.waiters.wake_all()
        lock.unlock()
