"""The part of the RocksDB C++ API that the core uses, and no more.

Everything is declared noexcept: RocksDB reports through Status. (Running out of memory inside it ends the process.)
"""

from libcpp.string cimport string

cdef extern from "rocksdb/slice.h" namespace "rocksdb" nogil:
    cdef cppclass Slice:
        Slice() noexcept
        Slice(const char* data, size_t size) noexcept
        const char* data() noexcept
        size_t size() noexcept

    cdef cppclass PinnableSlice(Slice):
        PinnableSlice() noexcept
        void Reset() noexcept

cdef extern from "rocksdb/status.h" namespace "rocksdb" nogil:
    cdef cppclass Status:
        Status() noexcept
        bint ok() noexcept
        bint IsNotFound() noexcept
        bint IsCorruption() noexcept
        bint IsNoSpace() noexcept
        string ToString() noexcept

    Status aborted "rocksdb::Status::Aborted"(const char* why) noexcept

cdef extern from "rocksdb/options.h" namespace "rocksdb" nogil:
    cdef cppclass ReadOptions:
        ReadOptions() noexcept
        const Slice* iterate_upper_bound

cdef extern from "rocksdb/iterator.h" namespace "rocksdb" nogil:
    cdef cppclass Iterator:
        bint Valid() noexcept
        void Seek(const Slice& target) noexcept
        void SeekToLast() noexcept
        void Next() noexcept
        void Prev() noexcept
        Slice key() noexcept
        Slice value() noexcept
        Status status() noexcept

cdef extern from "rocksdb/write_batch.h" namespace "rocksdb" nogil:
    cdef cppclass WriteBatch:
        WriteBatch() noexcept
        Status Put(ColumnFamilyHandle* family, const Slice& key, const Slice& value) noexcept
        Status Delete(ColumnFamilyHandle* family, const Slice& key) noexcept
        size_t Count() noexcept

cdef extern from "rocksdb/snapshot.h" namespace "rocksdb" nogil:
    cdef cppclass Snapshot:
        pass

cdef extern from "rocksdb/db.h" namespace "rocksdb" nogil:
    cdef cppclass ColumnFamilyHandle:
        pass

    cdef cppclass DB:
        Status Get(
            const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key, PinnableSlice* value
        ) noexcept
        Iterator* NewIterator(const ReadOptions& options, ColumnFamilyHandle* family) noexcept
