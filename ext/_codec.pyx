"""The Python face of keys, records and transitions, and the job itself. Links nothing.

Importing it imports nothing: `telha_queue.job` is built on it, so names of ours are looked up when first needed.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport INT64_MAX, UINT32_MAX, UINT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libcpp.string cimport string

cimport keys
cimport backoff
cimport transitions
from arguments cimport bytes_of, error, read_command, read_policy, require_length, uint_of
from command cimport APPLIED, Command
from record cimport Bytes, View, decode, is_nil, kOk, kUnsupportedVersion, kWholeProgress, matches_key
from row cimport Row, row_of
from values cimport append_record, bytes_or_none, headers_of, int_or_none, read_values, text_or_none

cdef enum:
    EVENT_FIELDS = 5


include "job_record.pxi"


# Keys.

def encode_key(bytes scope not None, state, priority, created_at, bytes job_id not None):
    """Build the 58-byte key of a job."""
    cdef char[keys.KEY_BYTES] key
    require_length("scope", scope, keys.SCOPE_BYTES)
    require_length("job_id", job_id, keys.JOB_ID_BYTES)
    keys.encode_key(
        key, PyBytes_AS_STRING(scope),
        <uint8_t>uint_of("state", state, keys.DEAD), <uint8_t>uint_of("priority", priority, 255),
        uint_of("created_at", created_at, INT64_MAX), PyBytes_AS_STRING(job_id),
    )
    return PyBytes_FromStringAndSize(key, keys.KEY_BYTES)


def decode_key(bytes key not None):
    """Take a key apart: (scope, state, priority, created_at, job_id)."""
    require_length("key", key, keys.KEY_BYTES)
    cdef const char* c_key = PyBytes_AS_STRING(key)
    return (
        key[:keys.SCOPE_BYTES],
        keys.key_state(c_key),
        keys.key_priority(c_key),
        keys.key_created_at_us(c_key),
        PyBytes_FromStringAndSize(keys.key_job_id(c_key), keys.JOB_ID_BYTES),
    )


def patch_state(bytes key not None, state):
    """Return the key of the same job in another state."""
    require_length("key", key, keys.KEY_BYTES)
    cdef bytes patched = PyBytes_FromStringAndSize(PyBytes_AS_STRING(key), keys.KEY_BYTES)
    keys.patch_state(PyBytes_AS_STRING(patched), <uint8_t>uint_of("state", state, keys.DEAD))
    return patched


def prefix_successor(bytes prefix not None):
    """Return the least byte string behind all that begin with the prefix, or None when there is none."""
    cdef bytes successor = PyBytes_FromStringAndSize(PyBytes_AS_STRING(prefix), PyBytes_GET_SIZE(prefix))
    if PyBytes_GET_SIZE(prefix) < 2:  # Python shares the short ones, so they are not ours to write to
        return bytes([prefix[0] + 1]) if prefix and prefix[0] != 0xFF else None
    cdef size_t size = keys.prefix_successor(PyBytes_AS_STRING(successor), <size_t>len(successor))
    return successor[:size] if size else None


def make_job_id(created_at, random):
    """Return the bytes of a UUIDv7 that sorts as `created_at` does and ends in 62 bits of `random`."""
    cdef char[keys.JOB_ID_BYTES] job_id
    cdef uint64_t created_at_us = uint_of("created_at", created_at, INT64_MAX)
    keys.make_job_id(job_id, created_at_us, uint_of("random", random, UINT64_MAX))
    return PyBytes_FromStringAndSize(job_id, keys.JOB_ID_BYTES)


# Records.

def encode_record(fields):
    """Write a record in its canonical form. Raises InvalidArgument for fields that no reader would accept."""
    cdef string out
    cdef View view
    cdef const char* why = NULL
    out.push_back(1)
    append_record(&out, tuple(fields))
    if decode(out.data(), out.size(), &view, &why) != kOk:
        raise error("InvalidArgument", f"not a record: {(<bytes>why).decode()}")
    return PyBytes_FromStringAndSize(out.data(), <Py_ssize_t>out.size())


def decode_record(bytes value not None):
    """Read and check a record. Raises CorruptRecord, or UnsupportedVersion for a newer release's format."""
    cdef View view
    _load(bytes_of("value", value), &view)
    from telha_queue.record import RecordFields

    return RecordFields(
        job_id=bytes_or_none(view.job_id),
        kind=text_or_none(view.kind),
        payload=bytes_or_none(view.payload),
        priority=view.priority,
        created_at=view.created_at,
        state=view.state,
        attempts=view.attempts,
        lease_generation=view.lease_generation,
        worker_id=text_or_none(view.worker_id),
        lease_deadline=int_or_none(view.lease_deadline),
        not_before=int_or_none(view.not_before),
        idempotency_key=text_or_none(view.idempotency_key),
        max_attempts=int_or_none(view.max_attempts),
        continuation=bytes_or_none(view.continuation),
        events=_events(&view),
        payload_bytes=view.payload_bytes,
        dead_reason=text_or_none(view.dead_reason),
        reaped_worker_id=text_or_none(view.reaped_worker_id),
        events_dropped=view.events_dropped,
        crashes=view.crashes,
        lease_ttl_us=int_or_none(view.lease_ttl_us),
        headers=None if is_nil(view.headers) else read_values(view.headers, 1)[0],
        expires_at=int_or_none(view.expires_at),
        progress=int_or_none(view.progress),
        progress_text=text_or_none(view.progress_text),
        durable_continuation=bytes_or_none(view.durable_continuation),
        result=bytes_or_none(view.result),
        result_bytes=int_or_none(view.result_bytes),
        extra=read_values(view.extra, view.extra_count),
    )


