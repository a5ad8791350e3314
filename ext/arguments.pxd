"""Arguments that come from Python, checked before any of them reaches C++. Needs the GIL throughout."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.long cimport PyLong_Check
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport uint64_t

from record cimport Bytes


cdef inline uint64_t uint_of(str name, value, uint64_t limit) except? 0:
    """An integer from 0 to `limit`; neither a bool nor anything that merely converts to an integer."""
    if not PyLong_Check(value) or isinstance(value, bool):
        raise error("InvalidType", f"{name} is an int, not {type(value).__name__}")
    if not 0 <= value <= limit:
        raise error("InvalidArgument", f"{name} is an integer from 0 to {limit}")
    return value


cdef inline Bytes utf8_of(str name, value) except *:
    """The bytes of a str, which keeps them as long as it lives; nil for None."""
    cdef Bytes span
    cdef Py_ssize_t size = 0
    span.data = NULL
    if value is not None:
        if not isinstance(value, str):
            raise error("InvalidType", f"{name} is a str, not {type(value).__name__}")
        try:
            span.data = PyUnicode_AsUTF8AndSize(value, &size)
        except UnicodeEncodeError:
            raise error("InvalidArgument", f"{name} is text that UTF-8 can hold") from None
    span.size = <size_t>size
    return span


cdef inline Bytes bytes_of(str name, value) except *:
    cdef Bytes span
    if not isinstance(value, bytes):
        raise error("InvalidType", f"{name} is bytes, not {type(value).__name__}")
    span.data = PyBytes_AS_STRING(value)
    span.size = <size_t>PyBytes_GET_SIZE(value)
    return span


cdef inline int require_length(str name, bytes value, Py_ssize_t size) except -1:
    if PyBytes_GET_SIZE(value) != size:
        raise error("InvalidArgument", f"{name} is {size} bytes, not {PyBytes_GET_SIZE(value)}")
    return 0


cdef inline object error(str name, str message):
    from telha_queue import errors

    return getattr(errors, name)(message)
