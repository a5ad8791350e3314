"""Lease: pick the next jobs under the mutex, write them outside it.

A picked job is claimed until its write is done, so no other thread picks it, and threads that lease different jobs
share RocksDB's log writes.
"""

from libc.stdint cimport int64_t
from libcpp.string cimport string

from announce cimport announce_row
from keys cimport JOB_ID_BYTES
from rocksdb cimport WriteBatch
from scan cimport Wanted, list_scopes, next_due, scan_pending, scan_pending_any
from store cimport CLAIM_LEASE, Fault, List, Lock, Name, Outcome, Row, Store, Visit, set_text
from transit cimport transit
from transitions cimport Command


cdef inline Fault lease(
    Store* store, const char* scope, Wanted wanted, size_t n, const Command* command, List[Outcome]* out
) noexcept nogil:
    """Lease up to n jobs of one scope, or of all (NULL), in one write; adds one outcome per job leased."""
    cdef Visit visit
    cdef WriteBatch batch
    cdef List[Row] found
    cdef Row moved
    cdef Lock lock
    cdef size_t i
    cdef Fault fault = visit.enter(store)
    if not fault.ok():
        return fault
    store.see(wanted.now_us)
    lock = Lock(store.mutex)
    fault = _pick(store, &lock, scope, wanted, n, &found)
    if not fault.ok() or found.size() == 0:
        return fault
    for i in range(found.size()):
        store.claims.take(Name(found.at(i).job_id(), JOB_ID_BYTES), CLAIM_LEASE)
    lock.unlock()
    for i in range(found.size()):
        # The scan has found this row due; what is left to refuse it for is a generation that has run out.
        if not transit(store, found.at(i), command, wanted.now_us, &batch, &moved).ok():
            store.corrupt_rows.fetch_add(1)
            continue
        out.add().row = moved
    if batch.Count() > 0:
        fault = store.commit(&batch)
    lock.lock()
    for i in range(found.size()):
        store.claims.give_back(Name(found.at(i).job_id(), JOB_ID_BYTES))
        if not fault.ok():
            announce_row(store, found.at(i))  # a waiter may have passed over it while it was claimed
    return fault


cdef inline Fault _pick(
    Store* store, Lock* lock, const char* scope, Wanted wanted, size_t n, List[Row]* found
) noexcept nogil:
    """Scan, and scan again after each wait for a verb that is at work on a job which may be next."""
    cdef string busy
    cdef Fault fault
    while True:
        if scope == NULL:
            fault = scan_pending_any(store, wanted, n, found, &busy)
        else:
            fault = scan_pending(store, scope, wanted, n, found, &busy)
        if not fault.ok() or busy.size() == 0:
            return fault
        store.claims.wait_for(lock[0], busy)
        found.clear()
        set_text(&busy, b"", 0)


cdef inline Fault due_after(Store* store, const char* scope, Wanted wanted, int64_t* due_us) noexcept nogil:
    """Lower `due_us` to the next time at which a gated job of a wanted kind opens."""
    cdef Visit visit
    cdef List[string] scopes
    cdef size_t i
    cdef Fault fault = visit.enter(store)
    if not fault.ok():
        return fault
    if scope != NULL:
        return next_due(store, scope, wanted, due_us)
    fault = list_scopes(store, &scopes)
    for i in range(scopes.size()):
        if fault.ok():
            fault = next_due(store, scopes.at(i).data(), wanted, due_us)
    return fault
