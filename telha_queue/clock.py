"""What time it is for a queue: never earlier than it was, whatever the wall clock does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from telha_queue.errors import StoreForked

Clock = Callable[[], int]
"""Returns microseconds since the Unix epoch."""

MAX_TIME_US = 2**63 - 1


class GuardedClock:
    """now = max(latest time seen, clock), so a step back reorders, un-expires and double-expires nothing.

    While the wall clock is behind the latest time seen, time goes on at the pace of the monotonic clock: leases still
    run out and gates still open after somebody has set the clock back by a day. An injected clock is taken as it is,
    without a pace of its own. Safe to call from many threads.
    """

    __slots__ = ("_clock", "_lock", "_monotonic_ns", "_now_us", "_paced")

    def __init__(self, clock: Clock | None = None, *, start_us: int = 0) -> None:
        self._clock = wall_us if clock is None else clock
        self._paced = clock is None
        self._lock = threading.Lock()
        self._now_us = start_us
        self._monotonic_ns = time.monotonic_ns()

    def __call__(self) -> int:
        """The time now, in microseconds, from 0 to 2^63 - 1."""
        read_us = self._clock()
        with self._lock:
            if self._paced:
                monotonic_ns = time.monotonic_ns()
                paced_us = self._now_us + (monotonic_ns - self._monotonic_ns) // 1000
                if read_us <= paced_us:
                    read_us = paced_us
                self._monotonic_ns = monotonic_ns
            if read_us > self._now_us:
                self._now_us = min(read_us, MAX_TIME_US)
            return self._now_us

    def advance_to(self, at_us: int) -> int:
        """Take a time that somebody vouches for as seen; returns the time now, which is not earlier."""
        with self._lock:
            self._now_us = max(self._now_us, at_us)
        return self()


class ForkedClock(GuardedClock):
    """The clock of a queue in a forked child: every verb asks the time first, and learns that it may do nothing."""

    __slots__ = ()

    def __call__(self) -> int:
        raise StoreForked


def wall_us() -> int:
    """The system's wall clock in microseconds since the Unix epoch."""
    return time.time_ns() // 1000
