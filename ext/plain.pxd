"""Whether a Python value is plainly of a type and within bounds: exactly the type, no subclass. Needs the GIL.

A value that is not may still be right: who asks then asks telha_queue/arguments.py.
"""

from cpython.bytes cimport PyBytes_GET_SIZE
from libc.stdint cimport int64_t

from record cimport Bytes, is_printable_ascii

cdef extern from *:
    bint PyUnicode_IS_COMPACT_ASCII(object text) noexcept
    void* PyUnicode_DATA(object text) noexcept
    Py_ssize_t PyUnicode_GET_LENGTH(object text) noexcept
    int64_t PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1


cdef inline bint is_plain_text(value, Py_ssize_t limit) noexcept:
    """A str of 1 to `limit` characters, all of them printable ASCII."""
    cdef Bytes text
    if type(value) is not str or not PyUnicode_IS_COMPACT_ASCII(value):
        return False
    text.data = <const char*>PyUnicode_DATA(value)
    text.size = <size_t>PyUnicode_GET_LENGTH(value)
    return 0 < PyUnicode_GET_LENGTH(value) <= limit and is_printable_ascii(text)


cdef inline bint is_plain_bytes(value, int64_t limit) noexcept:
    """Bytes, not more than `limit`."""
    return type(value) is bytes and PyBytes_GET_SIZE(value) <= limit


cdef inline bint is_plain_int(value, int64_t low, int64_t high) except -1:
    """An int, not a bool, within bounds."""
    cdef int overflow = 0
    cdef int64_t number
    if type(value) is not int:
        return False
    number = PyLong_AsLongLongAndOverflow(value, &overflow)
    return overflow == 0 and low <= number <= high
