"""Checks of what callers pass: every value that enters the queue goes through here, once, before anything is touched.

Each function returns the value in the form in which the engine takes it, or raises InvalidArgument or a subclass. What
is plainly right need not come this far: ext/_seam.pyx has a short way for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from itertools import islice
from uuid import UUID

from telha_queue.clock import MAX_TIME_US, Clock
from telha_queue.config import (
    MAX_CONTINUATION_BYTES,
    MAX_DETAIL_BYTES,
    MAX_HEADERS,
    MAX_HEADERS_BYTES,
    MAX_IDEMPOTENCY_KEY_BYTES,
    MAX_KIND_BYTES,
    MAX_WORKER_ID_BYTES,
    QueueConfig,
)
from telha_queue.engine import Engine, Kinds, Loss, NewJob, Token
from telha_queue.errors import InvalidArgument, InvalidScope, InvalidType, PayloadTooLarge, shown
from telha_queue.job import Cause, Exact, JobRecord, JobState, Lease
from telha_queue.scope import Scope, exact_text, uuid_as_bytes
from telha_queue.times import expiry_us, gate_us
from telha_queue.times import moment_us as moment_us
from telha_queue.times import span_us as span_us
from telha_queue.times import whole as whole

MAX_GENERATION = 2**64 - 1
MAX_ATTEMPTS = 2**32 - 1
MAX_KINDS = 64
LATE = {"refuse": False, "accept_if_unclaimed": True}
CAUSES = {"error": Cause.ERROR, "timeout": Cause.TIMEOUT, "crash": Cause.CRASH}


def wiring(engine: Engine | None, config: QueueConfig | None, clock: Clock | None) -> None:
    """What a queue is built of; a part of None is the default, or comes later."""
    if isinstance(engine, (str, bytes, os.PathLike)):
        raise InvalidType("a Queue is built on an engine; for a directory use Queue.open(path)")
    if config is not None and not isinstance(config, QueueConfig):
        raise InvalidType(f"config is a QueueConfig, not {type(config).__name__}")
    if clock is not None and not callable(clock):
        raise InvalidType(f"clock is a callable that returns microseconds, not {type(clock).__name__}")


def recover(choice: str | None) -> bool:
    """Whether a damaged store is opened nevertheless."""
    if choice is not None and exact_text(choice) != "point_in_time":
        raise InvalidArgument(f"recover is 'point_in_time' or None, not {shown(choice)}")
    return choice is not None


def stronger(durability: str) -> bool:
    """The durability of one call: it can be more than the queue's, never less."""
    if exact_text(durability) != "sync":
        raise InvalidArgument(f"the durability of a call is 'sync' or None, not {shown(durability)}")
    return True


def scope_key(scope: Scope) -> bytes:
    """The key of a scope."""
    if type(scope) is not Scope:
        such = ", such as Scope.named('acme')" if isinstance(scope, str) else ""
        raise InvalidScope(f"a scope is a telha_queue.Scope{such}, not {type(scope).__name__}")
    return scope.key


def uuid_bytes(job_id: UUID) -> bytes:
    """The bytes of a job id."""
    as_bytes = uuid_as_bytes(job_id)
    if as_bytes is None:
        raise InvalidType(f"a job id is a uuid.UUID of 128 bits, not {type(job_id).__name__}")
    return as_bytes


def name(what: str, value: str, limit_bytes: int) -> str:
    """A short printable name: a kind, a worker id, an idempotency key."""
    text = value if type(value) is str else _text(what, value)
    if not text or not text.isprintable():  # which also refuses NUL, control characters and lone surrogates
        raise InvalidArgument(f"{what} is empty or holds characters that cannot be printed: {shown(text)}")
    if len(text) > limit_bytes or (not text.isascii() and len(text.encode()) > limit_bytes):
        raise InvalidArgument(f"{what} is longer than {limit_bytes} bytes")
    return text


def worker(worker_id: str) -> str:
    """A worker's id: 1 to 128 bytes."""
    return name("worker_id", worker_id, MAX_WORKER_ID_BYTES)


