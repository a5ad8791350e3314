"""Checks of the times that callers give: spans in seconds, and moments as such or as spans from now.

For telha_queue/arguments.py, which has all other checks. Times of the engine are microseconds.
"""

from __future__ import annotations

from telha_queue.clock import MAX_TIME_US
from telha_queue.config import MAX_SECS
from telha_queue.errors import InvalidArgument, InvalidType, shown

_MAX_US = MAX_SECS * 1_000_000
_PRESENT_US = 10**15
"""A queue whose clock is beyond this, in 2001, runs on a real time, ..."""
_PAST_US = 10**14
"""... and no time of its jobs lies before this, in 1973: a smaller number counts something else."""


def whole(what: str, value: int, low: int, high: int) -> int:
    """A whole number within bounds; bool is not one."""
    if type(value) is not int:
        raise InvalidType(f"{what} is an int, not {type(value).__name__}")
    if not low <= value <= high:
        raise InvalidArgument(f"{what} is from {low} to {high}, not {shown(value)}")
    return value


def moment_us(what: str, at_us: int, now_us: int) -> int:
    """A time of the queue's clock: at most ten years ahead of it, whoever gave it."""
    return whole(what, at_us, 0, min(now_us + _MAX_US, MAX_TIME_US))


def span_us(what: str, secs: float) -> int:
    """A span in seconds, as microseconds; at most ten years."""
    if type(secs) is not int and type(secs) is not float:
        raise InvalidType(f"{what} is a number of seconds, not {type(secs).__name__}")
    if not 0 <= secs <= MAX_SECS:  # false for NaN as well
        raise InvalidArgument(f"{what} is from 0 to {MAX_SECS} seconds, not {shown(secs)}")
    return round(secs * 1_000_000)


def gate_us(not_before: int | None, delay_secs: float | None, now_us: int) -> int | None:
    """From when on a job may be leased; None when neither is given, and 0 for no delay."""
    at_us = _either_us("not_before", not_before, "delay_secs", delay_secs, now_us)
    return 0 if at_us == now_us and delay_secs is not None else at_us


def expiry_us(expires_at: int | None, expires_secs: float | None, now_us: int) -> int | None:
    """From when on a job may be leased no more; None when neither is given."""
    at_us = _either_us("expires_at", expires_at, "expires_secs", expires_secs, now_us)
    if at_us is not None and at_us <= now_us:
        what = "expires_at is later than now" if expires_secs is None else "expires_secs is more than 0 seconds"
        raise InvalidArgument(f"{what}: a job that has expired is not stored")
    return at_us


def _either_us(what: str, at_us: int | None, span: str, secs: float | None, now_us: int) -> int | None:
    """A time, or the end of a span from now."""
    if at_us is None:
        return None if secs is None else min(now_us + span_us(span, secs), MAX_TIME_US)
    if secs is not None:
        raise InvalidArgument(f"give {what} or {span}, not both")
    if type(at_us) is not int:
        raise InvalidType(
            f"{what} is an int of microseconds since the epoch, not {type(at_us).__name__}; or use {span}"
        )
    if 0 < at_us < _PAST_US and now_us > _PRESENT_US:
        raise InvalidArgument(
            f"{what} is microseconds since the epoch; {at_us} looks like seconds or milliseconds; or use {span}"
        )
    return moment_us(what, at_us, now_us)
