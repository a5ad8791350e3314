"""The values a job is described by: states, events, what to enqueue, and the token of a lease.

All are immutable. `JobRecord`, the job itself, is compiled (`_codec`) because it decodes its row only when asked.
Times are integer microseconds since the Unix epoch, UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from uuid import UUID

from telha_queue._codec import JobRecord
from telha_queue.named import NamedTuple
from telha_queue.scope import Scope

__all__ = [
    "Cause",
    "DeadJob",
    "Exact",
    "Failure",
    "JobEvent",
    "JobRecord",
    "JobSpec",
    "JobState",
    "Lease",
    "ReapReport",
]


class JobState(IntEnum):
    """Where a job stands. The number is the state byte of its key, so Pending sorts first."""

    PENDING = 0
    """Waiting to be leased, once `not_before` has passed."""
    LEASED = 1
    """Held by a worker until `lease_deadline`."""
    COMPLETED = 2
    """Finished."""
    FAILED = 3
    """Reserved in the key space; never written: a retryable failure goes straight back to Pending."""
    DEAD = 4
    """Given up; see `dead_reason`. An operator may retry it."""

    def __str__(self) -> str:
        return self.name.lower()


class Cause(IntEnum):
    """How an attempt that fails came to its end. `fail` takes the name in small letters."""

    ERROR = 0
    """The handler said so."""
    TIMEOUT = 1
    """It ran out of the time that it had; a job that is dead by it has `timeout` as its reason."""
    CRASH = 2
    """It took its process with it; counts as a crash, as an expired lease does."""


class JobEvent(NamedTuple):
    """One step of a job's trail.

    Consecutive heartbeats are one event: `count` says how many, `at` when the first and `last_at` when the last was.
    """

    at: int
    transition: str
    detail: str | None = None
    count: int = 1  # type: ignore[assignment]  # hides tuple.count, which no trail needs
    last_at: int | None = None


class JobSpec(NamedTuple):
    """One job for `enqueue_many`; the fields are the arguments of `enqueue`."""

    kind: str
    payload: bytes = b""
    priority: int = 128
    not_before: int | None = None
    delay_secs: float | None = None
    idempotency_key: str | None = None
    max_attempts: int | None = None
    headers: Mapping[str, str] | None = None
    expires_at: int | None = None
    expires_secs: float | None = None


class Lease(NamedTuple):
    """The token that fences a lease; small enough to travel. A leased `JobRecord` serves in its place."""

    scope: Scope
    job_id: UUID
    worker_id: str
    lease_generation: int


class Failure(NamedTuple):
    """One failed attempt for `fail_many`; the fields are the arguments of `fail`."""

    lease: JobRecord | Lease
    error: str
    retryable: bool = True
    delay_secs: float | None = None
    cause: str = "error"


class Exact(str):
    """A kind filter that matches the whole kind. A plain string in its place is a prefix."""

    __slots__ = ()


class DeadJob(NamedTuple):
    """What the reaper tells of a job it gave up: enough for an alert, and no payload."""

    scope: Scope
    job_id: UUID
    kind: str
    attempts: int
    worker_id: str
    dead_reason: str


class ReapReport(NamedTuple):
    """What one pass of the reaper did."""

    reclaimed: int
    """Jobs that went back to Pending."""
    dead: int
    """Jobs that were out of attempts."""
    dead_jobs: tuple[DeadJob, ...] = ()
    """The dead ones, one by one."""
    corrupt: int = 0
    """Leased rows that do not decode; they are left as they are."""
    expired: int = 0
    """Pending jobs whose `expires_at` has passed: they are dead now, as `expired`."""


class Recovered(NamedTuple):
    """What was missing when a queue was opened with `recover`."""

    damage: tuple[str, ...]
    """A sentence for each thing that is missing or damaged, with the file and what is known."""
    lost_rows: int
    """How many of the newest row versions, by their sequence numbers, are gone. Others may be missing too."""