def blob(what: str, value: bytes, limit_bytes: int) -> bytes:
    """Opaque bytes up to a limit; a copy is taken of anything that can change."""
    if type(value) is bytes:
        if len(value) > limit_bytes:
            raise PayloadTooLarge(what, size_bytes=len(value), limit_bytes=limit_bytes)
        return value
    if not isinstance(value, (bytes, bytearray, memoryview)):
        encode = "; encode it" if isinstance(value, str) else ""
        raise InvalidType(f"{what} is bytes-like, not {type(value).__name__}{encode}")
    try:
        view = memoryview(value)  # the memory itself: what a subclass says of it counts for nothing
    except (TypeError, ValueError, BufferError) as error:
        raise InvalidArgument(f"{what} cannot be read: {error}") from None
    with view:
        if not view.c_contiguous:
            raise InvalidArgument(f"{what} is a memoryview with gaps; copy it with bytes()")
        if view.nbytes > limit_bytes:  # before it is copied
            raise PayloadTooLarge(what, size_bytes=view.nbytes, limit_bytes=limit_bytes)
        return view.tobytes()


def continuation(value: bytes, max_payload_bytes: int) -> bytes:
    """A checkpoint: at most as long as a payload may be, and 1 MiB, for it stands in the job's own row."""
    return blob("continuation", value, min(max_payload_bytes, MAX_CONTINUATION_BYTES))


def flag(what: str, value: bool) -> bool:
    """True or False, and nothing that merely counts as one."""
    if type(value) is not bool:
        raise InvalidType(f"{what} is a bool, not {type(value).__name__}")
    return value


def ttl_us(lease_ttl_secs: float) -> int:
    """The ttl of a lease, as microseconds; at least one of them."""
    us = span_us("lease_ttl_secs", lease_ttl_secs)
    if us == 0:
        raise InvalidArgument(f"lease_ttl_secs is more than 0 seconds, not {lease_ttl_secs}")
    return us


def heartbeat_us(lease_ttl_secs: float | None) -> int:
    """The ttl of a heartbeat; 0 stands for the one that the lease was taken for."""
    return 0 if lease_ttl_secs is None else ttl_us(lease_ttl_secs)


def late(choice: str) -> bool:
    """What becomes of a completion after the reaper came first: True accepts it while nobody has leased the job."""
    text = exact_text(choice)
    if text not in LATE:
        raise InvalidArgument(f"late is one of {', '.join(LATE)}, not {shown(choice)}")
    return LATE[text]


def kind_filter(kinds: str | Iterable[str] | None) -> Kinds:
    """None for every kind, else up to 64 kinds: a plain string is a prefix, `Exact` a whole kind."""
    if kinds is None:
        return None
    if isinstance(kinds, (bytes, bytearray, memoryview)) or not isinstance(kinds, Iterable):
        raise InvalidType(f"kinds is a str or an iterable of str, not {type(kinds).__name__}")
    wanted = [kinds] if isinstance(kinds, str) else list(islice(kinds, MAX_KINDS + 1))
    if not 0 < len(wanted) <= MAX_KINDS:
        found = "more" if wanted else "none"
        raise InvalidArgument(f"kinds names 1 to {MAX_KINDS} kinds, not {found}; None means every kind")
    return tuple((name("kind", kind, MAX_KIND_BYTES), isinstance(kind, Exact)) for kind in wanted)


def clock_us(read_us: int) -> int:
    """What an injected clock returned, within the bounds of time."""
    if type(read_us) is not int:
        raise InvalidType(f"the clock returns an int of microseconds since the epoch, not {type(read_us).__name__}")
    if read_us < 0:
        raise InvalidArgument(f"the clock returns microseconds since the epoch, not {shown(read_us)}")
    return min(read_us, MAX_TIME_US)


def new_job(
    kind: str,
    payload: bytes,
    priority: int,
    not_before: int | None,
    delay_secs: float | None,
    idempotency_key: str | None,
    max_attempts: int | None,
    given_headers: Mapping[str, str] | None,
    expires_at: int | None,
    expires_secs: float | None,
    max_payload_bytes: int,
    now_us: int,
) -> NewJob:
    """One job to enqueue."""
    gate = gate_us(not_before, delay_secs, now_us)
    return NewJob(
        name("kind", kind, MAX_KIND_BYTES),
        blob("payload", payload, max_payload_bytes),
        whole("priority", priority, 0, 255),
        gate if gate or delay_secs is None else None,
        None if idempotency_key is None else name("idempotency_key", idempotency_key, MAX_IDEMPOTENCY_KEY_BYTES),
        None if max_attempts is None else whole("max_attempts", max_attempts, 1, MAX_ATTEMPTS),
        None if given_headers is None else headers(given_headers),
        expiry_us(expires_at, expires_secs, now_us),
    )


