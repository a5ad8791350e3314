"""What time it is for a queue: never earlier than it was, whatever the wall clock does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from telha_queue.errors import InvalidArgument, InvalidType, StoreForked, shown

Clock = Callable[[], int]
"""Returns microseconds since the Unix epoch."""

MAX_TIME_US = 2**63 - 1


class GuardedClock:
    """now = max(latest time seen, clock), so a step back reorders, un-expires and double-expires nothing.

    While the wall clock is behind the latest time seen, time goes on at the pace of the monotonic clock: leases still
    run out and gates still open after somebody has set the clock back by a day. An injected clock is taken as it is,
    without a pace of its own. Safe to call from many threads, and from a signal handler whatever it interrupts.
    """

    __slots__ = ("_clock", "_lock", "_monotonic_ns", "_now_us", "_paced")

    def __init__(self, clock: Clock | None = None, *, start_us: int = 0) -> None:
        self._clock = wall_us if clock is None else clock
        self._paced = clock is None
        self._lock = threading.RLock()
        self._now_us = start_us
        self._monotonic_ns = time.monotonic_ns()

    def __call__(self) -> int:
        """The time now, in microseconds, from 0 to 2^63 - 1."""
        read_us = self._clock()
        monotonic_ns = 0
        if self._paced:
            monotonic_ns = time.monotonic_ns()
        elif type(read_us) is not int:
            raise InvalidType(f"the clock returns an int of microseconds since the epoch, not {type(read_us).__name__}")
        elif read_us < 0:
            raise InvalidArgument(f"the clock returns microseconds since the epoch, not {shown(read_us)}")
        # Nothing is called under the lock: Python runs signal handlers after calls, and one that asks for the time
        # between a comparison and its store would have this thread store an earlier time than the handler was told.
        with self._lock:
            elapsed_us = (monotonic_ns - self._monotonic_ns) // 1000
            if elapsed_us > 0:
                self._monotonic_ns += 1000 * elapsed_us  # what is left counts next time, however often one asks
                if read_us < self._now_us + elapsed_us:
                    read_us = self._now_us + elapsed_us
            if read_us > MAX_TIME_US:
                read_us = MAX_TIME_US
            if read_us > self._now_us:
                self._now_us = read_us
            return self._now_us

    def advance_to(self, at_us: int) -> int:
        """Take a time that somebody vouches for as seen; returns the time now, which is not earlier."""
        with self._lock:
            if at_us > self._now_us:
                self._now_us = at_us
        return self()


class ForkedClock(GuardedClock):
    """The clock of a queue in a forked child: every verb asks the time first, and learns that it may do nothing."""

    __slots__ = ()

    def __call__(self) -> int:
        raise StoreForked


def wall_us() -> int:
    """The system's wall clock in microseconds since the Unix epoch."""
    return time.time_ns() // 1000
