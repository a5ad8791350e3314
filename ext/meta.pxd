"""What a store knows about itself: the version of its format, and the latest time it has seen."""

from libc.stdint cimport INT64_MAX, int64_t, uint64_t
from libc.string cimport memcmp
from libcpp.memory cimport unique_ptr

from keys cimport JOB_ID_BYTES, SCOPE_BYTES, get_be64, make_job_id, put_be64
from lookup cimport ID_ROW_BYTES, get
from outcome cimport CODE_NOT_FOUND, CODE_UNSUPPORTED_VERSION, Fault, fault_corrupt, fault_of, fault_read
from rocksdb cimport Iterator, PinnableSlice, ReadOptions, Slice, WriteBatch
from store cimport IDS, META, Cursor, Store, Visit

cdef extern from "clocks.hpp" namespace "telha" nogil:
    void system_clocks(int64_t* wall_us, int64_t* monotonic_ns) noexcept

cdef enum:
    CLOCK_BYTES = 8
    FLOOR_BYTES = 8
    DAMAGED_FLOOR_US = 17_179_869_184  # more than the random part of any floor, see fence.pxd
    ID_TIME_BYTES = 8


cdef inline Fault restore(Store* store) noexcept nogil:
    """Check the format of a store that was just opened, mark a new one, and set its clock."""
    cdef Visit visit
    cdef uint64_t last_created_at = 0
    cdef uint64_t seen_us = 0
    cdef bint has_ids = False
    cdef Fault fault = visit.enter(store)  # the end of the process may close a store that was just opened
    if fault.ok():
        fault = _last_created_at(store, &last_created_at, &has_ids)
    if fault.ok():
        fault = _check_format(store, not has_ids)
    if fault.ok():
        fault = _read_clock(store, &seen_us)
    if fault.ok():
        store.restore_clock(last_created_at, seen_us)
        fault = _read_floor(store)
    return fault


cdef inline Fault _check_format(Store* store, bint is_empty) noexcept nogil:
    cdef PinnableSlice stored
    cdef Cursor jobs
    cdef WriteBatch batch
    cdef Slice name = Slice(b"format", 6)
    cdef Fault fault = get(store, META, name, &stored)
    if fault.code == CODE_NOT_FOUND and is_empty:
        jobs.open(store, NULL, 0)
        is_empty = not jobs.is_on_row()
    if fault.code == CODE_NOT_FOUND and is_empty:
        batch.Put(store.database.family(META), name, Slice(b"1", 1))
        return store.commit(&batch)
    if fault.code == CODE_NOT_FOUND:
        return fault_corrupt(b"the format row is missing")
    if fault.ok() and not (stored.size() == 1 and memcmp(stored.data(), b"1", 1) == 0):
        return fault_of(CODE_UNSUPPORTED_VERSION)
    return fault


cdef inline Fault _read_clock(Store* store, uint64_t* seen_us) noexcept nogil:
    """The time of the last clean close. A damaged row bears no witness, and the next close writes it anew."""
    cdef PinnableSlice stored
    cdef Fault fault = get(store, META, Slice(b"clock", 5), &stored)
    if fault.code == CODE_NOT_FOUND:
        return Fault()  # never closed cleanly so far
    if fault.ok() and is_clock(stored):
        seen_us[0] = get_be64(stored.data())
    return fault


cdef inline Fault _read_floor(Store* store) noexcept nogil:
    """The floor of generations. A damaged row means that there is one; it is a time, so a later one is above it."""
    cdef PinnableSlice stored
    cdef Fault fault = get(store, META, Slice(b"floor", 5), &stored)
    if fault.code == CODE_NOT_FOUND:
        return Fault()  # not restored so far
    if fault.ok():
        store.generation_floor = min(store.last_seen_us(), <uint64_t>INT64_MAX - DAMAGED_FLOOR_US) + DAMAGED_FLOOR_US
        if is_floor(stored):
            store.generation_floor = get_be64(stored.data())
    return fault


cdef inline bint is_floor(const Slice& stored) noexcept nogil:
    """Whether a value is a generation floor."""
    return stored.size() == FLOOR_BYTES and 0 < get_be64(stored.data()) <= <uint64_t>INT64_MAX


cdef inline void put_floor(Store* store, WriteBatch* batch) noexcept nogil:
    """Write the floor that leases start at."""
    cdef char[FLOOR_BYTES] value
    put_be64(value, store.generation_floor)
    batch.Put(store.database.family(META), Slice(b"floor", 5), Slice(value, FLOOR_BYTES))


cdef inline void put_clock(Store* store, WriteBatch* batch) noexcept nogil:
    """Write the latest time that the store knows of."""
    cdef char[CLOCK_BYTES] value
    put_be64(value, store.last_seen_us())
    batch.Put(store.database.family(META), Slice(b"clock", 5), Slice(value, CLOCK_BYTES))


cdef inline bint is_clock(const Slice& stored) noexcept nogil:
    """Whether a value is a time."""
    return stored.size() == CLOCK_BYTES and get_be64(stored.data()) <= <uint64_t>INT64_MAX


cdef inline Fault _last_created_at(Store* store, uint64_t* out, bint* has_ids) noexcept nogil:
    """The created_at of the job with the greatest id: ids sort as created_at does.

    Damaged rows behind it are passed by. Their keys say when their jobs were made, if it is the keys that are sound;
    one that lies in the future is not believed, because the clock would stay there.
    """
    cdef ReadOptions options
    cdef unique_ptr[Iterator] rows
    cdef int64_t wall_us = 0
    cdef int64_t monotonic_ns = 0
    cdef uint64_t made_us
    system_clocks(&wall_us, &monotonic_ns)
    rows.reset(store.database.db().NewIterator(options, store.database.family(IDS)))
    rows.get().SeekToLast()
    while rows.get().Valid():
        has_ids[0] = True
        if rows.get().key().size() == JOB_ID_BYTES:
            if rows.get().value().size() == ID_ROW_BYTES:
                made_us = get_be64(rows.get().value().data() + SCOPE_BYTES + 1)
                if is_made_at(rows.get().key().data(), made_us):
                    out[0] = max(out[0], made_us)
                    break
            made_us = id_time_us(rows.get().key().data())
            if is_made_at(rows.get().key().data(), made_us) and made_us <= <uint64_t>wall_us:
                out[0] = max(out[0], made_us)
        rows.get().Prev()
    return fault_read(rows.get().status())


cdef inline uint64_t id_time_us(const char* job_id) noexcept nogil:
    """The created_at that an id was made of, if it is one of ours."""
    cdef uint64_t head = get_be64(job_id)
    return (head >> 16) * 1000 + (head & 0xFFF)


cdef inline bint is_made_at(const char* job_id, uint64_t created_at_us) noexcept nogil:
    """Whether an id is one that a job of that created_at gets."""
    cdef char[JOB_ID_BYTES] likely
    make_job_id(likely, created_at_us, 0)
    return memcmp(likely, job_id, ID_TIME_BYTES) == 0