def headers(given: Mapping[str, str]) -> tuple[str, ...] | None:
    """What travels with a job: names and values in turn; None when there are none."""
    listed = _items(given)
    if len(listed) > MAX_HEADERS:
        raise InvalidArgument(f"headers holds more than {MAX_HEADERS} items")
    checked = {name("a header's name", key, MAX_HEADERS_BYTES): _printable(key, value) for key, value in listed}
    size_bytes = sum(len(text.encode()) for header in checked.items() for text in header)
    if size_bytes > MAX_HEADERS_BYTES:
        raise InvalidArgument(f"headers are longer than {MAX_HEADERS_BYTES} bytes together: {size_bytes}")
    return tuple(text for header in checked.items() for text in header) or None


def token(lease: JobRecord | Lease) -> Token:
    """The lease that a fenced verb presents: the record a lease returned, or a `Lease`."""
    if type(lease) is JobRecord:
        worker_id = lease.worker_id
        if worker_id is None:
            raise InvalidArgument(f"job {lease.job_id} is {lease.state.name.lower()} in this record: it holds no lease")
        return Token(lease.scope.key, lease.job_id.bytes, worker_id, lease.lease_generation)
    if not isinstance(lease, Lease):
        raise InvalidType(f"a lease is a JobRecord or a Lease, not {type(lease).__name__}")
    if len(lease) != len(Lease._fields):
        raise InvalidType(f"a Lease has {len(Lease._fields)} fields, not {len(lease)}")
    return Token(scope_key(lease.scope), *holder(lease.job_id, lease.worker_id, lease.lease_generation))


def holder(job_id: UUID, worker_id: str, lease_generation: int) -> tuple[bytes, str, int]:
    """Who holds which job under which generation."""
    return uuid_bytes(job_id), worker(worker_id), whole("lease_generation", lease_generation, 0, MAX_GENERATION)


def detail(text: str) -> str:
    """A line for the trail: at most 4 KiB."""
    encoded = _text("detail", text).encode(errors="replace")
    if b"\0" in encoded or len(encoded) > MAX_DETAIL_BYTES:
        raise InvalidArgument(f"detail holds NUL or is longer than {MAX_DETAIL_BYTES} bytes")
    return encoded.decode()


def error_text(text: str, what: str = "error") -> str:
    """Why a job failed, for its trail. Too long a text is cut in its middle: a failure must be recordable."""
    if isinstance(text, BaseException):
        raise InvalidType(f"{what} is a str, not {type(text).__name__}: use str(error)")
    encoded = _text(what, text).encode(errors="replace").replace(b"\0", b"?")
    if len(encoded) > MAX_DETAIL_BYTES:
        half = MAX_DETAIL_BYTES // 2 - 16
        encoded = encoded[:half] + b"\n[cut here]\n" + encoded[-half:]
    return encoded.decode(errors="ignore")


def loss(error: str, retryable: bool, delay_secs: float | None, cause: str) -> Loss:
    """How an attempt was lost."""
    known = CAUSES.get(exact_text(cause) or "")
    if known is None:
        raise InvalidArgument(f"cause is one of {', '.join(CAUSES)}, not {shown(cause)}")
    delay_us = None if delay_secs is None else span_us("delay_secs", delay_secs)
    return Loss(error_text(error), flag("retryable", retryable), delay_us, known)


def state(wanted: JobState | None) -> JobState | None:
    """A state to list; None for all."""
    if wanted is not None and not isinstance(wanted, JobState):
        member = (exact_text(wanted) or "").upper()
        use = f": use JobState.{member}" if member in JobState.__members__ else ""
        raise InvalidType(f"state is a JobState, not {type(wanted).__name__}{use}")
    return wanted


def page_key(after: JobRecord | None) -> bytes | None:
    """The key that a page begins behind; None for the first page."""
    if after is None:
        return None
    if type(after) is not JobRecord:
        raise InvalidType(f"after is a JobRecord, not {type(after).__name__}")
    return after.key


def _items(given: Mapping[str, str]) -> list[tuple[str, str]]:
    """The first items of a mapping, whose own code runs here and may do anything."""
    try:
        if isinstance(given, Mapping):
            return [(key, value) for key, value in islice(given.items(), MAX_HEADERS + 1)]
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # whatever it raises is about what was given
        raise InvalidArgument(f"headers cannot be read as a mapping of str to str: {shown(error)}") from None
    raise InvalidType(f"headers is a mapping of str to str, not {type(given).__name__}")


def _printable(key: str, value: str) -> str:
    text = _text("a header's value", value)
    if not text.isprintable():
        raise InvalidArgument(f"the header {shown(key)} holds characters that cannot be printed: {shown(text)}")
    return text


def _text(what: str, value: str) -> str:
    text = exact_text(value)
    if text is None:
        raise InvalidType(f"{what} is a str, not {type(value).__name__}")
    return text
