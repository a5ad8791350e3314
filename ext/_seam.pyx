"""What goes through the seam at every call, compiled: the time, new jobs, and the tokens of leases. Links nothing.

Each function takes what is plainly right the short way and leaves the rest to telha_queue/arguments.py, which defines
what is right, says what is wrong, and turns subclasses into what they are taken for. A test holds the two together.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject_GenericGetAttr
from libc.stdint cimport INT64_MAX, UINT32_MAX, int64_t, uint64_t
from libcpp.string cimport string

from arguments cimport bytes_of, utf8_of
from keys cimport JOB_ID_BYTES, LEASED, SCOPE_BYTES, key_state
from plain cimport is_plain_bytes, is_plain_int, is_plain_text
from record cimport kMaxKindBytes, read_holder
from telha_queue._codec cimport JobRecord
from values cimport append_value, int_or_none, read_values, text_or_none

cdef extern from "clocks.hpp" namespace "telha" nogil:
    void system_clocks(int64_t* wall_us, int64_t* monotonic_ns) noexcept

    cdef cppclass PacedTime:
        int64_t now_us
        int64_t monotonic_ns
        int64_t at(int64_t wall_us, int64_t monotonic_ns) noexcept
        int64_t see(int64_t seen_us) noexcept

cdef enum:
    MAX_WORKER_ID_BYTES = 128
    MAX_IDEMPOTENCY_KEY_BYTES = 255
    MAX_BATCH_JOBS = 1000
    SPEC_FIELDS = 10
    MAX_BATCH_BYTES = 16 << 20


cdef class GuardedClock:
    """now = max(latest time seen, clock), so a step back reorders, un-expires and double-expires nothing.

    While the wall clock is behind the latest time seen, time goes on at the pace of the monotonic clock: leases still
    run out and gates still open after somebody has set the clock back by a day. An injected clock is taken as it is,
    without a pace of its own. Safe to call from many threads, and from a signal handler whatever it interrupts: once
    the clock is read nothing but the store of the time happens, and the GIL is held for it.
    """

    cdef object _clock  # None: the system's
    cdef PacedTime _c

    def __init__(self, clock=None, *, int64_t start_us=0):
        cdef int64_t wall_us = 0
        self._clock = clock
        self._c.now_us = start_us
        system_clocks(&wall_us, &self._c.monotonic_ns)

    def __call__(self):
        """The time now, in microseconds, from 0 to 2^63 - 1."""
        cdef int64_t wall_us = 0
        cdef int64_t monotonic_ns = 0
        if self._clock is None:
            system_clocks(&wall_us, &monotonic_ns)
            return self.at(wall_us, monotonic_ns)
        read_us = self._clock()
        wall_us = read_us if is_plain_int(read_us, 0, INT64_MAX) else _checks().clock_us(read_us)
        return self._c.see(wall_us)

    cpdef int64_t at(self, int64_t wall_us, int64_t monotonic_ns) except -1:
        """The time when the system's clocks read so; how `__call__` tells it."""
        return self._c.at(wall_us, monotonic_ns)

    def advance_to(self, int64_t at_us):
        """Take a time that somebody vouches for as seen; returns the time now, which is not earlier."""
        self._c.see(at_us)
        return self()


@cython.final
@cython.freelist(256)
cdef class NewJob:
    """One job to be stored: `JobSpec` with its defaults filled and its arguments checked."""

    def __init__(self, str kind not None, bytes payload not None, uint8_t priority, not_before, str idempotency_key,
                 max_attempts, tuple headers=None, expires_at=None):
        cdef string value
        if self.kind is not None:
            raise TypeError("a job is made once")
        self.kind = kind
        self.payload = payload
        self.priority = priority
        self.not_before_us = -1 if not_before is None else not_before
        self.idempotency_key = idempotency_key
        self.attempts_ceiling = -1 if max_attempts is None else max_attempts
        self.expires_at_us = -1 if expires_at is None else expires_at
        if headers is not None:
            append_value(&value, headers, 1)
            self.headers_value = PyBytes_FromStringAndSize(value.data(), <Py_ssize_t>value.size())

    @property
    def not_before(self):
        """The time before which it is not leased, or None."""
        return int_or_none(self.not_before_us)

    @property
    def max_attempts(self):
        """Its own ceiling, or None."""
        return int_or_none(self.attempts_ceiling)

    @property
    def expires_at(self):
        """The time from which on it is leased no more, or None."""
        return int_or_none(self.expires_at_us)

    @property
    def headers(self):
        """Names and values of what travels with it, in turn, or None."""
        return None if self.headers_value is None else read_values(bytes_of("headers", self.headers_value), 1)[0]


@cython.final
@cython.freelist(256)
@cython.no_gc
cdef class Token:
    """A lease as the seam sees it. `scope` is None when only the id is known."""

    def __init__(self, bytes scope, bytes job_id not None, str worker_id not None, uint64_t lease_generation):
        if self.id_bytes != NULL:  # a call may be using what it points to
            raise TypeError("a token is made once")
        if scope is not None and PyBytes_GET_SIZE(scope) != SCOPE_BYTES or PyBytes_GET_SIZE(job_id) != JOB_ID_BYTES:
            raise ValueError(f"a token has a scope of {SCOPE_BYTES} bytes and an id of {JOB_ID_BYTES}")
        self._scope = scope
        self._job_id = job_id
        self._worker_id = worker_id
        self.scope_key = NULL
        if scope is not None:
            self.scope_key = PyBytes_AS_STRING(scope)
        self.id_bytes = PyBytes_AS_STRING(job_id)
        self.worker = utf8_of("worker_id", worker_id)
        self.lease_generation = lease_generation

    @property
    def scope(self):
        """The key of the job's scope, or None."""
        return None if self.scope_key == NULL else PyBytes_FromStringAndSize(self.scope_key, SCOPE_BYTES)

    @property
    def job_id(self):
        """The 16 bytes of the job's id."""
        if self.id_bytes == NULL:
            raise TypeError("a token is made of a lease")
        return PyBytes_FromStringAndSize(self.id_bytes, JOB_ID_BYTES)

    @property
    def worker_id(self):
        """Who presents it."""
        return text_or_none(self.worker)


