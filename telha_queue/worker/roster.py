"""Who runs, who waits to run, and how many more may be leased: a worker's books, under one lock.

A job that is leased either starts at once or, when more were leased than can run (`prefetch`), waits in the line of its
share. Whoever ends a job gets the next of that line for the same permit, so that a busy worker hands over nothing
between threads.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from telha_queue.errors import ConfigError
from telha_queue.job import Exact
from telha_queue.worker.claim import Claim
from telha_queue.worker.lanes import Lane, Permits, Share
from telha_queue.worker.task import AnyTask

MAX_BATCH = 1000
MAX_UNSETTLED = 2000
"""Jobs whose outcome is not written yet: beyond this nothing is leased, for the store cannot keep up."""


class Load(NamedTuple):
    """How a share is used."""

    permits: int
    used: int
    waiting: int
    """Jobs leased ahead."""


class Roster:
    """The books. Safe to use from many threads."""

    def __init__(
        self, tasks: Sequence[AnyTask], lanes: Iterable[Lane], concurrency: int, prefetch: int, processes: int
    ) -> None:
        if type(prefetch) is not int or not 0 <= prefetch <= MAX_BATCH:
            raise ConfigError(f"prefetch is from 0 to {MAX_BATCH}, not {prefetch!r}")
        self._lock = threading.Lock()
        self._permits = Permits(concurrency, lanes, [task.kind for task in tasks])
        self._prefetch = prefetch
        self._lines: dict[str, deque[Claim]] = {share.name: deque() for share in self._permits.shares}
        self._caps = _caps_by_kind(tasks, processes)
        self._running: set[Claim] = set()
        self._unsettled = 0
        self._is_stopping = False
        self._changed = threading.Condition(self._lock)
        self._changes = 0
        self.added = 0
        """How many jobs have been taken in."""

    @property
    def shares(self) -> Sequence[Share]:
        """In the order in which they are filled."""
        return self._permits.shares

    def wanted(self, share: Share) -> tuple[int, tuple[Exact, ...]]:
        """How many more jobs the share may lease now, and of which kinds; 0 for none."""
        with self._lock:
            if self._is_stopping or self._unsettled >= MAX_UNSETTLED:
                return 0, ()
            n, waiting = self._permits.room(share), len(self._lines[share.name])
            if waiting <= self._prefetch // 2:  # many at once, and not one for each that was started
                n += self._prefetch - waiting
            n = min(n, MAX_BATCH)
            kinds = share.kinds
            if self._caps:
                kinds = tuple(kind for kind in kinds if all(cap.free for cap in self._caps.get(kind, ())))
                n = min([n, *(cap.free for kind in kinds for cap in self._caps.get(kind, ()))])
            return (n, kinds) if n > 0 and kinds else (0, ())

    def add(self, share: Share, claims: Sequence[Claim]) -> list[Claim]:
        """Take in jobs that were leased for a share; returns those that start now, the first in line first."""
        with self._lock:
            self.added += len(claims)
            for claim in claims:
                for cap in self._caps.get(claim.task.kind, ()):
                    cap.free -= 1
            line = self._lines[share.name]
            line.extend(claims)
            started: list[Claim] = []
            while line and self._permits.room(share) > 0 and not self._is_stopping:
                self._permits.take(share)
                started.append(line.popleft())
            self._running.update(started)
            return started

    def decide(self, claim: Claim) -> bool:
        """Be the one who knows how the job ended; False when somebody else was first."""
        with self._lock:
            if claim.decided:
                return False
            claim.decided = True
            self._unsettled += 1
            return True

    def leave(self, claim: Claim) -> Claim | None:
        """A running job leaves its place; returns the one that starts in it, if any waits for that.

        A job that was ousted has no place to leave any more.
        """
        with self._lock:
            return self._leave(claim) if claim in self._running else None

    def may_go_on(self, claim: Claim) -> tuple[Exact, ...]:
        """Of which kinds whoever ends this job may lease the next one by itself, for the same permit; or of none.

        None with `prefetch`, which leases many at once; when the permit is owed to a lane; or where kinds have limits.
        """
        share = claim.share
        with self._lock:
            is_busy = self._is_stopping or self._unsettled >= MAX_UNSETTLED or self._prefetch > 0
            is_owed = share is self._permits.general and any(lane.lent for lane in self._permits.lanes)
            if is_busy or is_owed or self._caps or claim not in self._running:
                return ()
            return share.kinds

    def replace(self, claim: Claim, following: Claim) -> bool:
        """Let a job have the place of another that has ended; False if there is no such place any more."""
        with self._lock:
            if self._is_stopping or claim not in self._running:
                return False
            self.added += 1
            self._running.discard(claim)
            self._running.add(following)
            return True

    def oust(self, claim: Claim) -> tuple[bool, Claim | None]:
        """Take the place of a job whose handler is not waited for any more: whether it had one, and who starts."""
        with self._lock:
            return (True, self._leave(claim)) if claim in self._running else (False, None)

    def settled(self, count: int) -> None:
        """So many outcomes were written, or given up."""
        with self._lock:
            self._unsettled -= count
            self._tell()

    def stop(self) -> list[Claim]:
        """Start nothing more; returns the jobs that wait in line, which are the caller's to give back."""
        with self._lock:
            self._is_stopping = True
            waiting = [claim for line in self._lines.values() for claim in line]
            for line in self._lines.values():
                line.clear()
            self._unsettled += len(waiting)
            for claim in waiting:
                claim.decided = True
            self._tell()
            return waiting

    def running(self) -> list[Claim]:
        """The jobs whose handlers run, or are no longer waited for."""
        with self._lock:
            return list(self._running)

    @property
    def changes(self) -> int:
        """A number that grows whenever there may be more room; for `wait_for_room`."""
        return self._changes

    def poke(self) -> None:
        """Wake whoever waits for room."""
        with self._lock:
            self._tell()

    def wait_for_room(self, changes: int, timeout_secs: float) -> None:
        """Sleep until there may be more room than when that number was read, or the time is over."""
        with self._lock:
            self._changed.wait_for(lambda: self._changes != changes or self._is_stopping, timeout_secs)

    def wait_done(self, until: float, *, is_over: Callable[[], bool]) -> bool:
        """Sleep until nothing runs and every outcome is written, until then (monotonic), or until `is_over`."""
        with self._lock:
            while self._running or self._unsettled:
                left_secs = until - time.monotonic()
                if left_secs <= 0 or is_over():
                    return False
                self._changed.wait(min(left_secs, 0.1))
            return True

    def load(self) -> dict[str, Load]:
        """How each share is used."""
        with self._lock:
            return {
                share.name: Load(share.total, share.total - share.free, len(self._lines[share.name]))
                for share in self.shares
            }

    def _leave(self, claim: Claim) -> Claim | None:
        self._running.discard(claim)
        for cap in self._caps.get(claim.task.kind, ()):
            cap.free += 1
        share = self._permits.give(claim.share)
        line = self._lines[share.name]
        if line and not self._is_stopping:
            self._permits.take(share)
            after = line.popleft()
            self._running.add(after)
            if len(line) == self._prefetch // 2 or self._caps:
                self._tell()
            return after
        self._tell()
        return None

    def _tell(self) -> None:
        self._changes += 1
        self._changed.notify_all()


class _Cap:
    """How many more of some kinds may be in this worker's hands."""

    __slots__ = ("free",)

    def __init__(self, free: int) -> None:
        self.free = free


def _caps_by_kind(tasks: Sequence[AnyTask], processes: int) -> dict[str, list[_Cap]]:
    """The limits of kinds that have any: one of its own, and one that all tasks in processes share."""
    shared = _Cap(processes)
    caps: dict[str, list[_Cap]] = {}
    for task in tasks:
        if task.limits.concurrency is not None:
            caps.setdefault(task.kind, []).append(_Cap(task.limits.concurrency))
        if task.limits.is_process:
            caps.setdefault(task.kind, []).append(shared)
    return caps
