"""What one thread of the contention does: lease, and then whatever may be done with it, rightly or wrongly held."""

from __future__ import annotations

from itertools import count
from random import Random
from threading import Event
from typing import Any

from telha_queue import JobRecord, JobSpec, JobState, Lease, Queue, Scope
from telha_queue.testing import ManualClock
from tests.torture.race_history import Recorder
from tests.torture.race_rules import Rules

SCOPES = (Scope.named("acme"), Scope.SYSTEM, Scope.named("other"))
TTL_US = 1_000_000
RULES = Rules(max_attempts=4, base_us=1_000_000, factor=2, cap_us=4_000_000)
MOST_STALE = 64
BATCH_JOBS = 50
VERBS = ("complete", "complete late", "extend", "stats", "checkpoint", "release", "fail", "bury")
SHARES = (45, 10, 12, 5, 5, 8, 13, 2)


class Progress:
    """What the threads share besides the queue."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.completed = count(1)
        self.over = Event()

    def one_completed(self) -> None:
        """Say so; the last one ends the run."""
        if next(self.completed) == self.jobs:
            self.over.set()


class Worker:
    """One of the threads that lease. Its chance decides what it tries, and the machine when."""

    def __init__(self, queue: Queue, stamp: count[int], chance: Random, name: str, progress: Progress) -> None:
        self.queue = queue
        self.recorder = Recorder(queue, stamp)
        self.chance = chance
        self.name = name
        self.progress = progress
        self.stale: list[JobRecord] = []

    def run(self) -> None:
        """Until all jobs are completed."""
        while not self.progress.over.is_set():
            self.turn()

    def turn(self) -> None:
        """Lease once, and work."""
        jobs = self.recorder.lease(self._lease, self.name, TTL_US)
        for job in jobs:
            self._work(job)
        if self.stale and (not jobs or self.chance.random() < 0.1):
            self._act(self.stale[self.chance.randrange(len(self.stale))])

    def _lease(self) -> JobRecord | list[JobRecord] | None:
        how = self.chance.randrange(8)
        more: dict[str, Any] = {"worker_id": self.name, "lease_ttl_secs": TTL_US / 1_000_000}
        if how == 0:
            return self.queue.lease_next_any(**more)
        if how == 1:
            return self.queue.lease_many(self.chance.choice((None, *SCOPES)), self.chance.randint(1, 5), **more)
        return self.queue.lease_next(self.chance.choice(SCOPES), **more)

    def _work(self, job: JobRecord) -> None:
        for _ in range(self.chance.choice((1, 1, 1, 2, 4))):
            if self.chance.random() < 0.06:  # the worker is gone, or seems to be, and comes back too late
                self.stale = [*self.stale[-MOST_STALE:], job]
                return
            if not self._act(job):
                return

    def _act(self, job: JobRecord) -> bool:
        """One verb; whether the lease goes on."""
        worker, generation = job.worker_id, job.lease_generation
        if worker is None:
            return False
        lease = Lease(job.scope, job.job_id, worker, generation)
        queue, verb = self.queue, self.chance.choices(VERBS, SHARES)[0]
        calls = {
            "complete": lambda: queue.complete(lease),
            "complete late": lambda: queue.complete(lease, late="accept_if_unclaimed"),
            "extend": lambda: queue.extend(lease),
            "stats": lambda: queue.stats(lease, "half way"),
            "checkpoint": lambda: queue.checkpoint(lease, b"half way"),
            "release": lambda: queue.release(lease),
            "fail": lambda: queue.fail(lease, "error"),
            "bury": lambda: queue.fail(lease, "error", retryable=False),
        }
        after = self.recorder.on(verb, job, calls[verb], worker, generation, TTL_US)
        if after is None:
            return False
        if after.state == JobState.COMPLETED:
            self.progress.one_completed()
        if after.state == JobState.DEAD:
            self.recorder.on("retry", job, lambda: queue.retry(lease.scope, lease.job_id))
        return after.state == JobState.LEASED


class Feeder:
    """The thread that enqueues, in batches, while the others are at work already."""

    def __init__(self, queue: Queue, stamp: count[int], jobs: int) -> None:
        self.queue = queue
        self.recorder = Recorder(queue, stamp)
        self.jobs = jobs

    def run(self) -> None:
        """Until all jobs are there."""
        for start in range(0, self.jobs, BATCH_JOBS):
            specs = [JobSpec("x", priority=n % 3) for n in range(min(BATCH_JOBS, self.jobs - start))]
            scope = SCOPES[start // BATCH_JOBS % len(SCOPES)]
            self.recorder.enqueue(lambda scope=scope, specs=specs: self.queue.enqueue_many(scope, specs))


class Ticker:
    """The thread that moves the clock and reaps; it also puts back what the reaper gave up."""

    def __init__(self, queue: Queue, stamp: count[int], clock: ManualClock, step_us: int, progress: Progress) -> None:
        self.queue = queue
        self.recorder = Recorder(queue, stamp)
        self.clock = clock
        self.step_us = step_us
        self.progress = progress

    def run(self) -> None:
        """Until all jobs are completed."""
        while not self.progress.over.is_set():
            self.once()

    def once(self) -> None:
        """One step of the clock and one pass."""
        self.clock.advance_us(self.step_us)
        for dead in self.recorder.reap(self.clock).dead_jobs:
            job = self.queue.get(dead.scope, dead.job_id)
            self.recorder.on("retry", job, lambda job=job: self.queue.retry(job.scope, job.job_id))
