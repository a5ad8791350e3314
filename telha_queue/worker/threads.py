"""Threads that run handlers, made as they are needed. Knows no queue: a job is something to be run.

All are daemons, for a handler that hangs must not keep the process from ending. A thread whose handler is no longer
waited for is *abandoned*: another takes its place, and it ends by itself if its handler ever returns.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class Threads(Generic[T]):
    """At most `most` threads that each run one thing after another. Safe to use from many threads."""

    def __init__(self, name: str, most: int, run: Callable[[T], None]) -> None:
        self._name = name
        self._most = most
        self._run = run
        self._work: SimpleQueue[T | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._count = 0
        self._made = 0
        self._replaced: set[int] = set()

    def submit(self, item: T) -> None:
        """Run it in one of the threads; a new one if all are busy and there may be one more."""
        with self._lock:
            if self._idle > 0:
                self._idle -= 1  # spoken for, before it wakes
                start = False
            else:
                start = self._count < self._most
            if start:
                self._count += 1
                self._made += 1
                number = self._made
        if start:
            threading.Thread(target=self._work_on, args=(item,), name=f"{self._name}-{number}", daemon=True).start()
        else:
            self._work.put(item)

    def may_abandon(self) -> bool:
        """Whether another thread can be given up: as many hang already as may run, and no more may be made."""
        return len(self._replaced) < self._most

    def abandon(self, ident: int) -> None:
        """Do not wait for that thread any more; there may be another in its place."""
        with self._lock:
            self._replaced.add(ident)
            self._count -= 1

    @property
    def abandoned(self) -> int:
        """Threads that are at work for nobody."""
        return len(self._replaced)

    def stop(self) -> None:
        """Let the threads end that have nothing to do. Waits for none."""
        with self._lock:
            count = self._count
        for _ in range(count):
            self._work.put(None)

    def _work_on(self, item: T | None) -> None:
        ident = threading.get_ident()
        while item is not None:
            self._run(item)
            with self._lock:
                if ident in self._replaced:
                    self._replaced.discard(ident)
                    return
                self._idle += 1
            item = self._work.get()
        with self._lock:
            self._count -= 1
