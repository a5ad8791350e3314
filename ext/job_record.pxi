# The job itself, a part of _codec.pyx: one compiled module has one file of Cython, and two things to say here.


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
    def expires_at(self):
        """From when on it is not leased any more, in microseconds, or None."""
        return int_or_none(self.view().expires_at)

    @property
    def progress(self):
        """How much of the work is done, from 0 to 1, as the holder of the newest lease said; or None."""
        return None if self.view().progress < 0 else self.view().progress / <double>kWholeProgress

    @property
    def progress_text(self):
        """What the holder of the newest lease said of its progress, or None."""
        return text_or_none(self.view().progress_text)

    @property
    def durable_continuation(self):
        """What was last saved with `checkpoint(durable=True)`, under whichever lease; None once it is completed."""
        return bytes_or_none(self.view().durable_continuation)

    @property
    def result(self):
        """What `complete` was given, or None. A long one is read from the store now: StoreClosed after close."""
        if self._result is None and self.view().result_bytes >= 0:
            if not is_nil(self.view().result):
                self._result = bytes_or_none(self.view().result)
            elif self._source is not None:
                self._result = self._source.load_result(bytes_or_none(self.view().job_id))
            else:
                raise error("StorageError", "the result stands in its own row, which this record cannot reach")
        return self._result

    @property
    def result_bytes(self):
        """Length of the result, known without reading it; None when there is none."""
        return int_or_none(self.view().result_bytes)

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
