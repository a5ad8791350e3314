"""Checks of what callers pass: every value that enters the queue goes through here, once, before anything is touched.

Each function returns the value in the form in which the engine takes it, or raises InvalidArgument or a subclass.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from telha_queue.config import (
    MAX_BATCH_BYTES,
    MAX_BATCH_JOBS,
    MAX_DETAIL_BYTES,
    MAX_IDEMPOTENCY_KEY_BYTES,
    MAX_KIND_BYTES,
    MAX_SECS,
    MAX_WORKER_ID_BYTES,
)
from telha_queue.engine import Kinds, NewJob, Token
from telha_queue.errors import InvalidArgument, InvalidScope, InvalidType, PayloadTooLarge
from telha_queue.job import Exact, JobRecord, JobSpec, Lease
from telha_queue.scope import Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")

MAX_GENERATION = 2**64 - 1
MAX_ATTEMPTS = 2**32 - 1
MAX_KINDS = 64
LATE = {"refuse": False, "accept_if_unclaimed": True}
_MAX_US = MAX_SECS * 1_000_000


def scope_key(scope: Scope) -> bytes:
    """The key of a scope."""
    if type(scope) is not Scope:
        raise InvalidScope(f"a scope is a telha_queue.Scope, not {type(scope).__name__}")
    return scope.key


def uuid_bytes(job_id: UUID) -> bytes:
    """The bytes of a job id."""
    if not isinstance(job_id, UUID):
        raise InvalidType(f"a job id is a uuid.UUID, not {type(job_id).__name__}")
    return job_id.bytes


def name(what: str, value: str, limit_bytes: int) -> str:
    """A short printable name: a kind, a worker id, an idempotency key."""
    if not isinstance(value, str):
        raise InvalidType(f"{what} is a str, not {type(value).__name__}")
    if not value or not value.isprintable():  # which also refuses NUL, control characters and lone surrogates
        raise InvalidArgument(f"{what} is empty or holds characters that cannot be printed: {value!r:.80}")
    if len(value) > limit_bytes or (not value.isascii() and len(value.encode()) > limit_bytes):
        raise InvalidArgument(f"{what} is longer than {limit_bytes} bytes")
    return value if type(value) is str else str.__str__(value)  # a subclass may change; its text may not


def worker(worker_id: str) -> str:
    """A worker's id: 1 to 128 bytes."""
    return name("worker_id", worker_id, MAX_WORKER_ID_BYTES)


def blob(what: str, value: bytes, limit_bytes: int) -> bytes:
    """Opaque bytes up to a limit; a copy is taken of anything that can change."""
    if type(value) is not bytes:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise InvalidType(f"{what} is bytes-like, not {type(value).__name__}")
        value = bytes(value)
    if len(value) > limit_bytes:
        raise PayloadTooLarge(what, size_bytes=len(value), limit_bytes=limit_bytes)
    return value


def whole(what: str, value: int, low: int, high: int) -> int:
    """A whole number within bounds; bool is not one."""
    if type(value) is not int:
        raise InvalidType(f"{what} is an int, not {type(value).__name__}")
    if not low <= value <= high:
        raise InvalidArgument(f"{what} is from {low} to {high}, not {value}")
    return value


def span_us(what: str, secs: float) -> int:
    """A span in seconds, as microseconds; at most ten years."""
    if type(secs) is not int and type(secs) is not float:
        raise InvalidType(f"{what} is a number of seconds, not {type(secs).__name__}")
    if not 0 <= secs <= MAX_SECS:  # false for NaN as well
        raise InvalidArgument(f"{what} is from 0 to {MAX_SECS} seconds, not {secs}")
    return round(secs * 1_000_000)


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
    if not isinstance(choice, str) or choice not in LATE:
        raise InvalidArgument(f"late is one of {', '.join(LATE)}, not {choice!r:.80}")
    return LATE[choice]


def kind_filter(kinds: str | Iterable[str] | None) -> Kinds:
    """None for every kind, else up to 64 kinds: a plain string is a prefix, `Exact` a whole kind."""
    if kinds is None:
        return None
    wanted = [kinds] if isinstance(kinds, str) else _listed("kinds", kinds)
    if not 0 < len(wanted) <= MAX_KINDS:
        raise InvalidArgument(f"kinds names 1 to {MAX_KINDS} kinds, not {len(wanted)}; None means every kind")
    return tuple((name("kind", kind, MAX_KIND_BYTES), isinstance(kind, Exact)) for kind in wanted)


