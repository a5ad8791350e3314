"""What operators type, turned into what the queue takes; whatever does not fit ends the command with one line.

Functions, for click's `type=`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from telha_queue.cli.exits import OneLine
from telha_queue.cli.text import microseconds
from telha_queue.errors import InvalidScope
from telha_queue.job import JobState
from telha_queue.scope import Scope

STATES = {
    "pending": JobState.PENDING,
    "leased": JobState.LEASED,
    "completed": JobState.COMPLETED,
    "dead": JobState.DEAD,
    "runnable": JobState.PENDING,
    "running": JobState.LEASED,
    "done": JobState.COMPLETED,
    "failed": JobState.DEAD,  # never JobState.FAILED: that one is reserved and no job is in it
}
_UUID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_LIKE_A_UUID = re.compile(r"[0-9a-f]{6,}(-[0-9a-f]*){3,}|[0-9a-f]{24,}", re.IGNORECASE)
_ID_PREFIX = "work_item:"


def scope(text: str) -> Scope:
    """`system`, a tenant's UUID, `tenant/space`, or any other name."""
    if text == "system":
        return Scope.SYSTEM
    parts = text.split("/")
    try:
        if len(parts) <= 2 and all(_UUID.fullmatch(part) for part in parts):
            return Scope.tenant(*map(UUID, parts))
        if any(_UUID.fullmatch(part) or _LIKE_A_UUID.fullmatch(part) for part in parts):
            # Taken as a name it would be some other scope, and nobody wants that of a slip of the pen.
            raise OneLine(f"{text!r} looks like a UUID but is none; a scope is system, UUID, UUID/UUID or a name")
        return Scope.named(text)
    except InvalidScope as error:
        raise OneLine(str(error)) from error


def job_id(text: str) -> UUID:
    """A job's UUID, bare or as `work_item:UUID`."""
    bare = text.removeprefix(_ID_PREFIX)
    if not _UUID.fullmatch(bare):
        raise OneLine(f"{text!r} is not a job id; one looks like 01936f2e-7c1a-7abc-8def-0123456789ab")
    return UUID(bare)


def whole(option: str, low: int, high: int | None = None) -> Callable[[str], int]:
    """The reader of an option that is a whole number within bounds."""

    def number(text: str) -> int:
        bounds = f"{low} or more" if high is None else f"from {low} to {high}"
        try:
            value = int(text)
        except ValueError:
            raise OneLine(f"{option} is a whole number, {bounds}, not {text!r}") from None
        if value < low or (high is not None and value > high):
            raise OneLine(f"{option} is {bounds}, not {value}")
        return value

    return number


def instant(text: str) -> int:
    """A time as ISO 8601, UTC unless it says otherwise, in µs since the epoch."""
    try:
        return microseconds(datetime.fromisoformat(text))
    except ValueError:
        raise OneLine(f"{text!r} is not a time; one looks like 2026-12-01T08:30:00Z") from None
