"""Waking those who wait: tells the waiters whose scope and kinds a ready job fits."""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcmp

from keys cimport PENDING, SCOPE_BYTES, key_state
from record cimport Bytes, View
from scan cimport Kinds, is_wanted
from store cimport Fault, Lock, Row, Store, Visit, Waiter, view_row


cdef inline void announce(Store* store, const char* scope, Bytes kind) noexcept nogil:
    """Say that a job may have become ready, gated or not: a waiter has to know of a new gate too.

    Requires the store's mutex, and that the row is written.
    """
    cdef Waiter* waiter = store.waiters.first()
    store.waiters.announce(scope)
    while waiter != NULL:
        if (waiter.scope == NULL or memcmp(waiter.scope, scope, SCOPE_BYTES) == 0) and is_wanted(
            <const Kinds*>waiter.kinds, kind
        ):
            store.waiters.wake(waiter)
        waiter = waiter.next


cdef inline void announce_row(Store* store, Row* row) noexcept nogil:
    """Announce a row if it is Pending."""
    cdef View job
    if key_state(row.key.data()) == PENDING:
        if view_row(row.key.data(), row.value.data(), row.value.size(), &job).ok():
            announce(store, row.key.data(), job.kind)


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
