"""What may be asked of a job that exists, and why it may be refused. `ext/command.pxd` says the same to the core."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from telha_queue.job import Cause


class Verb(IntEnum):
    """What may be asked of a job that exists."""

    LEASE = 0
    EXTEND = 1
    CHECKPOINT = 2
    STATS = 3
    COMPLETE = 4
    FAIL = 5
    RELEASE = 6
    REAP = 7
    RETRY = 8
    RESTORE = 9
    CANCEL = 10
    EXPIRE = 11
    RESCHEDULE = 12
    PROGRESS = 13


class Refusal(IntEnum):
    """Why a verb did nothing."""

    LEASE_CONFLICT = 1
    """Not leased, or not by this worker under this generation."""
    INVALID_TRANSITION = 2
    """The state does not allow the verb."""
    NOT_DUE = 3
    """Lease: the gate is still closed, or the job expired. Reap: the deadline, grace included, has not passed. Expire:
    its time is not over."""


class Command(NamedTuple):
    """A verb with its arguments; only those that the verb uses are looked at."""

    verb: Verb
    worker_id: str = ""
    lease_generation: int = 0
    ttl_us: int = 0
    detail: str | None = None
    continuation: bytes = b""
    retryable: bool = True
    accept_late: bool = False
    delay_us: int | None = None
    """Until the job is due again; None is what the verb has for it: no delay after a release, backoff after fail."""
    cause: Cause = Cause.ERROR
    not_before: int | None = None
    """Of reschedule: None keeps the gate, 0 takes it away."""
    priority: int | None = None
    """Of reschedule: None keeps it."""
    durable: bool = False
    """Of checkpoint: into the slot that outlives the lease."""
    progress: int = 0
    result: bytes | None = None
    result_bytes: int | None = None
    """Of complete: None for no result; the result is None as well when it stands in its own row."""
