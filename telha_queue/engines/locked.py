"""What the memory engine locks and waits by: one lock around every verb, and tickets that grow as jobs move.

It knows that there are jobs to wait for, and nothing else of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from telha_queue.engine import Kinds
from telha_queue.errors import StoreClosed

_SIGNAL_SLICE_SECS = 0.05
"""Longest sleep of the main thread, which alone runs signal handlers."""


class Locked:
    """Open until it is closed, and waited for."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        """The one lock; notified whenever a ticket grows or the engine closes."""
        self._ticket = 0
        self._ended = 0
        self._is_open = True

    def ready_ticket(self, scope: bytes | None) -> int:
        """A number that grows whenever a job becomes Pending, gated or not; one for all scopes."""
        with self._locked():
            return self._ticket

    def wait_ready(self, scope: bytes | None, kinds: Kinds, ticket: int, timeout_us: int) -> None:
        """Sleep until the ticket grows or the time is over. Wakes for jobs of any scope and kind."""
        self._sleep(lambda: self._ticket == ticket, timeout_us)

    def ended_ticket(self, job_id: bytes) -> int:
        """A number that grows whenever a job is completed or dead; one for all jobs."""
        with self._locked():
            return self._ended

    def wait_ended(self, job_id: bytes, ticket: int, timeout_us: int) -> None:
        """Sleep until the ticket grows or the time is over."""
        self._sleep(lambda: self._ended == ticket, timeout_us)

    def wake(self) -> None:
        """Make every waiter look again. Does nothing on a closed engine, so that a clock may outlive it."""
        with self._changed:
            self._grow_ticket()
            self._tell_end()

    def _sleep(self, is_early: Callable[[], bool], timeout_us: int) -> None:
        """Until it is not early any more, or the time is over. Raises StoreClosed."""
        over_at = time.monotonic() + timeout_us / 1_000_000
        is_main = threading.current_thread() is threading.main_thread()
        longest = _SIGNAL_SLICE_SECS if is_main else threading.TIMEOUT_MAX
        with self._locked():
            while is_early():
                left = over_at - time.monotonic()
                if left <= 0:
                    return
                self._changed.wait(min(left, longest))
                self._require_open()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._changed:
            self._require_open()
            yield

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """The lock for the last time; again does no harm."""
        with self._changed:
            self._is_open = False
            self._changed.notify_all()
            yield

    # Called with the lock held.

    def _require_open(self) -> None:
        if not self._is_open:
            raise StoreClosed("the queue is closed")

    def _grow_ticket(self) -> None:
        self._ticket += 1
        self._changed.notify_all()

    def _tell_end(self) -> None:
        self._ended += 1
        self._changed.notify_all()
