"""What time it is for a queue: never earlier than it was, whatever the wall clock does."""

from __future__ import annotations

from collections.abc import Callable

from telha_queue._seam import GuardedClock
from telha_queue.errors import StoreForked

__all__ = ["MAX_TIME_US", "Clock", "ForkedClock", "GuardedClock"]

Clock = Callable[[], int]
"""Returns microseconds since the Unix epoch."""

MAX_TIME_US = 2**63 - 1


class ForkedClock(GuardedClock):
    """The clock of a queue in a forked child: every verb asks the time first, and learns that it may do nothing."""

    __slots__ = ()

    def __call__(self) -> int:
        raise StoreForked
