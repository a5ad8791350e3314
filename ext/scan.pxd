"""The pending scan: which job is next. This file defines the order in which jobs are leased.

    the first row of [scope][Pending], in key order, that is due, has not expired, and is of a wanted kind

`next_by_scan` is that definition, as plain as it reads. It walks whatever lies in front of the job, so leases go
through windows (ready.hpp), which `fill_window` fills by the same scan, a stretch at a time; a test holds what they
answer to the definition.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcmp, memcpy
from libcpp.string cimport string

from effects cimport is_expired
from keys cimport KEY_BYTES, PENDING, PRIORITY_AT, SCOPE_BYTES, STATE_PREFIX_BYTES, state_prefix
from memory cimport Kinds, Window
from outcome cimport Fault, List, set_text
from record cimport Bytes, View
from rocksdb cimport Slice
from row cimport Row, row_of
from store cimport Cursor, Store, Visit, bytes_of, view_row

cdef enum:
    ORDER_BYTES = KEY_BYTES - PRIORITY_AT
    # What one stretch of a scan may walk while others wait for the mutex, and the part of a window that it may add.
    MAX_WALK_ROWS = 20_000
    LEAST_WALK_ROWS = 256
    FILL_PART = 8

# How a scan is told what to pass over.
cdef struct Wanted:
    const Kinds* kinds
    int64_t now_us


cdef inline bint is_wanted(const Kinds* kinds, Bytes kind) noexcept nogil:
    """Whether a filter lets a kind through: a pattern is a prefix, or the whole kind when it is exact."""
    cdef size_t i
    if kinds == NULL or kinds.count == 0:
        return True
    for i in range(kinds.count):
        if kinds.patterns[i].text.size > kind.size:
            continue
        if kinds.patterns[i].is_exact and kinds.patterns[i].text.size != kind.size:
            continue
        if memcmp(kinds.patterns[i].text.data, kind.data, kinds.patterns[i].text.size) == 0:
            return True
    return False


cdef inline bint is_gated(const View* job, int64_t now_us) noexcept nogil:
    return job.not_before > now_us


cdef inline Fault view_at(Cursor* cursor, View* out) noexcept nogil:
    """Decode the row that a cursor stands on."""
    return view_row(cursor.key().data(), bytes_of(cursor.value()), out)


cdef inline bint has_job_key(Store* store, Slice key) noexcept nogil:
    """Whether a key of the jobs family has the right length; counts it as a corrupt row if not."""
    if key.size() == KEY_BYTES:
        return True
    store.corrupt_rows.fetch_add(1)
    return False


cdef inline Fault next_by_scan(
    Store* store, const char* scope, const Kinds* kinds, int64_t now_us, Row* found
) noexcept nogil:
    """The row of one scope that is next in order: gated, expired, unwanted and corrupt ones are passed over."""
    cdef Visit visit
    cdef Cursor cursor
    cdef char[STATE_PREFIX_BYTES] prefix
    cdef View job
    cdef Fault fault = visit.enter(store)
    if not fault.ok():
        return fault
    state_prefix(prefix, scope, PENDING)
    cursor.open(store, prefix, STATE_PREFIX_BYTES)
    while cursor.is_on_row():
        if has_job_key(store, cursor.key()) and view_at(&cursor, &job).ok():
            if not is_gated(&job, now_us) and not is_expired(&job, now_us) and is_wanted(kinds, job.kind):
                found[0] = row_of(cursor.key().data(), bytes_of(cursor.value()))
                break
        cursor.step()
    return cursor.fault()


cdef inline Fault fill_window(Store* store, Window* window, int64_t now_us) noexcept nogil:
    """Scan a stretch from where the window's knowledge ends. Requires the store's mutex.

    Afterwards the window knows a job that is ready, or is complete, or has got further.
    """
    store.moves.fetch_add(1)
    if window.scope() == NULL:
        return _fill_any(store, window, now_us)
    return _fill_scope(store, window, now_us)


cdef inline Fault _fill_scope(Store* store, Window* window, int64_t now_us) noexcept nogil:
    cdef char[ORDER_BYTES] last
    cdef bint is_cut = False
    cdef Fault fault
    window.begin_scan()
    fault = _walk(store, window, window.scope(), now_us, MAX_WALK_ROWS, last, &is_cut)
    if fault.ok():
        window.end_scan(<const char*>last if is_cut else <const char*>NULL)
    else:
        window.restart()
    return fault


cdef inline Fault _fill_any(Store* store, Window* window, int64_t now_us) noexcept nogil:
    """A stretch in every scope. What lies behind the shortest of them is not known yet in that scope."""
    cdef List[string] scopes
    cdef char[ORDER_BYTES] last
    cdef char[ORDER_BYTES] least
    cdef bint is_cut = False
    cdef bint is_any_cut = False
    cdef size_t i
    cdef size_t rows
    cdef Fault fault = _known_scopes(store, &scopes)
    # The stretch is shared out, but each scope gets on.
    rows = max(<size_t>MAX_WALK_ROWS // max(scopes.size(), <size_t>1), <size_t>LEAST_WALK_ROWS)
    window.begin_scan()
    for i in range(scopes.size()):
        if not fault.ok():
            break
        fault = _walk(store, window, scopes.at(i).data(), now_us, rows, last, &is_cut)
        if is_cut and (not is_any_cut or memcmp(last, least, ORDER_BYTES) < 0):
            memcpy(least, last, ORDER_BYTES)
            is_any_cut = True
    if fault.ok():
        window.end_scan(<const char*>least if is_any_cut else <const char*>NULL)
    else:
        window.restart()
    return fault


cdef inline Fault _known_scopes(Store* store, List[string]* out) noexcept nogil:
    """The scopes that have jobs, from memory; read from disk when they are asked for the first time."""
    cdef List[string] found
    cdef size_t i
    cdef Fault fault
    if not store.scopes.is_complete():
        fault = list_scopes(store, &found)
        if not fault.ok():
            return fault
        for i in range(found.size()):
            store.scopes.add(found.at(i).data())
        store.scopes.set_complete()
    store.scopes.copy_to(out)
    return fault


cdef inline Fault _walk(
    Store* store, Window* window, const char* scope, int64_t now_us, size_t rows, char* last, bint* is_cut
) noexcept nogil:
    """Add rows of one scope to a window from its cursor on. `is_cut` when there may be more behind `last`."""
    cdef Cursor cursor
    cdef char[KEY_BYTES + 1] start
    cdef View job
    cdef size_t added = 0
    is_cut[0] = False
    state_prefix(start, scope, PENDING)
    memcpy(start + STATE_PREFIX_BYTES, window.cursor(), window.cursor_size())
    cursor.open_at(store, start, STATE_PREFIX_BYTES, start, STATE_PREFIX_BYTES + window.cursor_size())
    while cursor.is_on_row():
        if has_job_key(store, cursor.key()):
            if rows == 0 or added == store.settings.window_jobs // FILL_PART:
                is_cut[0] = True
                return Fault()
            rows -= 1
            memcpy(last, cursor.key().data() + PRIORITY_AT, ORDER_BYTES)
            if not view_at(&cursor, &job).ok():
                store.corrupt_rows.fetch_add(1)
            elif is_wanted(&window.kinds, job.kind) and not is_expired(&job, now_us):
                if is_gated(&job, now_us):
                    window.add(cursor.key().data(), bytes_of(cursor.value()), job.not_before)
                else:
                    window.add(cursor.key().data(), bytes_of(cursor.value()), -1)
                    added += 1
        cursor.step()
    return cursor.fault()


cdef inline Fault list_scopes(Store* store, List[string]* out) noexcept nogil:
    """Add the scopes that have rows, in key order, at the cost of one seek each."""
    cdef Cursor cursor
    cdef char[SCOPE_BYTES] scope
    cursor.open(store, NULL, 0)
    while cursor.is_on_row():
        if not has_job_key(store, cursor.key()):
            cursor.step()
            continue
        memcpy(scope, cursor.key().data(), SCOPE_BYTES)
        set_text(out.add(), scope, SCOPE_BYTES)
        if not cursor.skip_scope(scope, SCOPE_BYTES):
            break
    return cursor.fault()