# Each as the function of the same name in telha_queue/arguments.py or telha_queue/many.py.

def scope_key(scope):
    if type(scope) is _loaded_scope():
        try:
            return PyObject_GenericGetAttr(scope, "key")  # not by the class's __getattr__, which costs more than this
        except AttributeError:
            pass  # it has none: the long way says so
    return _checks().scope_key(scope)


def worker(worker_id):
    return worker_id if is_plain_text(worker_id, MAX_WORKER_ID_BYTES) else _checks().worker(worker_id)


def new_job(
    kind, payload, priority, not_before, delay_secs, idempotency_key, max_attempts, headers, expires_at, expires_secs,
    int64_t max_payload_bytes, now_us
):
    job = None
    if expires_at is None and expires_secs is None:
        job = _plain_job(
            kind, payload, priority, not_before, delay_secs, idempotency_key, max_attempts, headers, max_payload_bytes
        )
    if job is not None:
        return job
    return _checks().new_job(
        kind, payload, priority, not_before, delay_secs, idempotency_key, max_attempts, headers, expires_at,
        expires_secs, max_payload_bytes, now_us
    )


def new_jobs(specs, int64_t max_payload_bytes, now_us, bint atomic):
    cdef list jobs = []
    cdef int64_t left_bytes = MAX_BATCH_BYTES
    cdef tuple spec
    if (type(specs) is list or type(specs) is tuple) and len(specs) <= MAX_BATCH_JOBS:
        specs = list(specs)  # nobody else can change this one, and generators are left to the other way
        for item in specs:
            if type(item) is not _loaded_spec() or len(<tuple>item) != SPEC_FIELDS:
                break
            spec = <tuple>item
            if spec[8] is not None or spec[9] is not None:
                break
            job = _plain_job(
                spec[0], spec[1], spec[2], spec[3], spec[4], spec[5], spec[6], spec[7], max_payload_bytes
            )
            if job is None:
                break
            left_bytes -= PyBytes_GET_SIZE((<NewJob>job).payload)
            jobs.append(job)
        else:
            if left_bytes >= 0:
                return jobs
    return _many().new_jobs(specs, max_payload_bytes, now_us, atomic)


def token(lease):
    return _plain_token(<JobRecord>lease) if _is_lease(lease) else _checks().token(lease)


def tokens(leases):
    cdef list checked = []
    if (type(leases) is list or type(leases) is tuple) and len(leases) <= MAX_BATCH_JOBS:
        leases = list(leases)
        for lease in leases:
            if not _is_lease(lease):
                break
            checked.append(_plain_token(<JobRecord>lease))
        else:
            return checked
    return _many().tokens(leases)


# What the above are made of.

cdef NewJob _plain_job(
    kind, payload, priority, not_before, delay_secs, idempotency_key, max_attempts, headers, int64_t max_payload_bytes
):
    """The job, or None for arguments that have to be looked at more closely."""
    cdef NewJob job
    if (
        not_before is not None
        or delay_secs is not None
        or headers is not None
        or not is_plain_text(kind, kMaxKindBytes)
        or not is_plain_bytes(payload, max_payload_bytes)
        or not is_plain_int(priority, 0, 255)
        or (idempotency_key is not None and not is_plain_text(idempotency_key, MAX_IDEMPOTENCY_KEY_BYTES))
        or (max_attempts is not None and not is_plain_int(max_attempts, 1, UINT32_MAX))
    ):
        return None
    job = NewJob.__new__(NewJob)
    job.kind = kind
    job.payload = payload
    job.priority = priority
    job.not_before_us = -1
    job.idempotency_key = idempotency_key
    job.attempts_ceiling = -1 if max_attempts is None else max_attempts
    job.expires_at_us = -1
    return job


cdef bint _is_lease(lease):
    """Whether it is a record that holds a lease."""
    return type(lease) is JobRecord and not (<JobRecord>lease)._row.is_null() \
        and key_state((<JobRecord>lease)._row.key()) == LEASED


cdef Token _plain_token(JobRecord lease):
    cdef Token token = Token.__new__(Token)
    token._row = lease._row
    token.scope_key = lease._row.key()
    token.id_bytes = lease._row.job_id()
    read_holder(lease._row.value(), &token.worker, &token.lease_generation)
    return token


# Modules that are built on this one, and therefore loaded after it.
cdef object _arguments = None
cdef object _scope = None
cdef object _spec = None


cdef inline object _checks():
    return _arguments if _arguments is not None else _load()


cdef inline object _loaded_scope():
    if _scope is None:
        _load()
    return _scope


cdef inline object _loaded_spec():
    if _spec is None:
        _load()
    return _spec


cdef object _many():
    from telha_queue import many

    return many


cdef object _load():
    global _arguments, _scope, _spec
    from telha_queue import arguments
    from telha_queue.job import JobSpec

    _arguments, _scope, _spec = arguments, arguments.Scope, JobSpec
    return arguments
