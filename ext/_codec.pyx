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
from record cimport Bytes, View, decode, is_nil, kOk, kUnsupportedVersion, matches_key
from row cimport Row, row_of
from values cimport append_record, bytes_or_none, headers_of, int_or_none, read_values, text_or_none

cdef enum:
    EVENT_FIELDS = 5


@cython.final
@cython.freelist(256)
@cython.no_gc  # nothing that it refers to refers to a record, and a fetch of a thousand must not start a collection
cdef class JobRecord:
    """A job as it was when a verb returned it. Immutable; equal when key and stored bytes are equal.

    It keeps the stored row and makes a value of a field when the field is read. A leased record is the token of
    its lease: pass it to `extend`, `complete` and the other fenced verbs.
    """

    # Filled once, by __init__ or by `_rocks`, which has checked the row: no later call can exchange what _view points
    # into. Until then it is null, and every field raises.
    def __init__(self, bytes key not None, bytes value not None, source=None):
        if not self._row.is_null():
            raise TypeError("a JobRecord is made once")
        if PyBytes_GET_SIZE(key) != keys.KEY_BYTES:
            raise error("CorruptRecord", f"key: {len(key)} bytes instead of {keys.KEY_BYTES}")
        self._row = row_of(PyBytes_AS_STRING(key), bytes_of("value", value))
        try:
            self.view()
        except BaseException:
            self._row = Row()
            raise
        self._source = source

    def __dealloc__(self):
        del self._view

    cdef const View* view(self) except NULL:
        cdef View* view
        if self._view == NULL:
            if self._row.is_null():
                raise error("InvalidType", "a JobRecord comes from a queue")
            view = new View()
            try:
                _load(self._row.value(), view)
                if not matches_key(view[0], self._row.key()):
                    raise error("CorruptRecord", "record: stands under the key of another job or state")
            except BaseException:
                del view
                raise
            self._view = view
        return self._view

    @property
    def key(self):
        """The 58 bytes the row is stored under. Internal: docs/format.md may change them."""
        self.view()
        return PyBytes_FromStringAndSize(self._row.key(), keys.KEY_BYTES)

    @property
    def value(self):
        """The row as it is stored. Internal, like `key`."""
        self.view()
        return bytes_or_none(self._row.value())

    @property
    def scope(self):
        """Whose job it is, with its name when the store has it."""
        cdef bytes scope = self.key[:keys.SCOPE_BYTES]
        return _types().Scope(scope) if self._source is None else self._source.scope_of(scope)

    @property
    def job_id(self):
        """The id, a UUIDv7: ids sort in the order in which jobs were enqueued."""
        return _types().UUID(bytes=bytes_or_none(self.view().job_id))

    @property
    def kind(self):
        """What sort of work it is."""
        return text_or_none(self.view().kind)

    @property
    def payload(self):
        """What the job is about. A long one is read from the store now: StoreClosed after close."""
        if self._payload is None:
            if not is_nil(self.view().payload):
                self._payload = bytes_or_none(self.view().payload)
            elif self._source is not None:
                self._payload = self._source.load_payload(bytes_or_none(self.view().job_id))
            else:
                raise error("StorageError", "the payload stands in its own row, which this record cannot reach")
        return self._payload

    @property
    def payload_bytes(self):
        """Length of the payload; known without reading it."""
        return self.view().payload_bytes

    @property
    def priority(self):
        """0 to 255; lower is leased sooner."""
        return self.view().priority

    @property
    def created_at(self):
        """When it was enqueued, in microseconds; no two jobs of a store have the same."""
        return self.view().created_at

    @property
    def state(self):
        """Where the job stood."""
        return _types().states[self.view().state]

    @property
    def attempts(self):
        """Failed and reaped leases since it was enqueued or retried."""
        return self.view().attempts

    @property
    def lease_generation(self):
        """The fencing token: it grows with every lease and never falls."""
        return self.view().lease_generation

    @property
    def worker_id(self):
        """Who holds the job, or None."""
        return text_or_none(self.view().worker_id)

    @property
    def lease_deadline(self):
        """When the lease expires, in microseconds, or None."""
        return int_or_none(self.view().lease_deadline)

    @property
    def not_before(self):
        """When it may be leased at the earliest, in microseconds, or None."""
        return int_or_none(self.view().not_before)

    @property
    def idempotency_key(self):
        """The key under which enqueueing again returns this job, or None."""
        return text_or_none(self.view().idempotency_key)

    @property
    def max_attempts(self):
        """This job's own ceiling, or None when the configuration's holds."""
        return int_or_none(self.view().max_attempts)

    @property
    def continuation(self):
        """What the holder of the lease last saved with `checkpoint`, or None."""
        return bytes_or_none(self.view().continuation)

    @property
    def events(self):
        """The trail, oldest first: the first event and the newest 256."""
        return _events(self.view())

    @property
    def events_dropped(self):
        """How many events fell out of the trail."""
        return self.view().events_dropped

    @property
    def dead_reason(self):
        """Why the job is Dead, in a word, or None."""
        return text_or_none(self.view().dead_reason)

    @property
    def reaped_worker_id(self):
        """Who held the lease that the reaper ended, until the next lease; or None."""
        return text_or_none(self.view().reaped_worker_id)

    @property
    def crashes(self):
        """The part of `attempts` that took its process with it: the lease ran out, or `fail` said so."""
        return self.view().crashes

    @property
    def lease_ttl_us(self):
        """What the lease in force was taken for; a heartbeat without a ttl of its own extends by it."""
        return int_or_none(self.view().lease_ttl_us)

    @property
    def headers(self):
        """What travels with the job, such as a trace context: read-only, str to str; empty when there is nothing."""
        return headers_of(self.view().headers)

    @property
    def last_error(self):
        """What the newest failure said, or None when nothing has failed."""
        for event in reversed(self.events):
            if event.transition in ("failed", "dead"):
                return event.detail
            if event.transition == "reaped":
                return f"lease of {event.detail} expired"
        return None

    def __eq__(self, other):
        if not isinstance(other, JobRecord):
            return NotImplemented
        return self.key == other.key and self.value == other.value

    def __hash__(self):
        return hash((self.key, self.value))

    def __repr__(self):
        kind = self.kind if self.kind.isprintable() else ascii(self.kind)  # it may end up on a terminal
        return f"<JobRecord {self.job_id} {kind} {self.state.name.lower()} attempts={self.attempts}>"

    def __reduce__(self):
        raise TypeError("a JobRecord is not pickled; send a Lease, or the fields you need")


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
        extra=read_values(view.extra, view.extra_count),
    )


# Transitions.

def step(bytes value not None, command, now_us, policy):
    """Apply a verb to a stored record; return the new one or the number of the Refusal. See transitions.py."""
    cdef View before
    cdef transitions.Command c_command
    cdef backoff.Policy c_policy = read_policy(policy)
    cdef string after
    _load(bytes_of("value", value), &before)
    read_command(command, &c_command)
    cdef int refusal = transitions.apply(
        &before, &c_command, <int64_t>uint_of("now_us", now_us, INT64_MAX), &c_policy, &after
    )
    if refusal != transitions.APPLIED:
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
