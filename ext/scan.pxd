"""The pending scan: which job is next. This file defines the order in which jobs are leased.

    the first row of [scope][Pending], in key order, that is due and of a wanted kind

A Cursor walks one bounded prefix. It lives inside one verb and never crosses to Python. An iterator that has failed
looks like one that has ended, so every walk ends by asking `fault()`.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcmp, memcpy
from libcpp.memory cimport unique_ptr
from libcpp.string cimport string

from keys cimport (
    KEY_BYTES,
    PENDING,
    SCOPE_BYTES,
    STATE_PREFIX_BYTES,
    prefix_successor,
    state_prefix,
)
from record cimport Bytes, View
from rocksdb cimport Iterator, ReadOptions, Slice
from store cimport (
    CLAIM_NONE,
    CLAIM_OTHER,
    JOBS,
    Claim,
    Fault,
    List,
    Name,
    Row,
    Store,
    fault_read,
    set_text,
    view_row,
)

cdef enum:
    MAX_KINDS = 64

cdef struct KindPattern:
    Bytes text
    bint is_exact

# A filter; 0 patterns want every kind.
cdef struct Kinds:
    size_t count
    KindPattern[MAX_KINDS] patterns

# How a walk over rows is told what to pass over.
cdef struct Wanted:
    const Kinds* kinds
    int64_t now_us


cdef cppclass Cursor:
    # Declared in the order in which they must outlive each other: the iterator goes first.
    char[KEY_BYTES] bound
    Slice upper
    ReadOptions options
    unique_ptr[Iterator] rows

    inline void open(Store* store, const char* prefix, size_t size) noexcept nogil:
        """Stand on the first row that begins with the prefix. An empty prefix walks all rows."""
        this.open_at(store, prefix, size, prefix, size)

    inline void open_at(
        Store* store, const char* prefix, size_t size, const char* start, size_t start_size
    ) noexcept nogil:
        """Like open, but stand on the first of these rows that is not before `start`, which may be anywhere."""
        cdef size_t bound_size
        memcpy(this.bound, prefix, size)
        bound_size = prefix_successor(this.bound, size)
        if bound_size > 0:
            this.upper = Slice(this.bound, bound_size)
            this.options.iterate_upper_bound = &this.upper
        this.rows.reset(store.database.db().NewIterator(this.options, store.database.family(JOBS)))
        if start_size >= size and memcmp(start, prefix, size) < 0:
            this.seek(prefix, size)
        else:
            this.seek(start, start_size)

    inline void seek(const char* key, size_t size) noexcept nogil:
        this.rows.get().Seek(Slice(key, size))

    inline bint is_on_row() noexcept nogil:
        return this.rows.get().Valid()

    inline void step() noexcept nogil:
        this.rows.get().Next()

    inline Slice key() noexcept nogil:
        return this.rows.get().key()

    inline Slice value() noexcept nogil:
        return this.rows.get().value()

    inline Fault fault() noexcept nogil:
        return fault_read(this.rows.get().status())

    inline Fault view(View* out) noexcept nogil:
        """Decode the row that the cursor stands on."""
        return view_row(this.key().data(), this.value().data(), this.value().size(), out)

    inline bint skip_scope(char* scope) noexcept nogil:
        """Move on to the first row of a scope after this one; false when there is none."""
        cdef char[SCOPE_BYTES] after
        cdef size_t size
        memcpy(after, scope, SCOPE_BYTES)
        size = prefix_successor(after, SCOPE_BYTES)
        if size == 0:
            return False
        this.seek(after, size)
        return this.is_on_row()


cdef inline bint is_wanted(const Kinds* kinds, Bytes kind) noexcept nogil:
    """Whether a filter lets a kind through: a pattern is a prefix, or the whole kind when it is exact."""
    cdef size_t i
    cdef const KindPattern* pattern
    if kinds == NULL or kinds.count == 0:
        return True
    for i in range(kinds.count):
        pattern = &kinds.patterns[i]
        if pattern.text.size > kind.size or (pattern.is_exact and pattern.text.size != kind.size):
            continue
        if memcmp(pattern.text.data, kind.data, pattern.text.size) == 0:
            return True
    return False


cdef inline bint is_gated(const View* job, int64_t now_us) noexcept nogil:
    return job.not_before > now_us


cdef inline bint has_job_key(Store* store, Slice key) noexcept nogil:
    """Whether a key of the jobs family has the right length; counts it as a corrupt row if not."""
    if key.size() == KEY_BYTES:
        return True
    store.corrupt_rows.fetch_add(1)
    return False


cdef inline Fault scan_pending(
    Store* store, const char* scope, Wanted wanted, size_t n, List[Row]* found, string* busy
) noexcept nogil:
    """Add up to `n` rows of one scope that are next in order, passing over gated, unwanted and corrupt ones.

    Jobs that another lease is taking are passed over too. At a job that some other verb is at work on it stops and
    names it in `busy`, for what the verb leaves decides whether it is next. Requires the store's mutex, under which
    claims come and go.
    """
    cdef Cursor cursor
    cdef char[STATE_PREFIX_BYTES] prefix
    cdef View job
    cdef Claim claim
    state_prefix(prefix, scope, PENDING)
    cursor.open(store, prefix, STATE_PREFIX_BYTES)
    while n > 0 and cursor.is_on_row():
        if has_job_key(store, cursor.key()) and _is_next(store, &cursor, &job, wanted):
            claim = store.claims.of(Name(job.job_id.data, job.job_id.size))
            if claim == CLAIM_OTHER:
                set_text(busy, job.job_id.data, job.job_id.size)
                break
            if claim == CLAIM_NONE:
                found.add().set(
                    cursor.key().data(), cursor.key().size(), cursor.value().data(), cursor.value().size()
                )
                n -= 1
        cursor.step()
    return cursor.fault()


cdef inline bint _is_next(Store* store, Cursor* cursor, View* job, Wanted wanted) noexcept nogil:
    """Whether the row that the cursor stands on decodes, is due and is of a wanted kind."""
    if not cursor.view(job).ok():
        store.corrupt_rows.fetch_add(1)
        return False
    return not is_gated(job, wanted.now_us) and is_wanted(wanted.kinds, job.kind)


cdef inline Fault scan_pending_any(
    Store* store, Wanted wanted, size_t n, List[Row]* found, string* busy
) noexcept nogil:
    """The same over all scopes: the rows that are first by priority, created_at and id."""
    cdef List[string] scopes
    cdef Fault fault = list_scopes(store, &scopes)
    cdef size_t i
    for i in range(scopes.size()):
        if not fault.ok():
            return fault
        fault = scan_pending(store, scopes.at(i).data(), wanted, n, found, busy)
        if busy.size() > 0:
            return fault
        keep_first(found, n)
    return fault


cdef extern from "order.hpp" namespace "telha" nogil:
    # Sorts by what follows scope and state in the key, and drops all but the first n.
    void keep_first(List[Row]* rows, size_t n) noexcept


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
        if not cursor.skip_scope(scope):
            break
    return cursor.fault()


cdef inline Fault next_due(
    Store* store, const char* scope, Wanted wanted, int64_t* due_us
) noexcept nogil:
    """Lower `due_us` to the time at which the next gated row of a wanted kind in this scope opens."""
    cdef Cursor cursor
    cdef char[STATE_PREFIX_BYTES] prefix
    cdef View job
    state_prefix(prefix, scope, PENDING)
    cursor.open(store, prefix, STATE_PREFIX_BYTES)
    while cursor.is_on_row():
        if (
            has_job_key(store, cursor.key())
            and cursor.view(&job).ok()
            and is_gated(&job, wanted.now_us)
            and is_wanted(wanted.kinds, job.kind)
        ):
            due_us[0] = min(due_us[0], job.not_before)
        cursor.step()
    return cursor.fault()
