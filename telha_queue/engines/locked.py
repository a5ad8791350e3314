"""What the memory engine locks and waits by: one lock around every verb, and a ticket that grows with what is ready.

It knows that there are jobs to wait for, and nothing else of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from telha_queue.engine import Kinds
from telha_queue.errors import StoreClosed

_SIGNAL_SLICE_SECS = 0.05
"""Longest sleep of the main thread, which alone runs signal handlers."""


class Locked:
    """Open until it is closed, and waited for."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        """The one lock; notified whenever the ticket grows or the engine closes."""
        self._ticket = 0
        self._is_open = True

    def ready_ticket(self, scope: bytes | None) -> int:
        """A number that grows whenever a job becomes Pending, gated or not; one for all scopes."""
        with self._locked():
            return self._ticket

    def wait_ready(self, scope: bytes | None, kinds: Kinds, ticket: int, timeout_us: int) -> None:
        """Sleep until the ticket grows or the time is over. Wakes for jobs of any scope and kind."""
        over_at = time.monotonic() + timeout_us / 1_000_000
        is_main = threading.current_thread() is threading.main_thread()
        longest = _SIGNAL_SLICE_SECS if is_main else threading.TIMEOUT_MAX
        with self._locked():
            while self._ticket == ticket:
                left = over_at - time.monotonic()
                if left <= 0:
                    return
                self._changed.wait(min(left, longest))
                self._require_open()

    def wake(self) -> None:
        """Make every waiter look again. Does nothing on a closed engine, so that a clock may outlive it."""
        with self._changed:
            self._grow_ticket()

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
