"""From the parameter types of telha_queue/engine.py to what the core takes. Needs the GIL.

Everything is borrowed: the caller holds the Python objects for as long as the verb runs, and nothing is copied.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t

from batch cimport MAX_INLINE_BYTES
from command cimport CAUSE_ERROR, Cause, Command, Verb
from enqueue cimport NewJob as CoreJob
from memory cimport Kinds, kMaxKinds
from move cimport Move
from record cimport Bytes
from scan cimport Wanted
from store cimport Durability, Settings
from telha_queue._seam cimport NewJob, Token

cdef extern from *:
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL


cdef inline Bytes bytes_of(bytes data) noexcept:
    """Borrow the contents of a bytes object."""
    cdef Bytes borrowed
    borrowed.data = PyBytes_AS_STRING(data)
    borrowed.size = PyBytes_GET_SIZE(data)
    return borrowed


cdef inline Bytes text_bytes(str text) except *:
    """Borrow the UTF-8 form of a str, which the str keeps."""
    cdef Bytes borrowed
    cdef Py_ssize_t size = 0
    borrowed.data = PyUnicode_AsUTF8AndSize(text, &size)
    borrowed.size = size
    return borrowed


cdef inline const char* bytes_or_null(bytes data, Py_ssize_t size) except? NULL:
    """Borrow a bytes object of a fixed length: a scope, a job id, a key; NULL for None."""
    if data is None:
        return NULL
    if PyBytes_GET_SIZE(data) != size:
        raise ValueError(f"{PyBytes_GET_SIZE(data)} bytes where {size} are needed")
    return PyBytes_AS_STRING(data)


cdef inline Command command_of(Verb verb) noexcept nogil:
    cdef Command command
    cdef Bytes nil
    nil.data = NULL
    nil.size = 0
    command.verb = verb
    command.worker_id = command.detail = command.continuation = command.result = nil
    command.lease_generation = 0
    command.ttl_us = 0
    command.delay_us = -1
    command.cause = CAUSE_ERROR
    command.retryable = True
    command.accept_late = False
    command.not_before = command.priority = -1
    command.durable = False
    command.progress = 0
    command.result_bytes = -1
    command.result_aside = nil
    return command


cdef inline int read_token(Token token, Move* move) except -1:
    if token is None or token.id_bytes == NULL:
        raise TypeError("a token is a telha_queue.engine.Token")
    move.scope = token.scope_key
    move.job_id = token.id_bytes
    move.known_key = NULL
    if not token._row.is_null():
        move.known_key = token._row.key()
    move.command.worker_id = token.worker
    move.command.lease_generation = token.lease_generation
    return 0


cdef inline int read_result(bytes result, Command* command) except -1:
    """Read what a job is completed with; None is nothing."""
    if result is None:
        return 0
    command.result_bytes = PyBytes_GET_SIZE(result)
    if command.result_bytes > MAX_INLINE_BYTES:
        command.result_aside = bytes_of(result)
    else:
        command.result = bytes_of(result)
    return 0


cdef inline int read_loss(loss, Command* command) except -1:
    """Read a telha_queue.engine.Loss."""
    detail, retryable, delay_us, cause = loss
    command.detail = text_bytes(detail)
    command.retryable = retryable
    command.delay_us = -1 if delay_us is None else delay_us
    command.cause = <Cause><int>cause
    return 0


cdef inline int read_new_job(NewJob job, CoreJob* out) except -1:
    if job is None or job.kind is None:
        raise TypeError("a job is a telha_queue.engine.NewJob")
    out.kind = text_bytes(job.kind)
    out.payload = bytes_of(job.payload)
    out.priority = job.priority
    out.not_before = job.not_before_us
    out.idempotency_key.data = NULL
    out.idempotency_key.size = 0
    if job.idempotency_key is not None:
        out.idempotency_key = text_bytes(job.idempotency_key)
    out.headers.data = NULL
    out.headers.size = 0
    if job.headers_value is not None:
        out.headers = bytes_of(job.headers_value)
    out.max_attempts = job.attempts_ceiling
    out.expires_at = job.expires_at_us
    return 0


cdef inline int read_kinds(tuple kinds, Kinds* out) except -1:
    """Read a telha_queue.engine.Kinds."""
    out.count = 0
    if kinds is None:
        return 0
    if <size_t>len(kinds) > kMaxKinds:
        raise ValueError(f"a filter names at most {kMaxKinds} kinds")
    for text, is_exact in kinds:
        out.patterns[out.count].text = text_bytes(text)
        out.patterns[out.count].is_exact = is_exact
        out.count += 1
    return 0


cdef inline int read_wanted(tuple kinds, int64_t now_us, Kinds* kinds_out, Wanted* out) except -1:
    """Read what a call wants to lease; `out` borrows `kinds_out`."""
    out.kinds = kinds_out
    out.now_us = now_us
    return read_kinds(kinds, kinds_out)


cdef inline int read_config(bytes path, config, Settings* out) except -1:
    """Read a telha_queue.config.QueueConfig."""
    from telha_queue.config import DURABILITIES

    cdef Bytes name
    out.set_path(PyBytes_AS_STRING(path), PyBytes_GET_SIZE(path))
    out.durability = <Durability><int>DURABILITIES.index(config.durability)
    out.group_sync_ms = config.group_sync_ms
    out.memtable_bytes = config.memtable_bytes
    out.block_cache_bytes = config.block_cache_bytes
    out.window_jobs = config.window_jobs
    out.max_attempts = config.max_attempts
    out.max_crashes = config.max_crashes
    out.lease_grace_us = round(config.lease_grace_secs * 1_000_000)
    out.backoff_base_secs = config.backoff_base_secs
    out.backoff_factor = config.backoff_factor
    out.backoff_cap_secs = config.backoff_cap_secs
    for kind, base_secs in config.backoff_base_secs_by_kind.items():
        name = text_bytes(kind)
        out.add_kind_base(name.data, name.size, base_secs)
    return 0
