"""A queue on a clock that jumps, in one thread, with what is known of the time that the queue lives by.

Without a restart that time is known exactly. A restart may forget times at which nothing was stored, so from then on it
lies between two bounds until the clock is beyond both.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from random import Random

from telha_queue import JobRecord, JobState, Lease, Queue, QueueConfig, Scope
from telha_queue.testing import ManualClock
from tests.torture.model_life import copy_of
from tests.torture.race_checker import Checker
from tests.torture.race_history import Entry, Recorder, seen
from tests.torture.race_rules import LAST_US, Rules

ACME = Scope.named("acme")
TTL_US = 60_000_000
TTL_SECS = 60
RULES = Rules(max_attempts=3, base_us=10_000_000, factor=4, cap_us=3_600_000_000)
CONFIG = QueueConfig(durability="os", memtable_bytes=256 * 1024, max_attempts=3, block_cache_bytes=0)


class Line:
    """The queue, its jobs' histories, and the bounds of its time."""

    def __init__(self, folder: Path, start_us: int) -> None:
        self.folder = folder
        self.homes = 0
        self.clock = ManualClock(start_us)
        self.low_us = self.high_us = 0
        self.queue = Queue.open(self._home(), CONFIG, self.clock)
        self.recorder = Recorder(self.queue, count())
        self.newest_us = -1
        self.held: list[JobRecord] = []
        self.faults: list[str] = []

    def jump(self, to_us: int) -> None:
        """Set the clock, to whatever time there is."""
        self.clock.set_us(min(max(to_us, 0), LAST_US))

    def restart(self, how: str) -> None:
        """Close and open, or open what a crash would leave."""
        old = self._home()
        if how == "crash":
            self.homes += 1
            copy_of(old, self._home())
        self.queue.close()
        self.queue = self.recorder.queue = Queue.open(self._home(), CONFIG, self.clock)
        self.low_us = max((job.created_at for job in self.queue.list(limit=1000)), default=0)

    def verb(self, name: str, chance: Random) -> None:
        """One verb on whatever it may be done to; and what must hold after it. Each verb says whether it was done."""
        before = self.low_us, self.high_us
        self.low_us, self.high_us = max(self.low_us, self.clock()), max(self.high_us, self.clock())
        if not getattr(self, f"_{name}")(chance):
            self.low_us, self.high_us = before  # nothing was there to do it to: the queue was not asked

    def end(self) -> list[str]:
        """Close; look for an explanation of each job's history; all that was wrong."""
        last = next(self.recorder.stamp)
        for job in self.queue.list(limit=1000):
            entry = Entry(last, last, "get", "", 0, 0, seen(job))
            self.recorder.entries.setdefault(job.key[42:], []).append(entry)
        self.queue.close()
        checker = Checker(RULES, self.recorder.passes)
        return [*self.faults, *(fault for fault in map(checker.fault, self.recorder.entries.values()) if fault)]

    def _enqueue(self, chance: Random) -> bool:
        for job in self.recorder.enqueue(lambda: [self.queue.enqueue(ACME, "x") for _ in range(chance.randint(1, 3))]):
            if not self.newest_us < job.created_at and job.created_at < LAST_US:
                self.faults.append(f"created at {job.created_at}, after one of {self.newest_us}")
            self.newest_us = job.created_at
            self._check_time(job)
        return True

    def _lease(self, chance: Random) -> bool:
        waiting = self.queue.list(ACME, state=JobState.PENDING, limit=1000)
        jobs = self.recorder.lease(
            lambda: self.queue.lease_next(ACME, worker_id="w", lease_ttl_secs=TTL_SECS), "w", TTL_US
        )
        surely = [job.created_at for job in waiting if (job.not_before or 0) <= self.low_us]
        if surely and (not jobs or jobs[0].created_at > surely[0]):
            self.faults.append(f"leased {[job.created_at for job in jobs]}, due were {surely} at {self.low_us}")
        for job in jobs:
            self._check_time(job)
        self.held += jobs
        return True

    def _reap(self, chance: Random) -> bool:
        bounds = iter((self.low_us, self.high_us))
        self.recorder.reap(lambda: next(bounds))
        for job in self.queue.list(state=JobState.LEASED, limit=1000):
            if (job.lease_deadline or 0) <= self.low_us:
                self.faults.append(f"a lease to {job.lease_deadline} was not taken back at {self.low_us}")
        return True

    def _retry(self, chance: Random) -> bool:
        dead = self.queue.list(state=JobState.DEAD, limit=1000)
        if dead:
            job = chance.choice(dead)
            self._check_time(self.recorder.on("retry", job, lambda: self.queue.retry(ACME, job.job_id)))
        return bool(dead)

    def _extend(self, chance: Random) -> bool:
        return self._on_lease("extend", chance)

    def _checkpoint(self, chance: Random) -> bool:
        return self._on_lease("checkpoint", chance)

    def _stats(self, chance: Random) -> bool:
        return self._on_lease("stats", chance)

    def _complete(self, chance: Random) -> bool:
        return self._on_lease("complete", chance)

    def _complete_late(self, chance: Random) -> bool:
        return self._on_lease("complete late", chance)

    def _fail(self, chance: Random) -> bool:
        return self._on_lease("fail", chance)

    def _bury(self, chance: Random) -> bool:
        return self._on_lease("bury", chance)

    def _release(self, chance: Random) -> bool:
        return self._on_lease("release", chance)

    def _on_lease(self, verb: str, chance: Random) -> bool:
        if not self.held:
            return False
        job, queue = chance.choice(self.held[-6:]), self.queue
        lease = Lease(job.scope, job.job_id, "w", job.lease_generation)
        calls = {
            "extend": lambda: queue.extend(lease),
            "checkpoint": lambda: queue.checkpoint(lease, b"here"),
            "stats": lambda: queue.stats(lease, "line"),
            "complete": lambda: queue.complete(lease),
            "complete late": lambda: queue.complete(lease, late="accept_if_unclaimed"),
            "fail": lambda: queue.fail(lease, "error"),
            "bury": lambda: queue.fail(lease, "error", retryable=False),
            "release": lambda: queue.release(lease),
        }
        self._check_time(self.recorder.on(verb, job, calls[verb], "w", lease.lease_generation, TTL_US))
        return True

    def _check_time(self, job: JobRecord | None) -> None:
        """The newest event is of a time at which the queue may have been; a tie of jobs moves it on by some."""
        if job is None:
            return
        at_us = seen(job).at
        most_us = max(self.high_us, self.newest_us)
        if not self.low_us <= at_us <= most_us + len(self.recorder.entries):
            self.faults.append(f"done at {at_us}, the queue was between {self.low_us} and {most_us}")

    def _home(self) -> Path:
        return self.folder / f"queue{self.homes}"