def new_job(spec: JobSpec, max_payload_bytes: int, now_us: int) -> NewJob:
    """One job to enqueue."""
    kind, payload, priority, not_before, delay_secs, idempotency_key, max_attempts = spec
    if not_before is not None:
        if delay_secs is not None:
            raise InvalidArgument("give not_before or delay_secs, not both")
        whole("not_before", not_before, 0, now_us + _MAX_US)
    elif delay_secs is not None:
        delay_us = span_us("delay_secs", delay_secs)
        not_before = now_us + delay_us if delay_us else None
    return NewJob(
        name("kind", kind, MAX_KIND_BYTES),
        blob("payload", payload, max_payload_bytes),
        whole("priority", priority, 0, 255),
        not_before,
        None if idempotency_key is None else name("idempotency_key", idempotency_key, MAX_IDEMPOTENCY_KEY_BYTES),
        None if max_attempts is None else whole("max_attempts", max_attempts, 1, MAX_ATTEMPTS),
    )


def new_jobs(specs: Iterable[JobSpec], max_payload_bytes: int, now_us: int) -> list[NewJob]:
    """Many jobs to enqueue: at most 1,000 and 16 MiB of payload. One bad one refuses all, before any is stored."""
    jobs = []
    for spec in batch("jobs", specs):
        if not isinstance(spec, JobSpec):
            raise InvalidType(f"a job to enqueue is a JobSpec, not {type(spec).__name__}")
        jobs.append(new_job(spec, max_payload_bytes, now_us))
    size_bytes = sum(len(job.payload) for job in jobs)
    if size_bytes > MAX_BATCH_BYTES:
        raise PayloadTooLarge("the batch", size_bytes=size_bytes, limit_bytes=MAX_BATCH_BYTES)
    return jobs


def batch(what: str, items: Iterable[T]) -> list[T]:
    """A list of at most 1,000 items."""
    listed = _listed(what, items)
    if len(listed) > MAX_BATCH_JOBS:
        raise InvalidArgument(f"{what} holds {len(listed)} items; the limit is {MAX_BATCH_JOBS}")
    return listed


def token(lease: JobRecord | Lease) -> Token:
    """The lease that a fenced verb presents: the record a lease returned, or a `Lease`."""
    if type(lease) is JobRecord:
        worker_id = lease.worker_id
        if worker_id is None:
            raise InvalidArgument(f"job {lease.job_id} is {lease.state.name.lower()} in this record: it holds no lease")
        key = lease.key
        return Token(key[:32], key[42:], worker_id, lease.lease_generation)
    if not isinstance(lease, Lease):
        raise InvalidType(f"a lease is a JobRecord or a Lease, not {type(lease).__name__}")
    return Token(scope_key(lease.scope), *holder(lease.job_id, lease.worker_id, lease.lease_generation))


def holder(job_id: UUID, worker_id: str, lease_generation: int) -> tuple[bytes, str, int]:
    """Who holds which job under which generation."""
    return uuid_bytes(job_id), worker(worker_id), whole("lease_generation", lease_generation, 0, MAX_GENERATION)


def detail(text: str) -> str:
    """A line for the trail: at most 4 KiB."""
    if not isinstance(text, str):
        raise InvalidType(f"detail is a str, not {type(text).__name__}")
    if "\0" in text or len(text.encode(errors="replace")) > MAX_DETAIL_BYTES:
        raise InvalidArgument(f"detail holds NUL or is longer than {MAX_DETAIL_BYTES} bytes")
    return text.encode(errors="replace").decode()


def error_text(text: str) -> str:
    """Why a job failed, for its trail. Too long a text is cut in its middle: a failure must be recordable."""
    if not isinstance(text, str):
        raise InvalidType(f"error is a str, not {type(text).__name__}")
    encoded = text.encode(errors="replace").replace(b"\0", b"?")
    if len(encoded) > MAX_DETAIL_BYTES:
        half = MAX_DETAIL_BYTES // 2 - 16
        encoded = encoded[:half] + b"\n[cut here]\n" + encoded[-half:]
    return encoded.decode(errors="ignore")


def _listed(what: str, items: Iterable[T]) -> list[T]:
    if not isinstance(items, Iterable):
        raise InvalidType(f"{what} is iterable, not {type(items).__name__}")
    return list(items)
