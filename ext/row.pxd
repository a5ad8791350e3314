"""A row of the jobs family, as Cython sees it. row.hpp says who may hold one."""

from libc.stdint cimport uint8_t

from record cimport Bytes, NewEvent, View

cdef extern from "row.hpp" namespace "telha" nogil:
    cdef cppclass Row:
        Row() noexcept
        bint is_null() noexcept
        const char* key() noexcept
        const char* job_id() noexcept
        Bytes value() noexcept

    Row row_of "telha::Row::of"(const char* key, const Bytes& value) noexcept

cdef extern from "record.hpp" namespace "telha::record" nogil:
    Row encode_row(const char* key, const View& view, const NewEvent* appended) noexcept
