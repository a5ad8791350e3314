"""The verbs that read or wait, called with the GIL released, their faults raised. Needs the GIL."""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint64_t

from announce cimport wait_told
from browse cimport ANY_STATE, STATES, Page, count_jobs, list_jobs
from convert cimport bytes_or_null, read_kinds, read_wanted
from faults cimport raise_for
from keys cimport JOB_ID_BYTES, KEY_BYTES, SCOPE_BYTES
from lease cimport due_after
from memory cimport Kinds, Waiter
from outcome cimport Fault, List, Outcome
from scan cimport Wanted
from store cimport Store

# Ctrl-C is noticed by the main thread between two slices of a wait.
cdef enum:
    SIGNAL_SLICE_US = 50_000


cdef inline int call_list(
    Store* store, bytes scope, state, tuple kinds, size_t limit, bytes after, List[Outcome]* out
) except -1:
    cdef Page page
    cdef Kinds c_kinds
    cdef Fault fault
    read_kinds(kinds, &c_kinds)
    page.scope = bytes_or_null(scope, SCOPE_BYTES)
    page.state = ANY_STATE if state is None else state
    page.kinds = &c_kinds
    page.after = bytes_or_null(after, KEY_BYTES)
    page.limit = limit
    with nogil:
        fault = list_jobs(store, &page, out)
    return raise_for(&fault)


cdef inline int call_counts(Store* store, bytes scope, uint64_t* counted) except -1:
    """Fill the STATES counters."""
    cdef const char* c_scope = bytes_or_null(scope, SCOPE_BYTES)
    cdef Fault fault
    cdef int i
    for i in range(STATES):
        counted[i] = 0
    with nogil:
        fault = count_jobs(store, c_scope, counted)
    return raise_for(&fault)


cdef inline int call_due(Store* store, bytes scope, tuple kinds, int64_t now_us, int64_t* due_us) except -1:
    cdef const char* c_scope = bytes_or_null(scope, SCOPE_BYTES)
    cdef Kinds c_kinds
    cdef Wanted wanted
    cdef Fault fault
    read_wanted(kinds, now_us, &c_kinds, &wanted)
    with nogil:
        fault = due_after(store, c_scope, wanted, due_us)
    return raise_for(&fault)


cdef inline int call_wait_ready(
    Store* store, bytes scope, tuple kinds, uint64_t ticket, int64_t timeout_us, bint is_main
) except -1:
    cdef Kinds c_kinds
    cdef Waiter waiter
    read_kinds(kinds, &c_kinds)
    waiter.scope = bytes_or_null(scope, SCOPE_BYTES)
    waiter.kinds = &c_kinds
    return _wait(store, &waiter, ticket, timeout_us, is_main)


cdef inline int call_wait_ended(
    Store* store, bytes job_id, uint64_t ticket, int64_t timeout_us, bint is_main
) except -1:
    cdef Waiter waiter
    waiter.job_id = bytes_or_null(job_id, JOB_ID_BYTES)
    return _wait(store, &waiter, ticket, timeout_us, is_main)


cdef inline int _wait(Store* store, Waiter* waiter, uint64_t ticket, int64_t timeout_us, bint is_main) except -1:
    cdef bint is_over = False
    cdef int64_t slice_us
    cdef Fault fault
    while timeout_us > 0 and not is_over:
        slice_us = min(timeout_us, <int64_t>SIGNAL_SLICE_US) if is_main else timeout_us
        with nogil:
            fault = wait_told(store, waiter, ticket, slice_us, &is_over)
        raise_for(&fault)
        PyErr_CheckSignals()
        timeout_us -= slice_us
    return 0
