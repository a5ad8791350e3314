"""Reading for operators: pages of jobs, and counts. Takes no claims and holds nobody up."""

from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from keys cimport KEY_BYTES, SCOPE_BYTES, STATE_PREFIX_BYTES, key_state, state_prefix
from memory cimport Kinds
from outcome cimport Fault, List, Outcome
from record cimport View
from row cimport row_of
from scan cimport has_job_key, is_wanted, view_at
from store cimport Cursor, Store, Visit, bytes_of

cdef enum:
    STATES = 5
    ANY_STATE = -1

cdef struct Page:
    const char* scope  # NULL: all
    int state  # or ANY_STATE
    const Kinds* kinds
    const char* after  # the key before the page, NULL: from the start
    size_t limit


cdef inline Fault list_jobs(Store* store, const Page* page, List[Outcome]* out) noexcept nogil:
    """Add one outcome per job of the page, in key order; rows that do not decode are counted and left out."""
    cdef Visit visit
    cdef Cursor cursor
    cdef char[KEY_BYTES + 1] start
    cdef View job
    cdef Fault fault = visit.enter(store)
    if not fault.ok():
        return fault
    if page.after == NULL:
        cursor.open(store, page.scope, SCOPE_BYTES if page.scope != NULL else 0)
    else:
        memcpy(start, page.after, KEY_BYTES)
        start[KEY_BYTES] = 0  # the least key that is behind `after`
        cursor.open_at(store, page.scope, SCOPE_BYTES if page.scope != NULL else 0, start, KEY_BYTES + 1)
    while out.size() < page.limit and cursor.is_on_row():
        if not has_job_key(store, cursor.key()):
            cursor.step()
        elif page.state != ANY_STATE and key_state(cursor.key().data()) != page.state:
            if not _skip_to_state(&cursor, page.state):
                break
        else:
            if not view_at(&cursor, &job).ok():
                store.corrupt_rows.fetch_add(1)
            elif is_wanted(page.kinds, job.kind):
                out.add().row = row_of(cursor.key().data(), bytes_of(cursor.value()))
            cursor.step()
    return cursor.fault()


cdef inline bint _skip_to_state(Cursor* cursor, int state) noexcept nogil:
    """From a row of another state, go to the next place where rows of this one can stand."""
    cdef char[STATE_PREFIX_BYTES] prefix
    memcpy(prefix, cursor.key().data(), STATE_PREFIX_BYTES)
    if key_state(prefix) < state:
        state_prefix(prefix, prefix, <unsigned char>state)
        cursor.seek(prefix, STATE_PREFIX_BYTES)
        return cursor.is_on_row()
    return cursor.skip_scope(prefix, SCOPE_BYTES)


cdef inline Fault count_jobs(Store* store, const char* scope, uint64_t* counts) noexcept nogil:
    """Add the number of jobs per state to the STATES counters, by reading every key."""
    cdef Visit visit
    cdef Cursor cursor
    cdef Fault fault = visit.enter(store)
    if not fault.ok():
        return fault
    cursor.open(store, scope, SCOPE_BYTES if scope != NULL else 0)
    while cursor.is_on_row():
        if has_job_key(store, cursor.key()) and key_state(cursor.key().data()) < STATES:
            counts[key_state(cursor.key().data())] += 1
        cursor.step()
    return cursor.fault()