# Transitions.

def step(bytes value not None, command, now_us, policy):
    """Apply a verb to a stored record; return the new one or the number of the Refusal. See transitions.py."""
    cdef View before
    cdef Command c_command
    cdef backoff.Policy c_policy = read_policy(policy)
    cdef string after
    _load(bytes_of("value", value), &before)
    read_command(command, &c_command)
    cdef int refusal = transitions.apply(
        &before, &c_command, <int64_t>uint_of("now_us", now_us, INT64_MAX), &c_policy, &after
    )
    if refusal != APPLIED:
        return refusal
    return PyBytes_FromStringAndSize(after.data(), <Py_ssize_t>after.size())


def backoff_us(policy, attempts):
    """Delay in microseconds before attempt number `attempts` + 1."""
    cdef backoff.Policy c_policy = read_policy(policy)
    return backoff.backoff_us(&c_policy, <uint32_t>uint_of("attempts", attempts, UINT32_MAX))


# What the above are made of.

cdef int _load(Bytes value, View* view) except -1:
    cdef const char* why = NULL
    cdef int decoded = decode(value.data, value.size, view, &why)
    if decoded == kOk:
        return 0
    name = "UnsupportedVersion" if decoded == kUnsupportedVersion else "CorruptRecord"
    raise error(name, f"record: {(<bytes>why).decode()}")


cdef tuple _events(const View* view):
    types = _types()
    cdef list events = []
    for values in read_values(view.events, 0 if is_nil(view.events) else 1)[0]:
        events.append(types.JobEvent(*values) if len(values) <= EVENT_FIELDS else types.WiderEvent.of(values))
    return tuple(events)


@cython.final
cdef class _Types:
    """The classes that fields are made of."""

    cdef readonly object UUID
    cdef readonly object Scope
    cdef readonly object JobEvent
    cdef readonly object WiderEvent
    cdef readonly tuple states


cdef _Types _loaded = None


cdef _Types _types():
    global _loaded
    if _loaded is None:
        from uuid import UUID

        from telha_queue.job import JobEvent, JobState
        from telha_queue.record import WiderEvent
        from telha_queue.scope import Scope

        types = _Types()
        types.UUID, types.Scope, types.JobEvent, types.WiderEvent = UUID, Scope, JobEvent, WiderEvent
        types.states = tuple(JobState)
        _loaded = types
    return _loaded
