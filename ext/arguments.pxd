"""Arguments that come from Python, checked before any of them reaches C++. Needs the GIL throughout."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.long cimport PyLong_Check
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport INT64_MAX, UINT8_MAX, UINT64_MAX, int16_t, int64_t, uint64_t

from command cimport CAUSE_CRASH, PROGRESS, Cause, Command, Verb
from record cimport Bytes, kWholeProgress, nil
from backoff cimport Policy


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


cdef inline int64_t time_of(str name, value) except -1:
    return <int64_t>uint_of(name, value, INT64_MAX)


cdef inline int read_command(command, Command* out) except -1:
    """Read a telha_queue.command.Command, whose texts the caller holds."""
    out.verb = <Verb><int>uint_of("verb", command.verb, PROGRESS)
    out.worker_id = utf8_of("worker_id", command.worker_id)
    out.lease_generation = uint_of("lease_generation", command.lease_generation, UINT64_MAX)
    out.ttl_us = time_of("ttl_us", command.ttl_us)
    out.detail = utf8_of("detail", command.detail)
    out.continuation = bytes_of("continuation", command.continuation)
    out.retryable = bool(command.retryable)
    out.accept_late = bool(command.accept_late)
    out.delay_us = -1 if command.delay_us is None else time_of("delay_us", command.delay_us)
    out.cause = <Cause><int>uint_of("cause", command.cause, CAUSE_CRASH)
    out.not_before = -1 if command.not_before is None else time_of("not_before", command.not_before)
    out.priority = -1 if command.priority is None else <int16_t>uint_of("priority", command.priority, UINT8_MAX)
    out.durable = bool(command.durable)
    out.progress = <int64_t>uint_of("progress", command.progress, kWholeProgress)
    out.result = nil() if command.result is None else bytes_of("result", command.result)
    out.result_bytes = -1 if command.result_bytes is None else time_of("result_bytes", command.result_bytes)
    return 0


cdef inline Policy read_policy(policy) except *:
    """Read a telha_queue.backoff.Policy."""
    cdef Policy out
    out.max_attempts = uint_of("max_attempts", policy.max_attempts, UINT64_MAX)
    out.lease_grace_us = time_of("lease_grace_us", policy.lease_grace_us)
    out.backoff_base_secs = uint_of("backoff_base_secs", policy.backoff_base_secs, UINT64_MAX)
    out.backoff_factor = uint_of("backoff_factor", policy.backoff_factor, UINT64_MAX)
    out.backoff_cap_secs = uint_of("backoff_cap_secs", policy.backoff_cap_secs, UINT64_MAX)
    out.max_crashes = uint_of("max_crashes", policy.max_crashes, UINT64_MAX)
    out.generation_floor = uint_of("generation_floor", policy.generation_floor, UINT64_MAX)
    return out


cdef inline object error(str name, str message):
    from telha_queue import errors

    return getattr(errors, name)(message)
