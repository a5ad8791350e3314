"""What a store knows about itself: the version of its format, and the latest time it has seen."""

from libc.stdint cimport uint64_t
from libc.string cimport memcmp
from libcpp.memory cimport unique_ptr

from keys cimport JOB_ID_BYTES, SCOPE_BYTES, get_be64
from lookup cimport ID_ROW_BYTES, get
from outcome cimport CODE_NOT_FOUND, CODE_UNSUPPORTED_VERSION, Fault, fault_corrupt, fault_of, fault_read
from rocksdb cimport Iterator, PinnableSlice, ReadOptions, Slice, WriteBatch
from store cimport IDS, META, Store, Visit


cdef inline Fault restore(Store* store) noexcept nogil:
    """Check the format of a store that was just opened, mark a new one, and set its clock."""
    cdef Visit visit
    cdef uint64_t last_created_at = 0
    cdef uint64_t seen_us = 0
    cdef Fault fault = visit.enter(store)  # the end of the process may close a store that was just opened
    if fault.ok():
        fault = _last_created_at(store, &last_created_at)
    if fault.ok():
        fault = _check_format(store, last_created_at == 0)
    if fault.ok():
        fault = _read_clock(store, &seen_us)
    if fault.ok():
        store.restore_clock(last_created_at, seen_us)
    return fault


cdef inline Fault _check_format(Store* store, bint is_empty) noexcept nogil:
    cdef PinnableSlice stored
    cdef WriteBatch batch
    cdef Slice name = Slice(b"format", 6)
    cdef Fault fault = get(store, META, name, &stored)
    if fault.code == CODE_NOT_FOUND and is_empty:
        batch.Put(store.database.family(META), name, Slice(b"1", 1))
        return store.commit(&batch)
    if fault.code == CODE_NOT_FOUND:
        return fault_corrupt(b"the format row is missing")
    if fault.ok() and not (stored.size() == 1 and memcmp(stored.data(), b"1", 1) == 0):
        return fault_of(CODE_UNSUPPORTED_VERSION)
    return fault


cdef inline Fault _read_clock(Store* store, uint64_t* seen_us) noexcept nogil:
    cdef PinnableSlice stored
    cdef Fault fault = get(store, META, Slice(b"clock", 5), &stored)
    if fault.code == CODE_NOT_FOUND:
        return Fault()  # never closed cleanly so far
    if fault.ok():
        if stored.size() != 8:
            return fault_corrupt(b"the clock row has a wrong length")
        seen_us[0] = get_be64(stored.data())
    return fault


cdef inline Fault _last_created_at(Store* store, uint64_t* out) noexcept nogil:
    """The created_at of the job with the greatest id: ids sort as created_at does."""
    cdef ReadOptions options
    cdef unique_ptr[Iterator] rows
    rows.reset(store.database.db().NewIterator(options, store.database.family(IDS)))
    rows.get().SeekToLast()
    if rows.get().Valid():
        if rows.get().key().size() != JOB_ID_BYTES or rows.get().value().size() != ID_ROW_BYTES:
            return fault_corrupt(b"the last id row has a wrong length")
        out[0] = get_be64(rows.get().value().data() + SCOPE_BYTES + 1)
    return fault_read(rows.get().status())
