"""Values of a record as Python objects, and back. Needs the GIL throughout."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.long cimport PyLong_Check
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint64_t
from libcpp.string cimport string

from arguments cimport bytes_of, error, utf8_of
from record cimport Bytes, is_nil, nil

cdef enum:
    EVENTS_AT = 14

cdef extern from "record.hpp" namespace "telha::record" nogil:
    enum:
        kWrittenFields
        kKnownFields

cdef extern from "msgpack_reader.hpp" namespace "telha::msgpack" nogil:
    enum:
        kMaxDepth

    ctypedef enum Type:
        kNil
        kBool
        kInt
        kStr
        kBin
        kArray

    ctypedef struct Value:
        Type type
        bint is_negative
        uint64_t number
        Bytes bytes

    cppclass Reader:
        Reader() noexcept
        Reader(const char* data, size_t size) noexcept
        bint read(Value* out) noexcept

cdef extern from "msgpack_writer.hpp" namespace "telha::msgpack" nogil:
    enum:
        kMaxHeaderBytes

    cppclass Writer:
        Writer() noexcept
        Writer(char* out) noexcept
        char* at() noexcept
        void nil() noexcept
        void boolean(bint value) noexcept
        void uint(uint64_t number) noexcept
        void negative(int64_t number) noexcept
        void array(uint64_t count) noexcept
        void text_header(uint64_t size) noexcept
        void binary_header(uint64_t size) noexcept


cdef inline object bytes_or_none(const Bytes& span):
    return None if is_nil(span) else PyBytes_FromStringAndSize(span.data, <Py_ssize_t>span.size)


cdef inline object text_or_none(const Bytes& span):
    return None if is_nil(span) else PyUnicode_DecodeUTF8(span.data, <Py_ssize_t>span.size, NULL)


cdef inline object int_or_none(int64_t number):
    return None if number < 0 else number


cdef inline object headers_of(const Bytes& span):
    """A read-only mapping of names and values that stand in turn in an array, or of none."""
    from types import MappingProxyType

    cdef tuple flat = () if is_nil(span) else read_values(span, 1)[0]
    return MappingProxyType(dict(zip(flat[::2], flat[1::2])))


cdef inline tuple read_values(const Bytes& span, uint64_t count):
    """The values of a span that `decode` has accepted."""
    cdef Reader reader = Reader(span.data, span.size)
    return _read_many(&reader, count)


cdef inline tuple _read_many(Reader* reader, uint64_t count):
    cdef list values = []
    for _ in range(count):
        values.append(_read(reader))
    return tuple(values)


cdef inline object _read(Reader* reader):
    cdef Value value
    reader.read(&value)
    if value.type == kNil:
        return None
    if value.type == kBool:
        return value.number == 1
    if value.type == kInt:
        return <int64_t>value.number if value.is_negative else value.number
    if value.type == kArray:
        return _read_many(reader, value.number)
    return bytes_or_none(value.bytes) if value.type == kBin else text_or_none(value.bytes)


cdef inline int append_record(string* out, tuple row) except -1:
    """Append the fields of a telha_queue.record.RecordFields as one array."""
    cdef Py_ssize_t known = kKnownFields
    if len(row) != kKnownFields + 1:
        raise error("InvalidType", "a record is encoded from RecordFields")
    while not row[kKnownFields] and known > kWrittenFields and row[known - 1] is None:
        known -= 1
    append_array_header(out, len(row[kKnownFields]) + known)
    for i, field in enumerate(row[:known] + row[kKnownFields]):
        if i == EVENTS_AT:
            append_events(out, field)
        else:
            append_value(out, field, 1)
    return 0


cdef inline int append_events(string* out, events) except -1:
    append_array_header(out, len(events))
    for event in events:
        values = tuple(event) + getattr(event, "extra", ())
        if values[3:] == (1, None):  # only merged heartbeats are written with a count
            values = values[:3]
        append_value(out, values, 2)
    return 0


cdef inline int append_array_header(string* out, size_t count) except -1:
    cdef char[kMaxHeaderBytes] header
    cdef Writer writer = Writer(header)
    writer.array(count)
    out.append(header, <size_t>(writer.at() - header))
    return 0


cdef inline int append_value(string* out, value, int depth) except -1:
    """Append one value that stands inside `depth` arrays."""
    cdef char[kMaxHeaderBytes] header
    cdef Writer writer = Writer(header)
    cdef Bytes span = nil()
    if value is None:
        writer.nil()
    elif value is True or value is False:
        writer.boolean(value is True)
    elif PyLong_Check(value):
        _write_int(&writer, value)
    elif isinstance(value, str):
        span = utf8_of("text", value)
        writer.text_header(span.size)
    elif isinstance(value, bytes):
        span = bytes_of("bytes", value)
        writer.binary_header(span.size)
    elif isinstance(value, (tuple, list)):
        if depth >= kMaxDepth:
            raise error("InvalidArgument", f"not a record: more than {kMaxDepth} levels of arrays")
        append_array_header(out, len(value))
        for item in value:
            append_value(out, item, depth + 1)
        return 0
    else:
        raise error("InvalidType", f"not a record: it cannot hold a {type(value).__name__}")
    out.append(header, <size_t>(writer.at() - header))
    if span.size:
        out.append(span.data, span.size)
    return 0


cdef inline int _write_int(Writer* writer, value) except -1:
    try:
        if value < 0:
            writer.negative(<int64_t>value)
        else:
            writer.uint(<uint64_t>value)
    except OverflowError:
        raise error("InvalidArgument", "not a record: an integer of more than 64 bits") from None
    return 0
