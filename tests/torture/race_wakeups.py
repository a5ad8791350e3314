"""T13: sixteen threads wait for jobs; none of them sleeps on while a job is there that fits it.

Those that matter wait for an hour, so a wake-up that is lost leaves a job behind until the patience of this harness is
over, which is a fault. In every other stretch nobody else is about; in the rest, others with short waits come and go,
so that time runs out for some of them as they are notified.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from queue import Empty, SimpleQueue
from random import Random
from typing import Any
from uuid import UUID

from telha_queue import Exact, JobSpec, Queue, QueueConfig, Scope
from telha_queue.errors import LeaseConflict, StoreClosed
from tests.torture.protocol import Harness, Request, Result
from tests.torture.race_threads import restless

PATIENCE_SECS = 20
SLOW_NS = 50_000_000
STRETCH_JOBS = 200
LONG_SECS = 3600.0
ACME, OTHER = Scope.named("acme"), Scope.named("other")
KINDS = ("a", "ab", "b", "c")
STEADY: tuple[tuple[Scope | None, object], ...] = (
    (ACME, None), (ACME, "a"), (ACME, Exact("a")), (ACME, ("ab", "c")), (ACME, "b"),
    (OTHER, None), (OTHER, Exact("ab")), (OTHER, ("a", "b")), (None, "c"), (None, None),
)  # fmt: skip
"""What those want who wait for an hour: for every job there is one of them."""
FLEETING: tuple[tuple[Scope | None, object], ...] = (
    (ACME, "nothing"), (ACME, None), (ACME, "a"), (OTHER, "b"), (None, ("a", "c")), (None, Exact("nothing")),
)  # fmt: skip
CONFIG = QueueConfig(durability="os", memtable_bytes=1024 * 1024, backoff_base_secs=0, max_attempts=100, window_jobs=16)


class Waiter(threading.Thread):
    """Leases with patience and completes, until the queue is closed."""

    def __init__(self, hall: Hall, scope: Scope | None, kinds: object, chance: Random | None) -> None:
        super().__init__(daemon=True)
        self.hall = hall
        self.scope = scope
        self.kinds = kinds
        self.chance = chance
        """Of one whose waits are short; None for one that waits for an hour."""

    def run(self) -> None:
        hall = self.hall
        try:
            while True:
                wait_secs = LONG_SECS
                if self.chance is not None:
                    hall.noise.wait()
                    wait_secs = self.chance.choice((0.0, 0.0001, 0.001, 0.005))
                self._once(wait_secs)
        except StoreClosed:
            pass
        except Exception as error:  # noqa: BLE001  # told, whatever it is
            hall.faults.append(f"a waiter ended of {type(error).__name__}: {error}")

    def _once(self, wait_secs: float) -> None:
        queue = self.hall.queue
        more: dict[str, Any] = {"worker_id": "waiter", "wait_secs": wait_secs}
        if self.scope is None:
            job = queue.lease_next_any(self.kinds, **more)
        elif self.kinds is None:
            job = next(iter(queue.lease_many(self.scope, 1, **more)), None)
        else:
            job = queue.lease_next(self.scope, self.kinds, **more)
        if job is not None:
            self.hall.leased.put((job.job_id, time.monotonic_ns()))
            queue.complete(job)
        elif wait_secs == LONG_SECS:
            self.hall.faults.append("an hour was over too soon")


class Hall:
    """The queue, who waits for it, and the one producer."""

    def __init__(self, request: Request) -> None:
        self.queue = Queue.open(request.folder / "queue", CONFIG)
        self.leased: SimpleQueue[tuple[UUID, int]] = SimpleQueue()
        self.noise = threading.Event()
        self.faults: list[str] = []
        self.counted = Counter[str]()
        self.waiters = [Waiter(self, *what, None) for what in STEADY]
        self.waiters += [Waiter(self, *what, request.chance("waiter", n)) for n, what in enumerate(FLEETING)]
        for waiter in self.waiters:
            waiter.start()

    def close(self) -> None:
        """Close the queue, which ends every wait."""
        self.queue.close()
        self.noise.set()
        for waiter in self.waiters:
            waiter.join(PATIENCE_SECS)
        if any(waiter.is_alive() for waiter in self.waiters):
            self.faults.append("a waiter sleeps on after close")

    def expect(self, how: str, ready: dict[UUID, int]) -> int:
        """Every one of these jobs is leased; it could be from the time given."""
        missing = dict(ready)
        while missing:
            try:
                job_id, at_ns = self.leased.get(timeout=PATIENCE_SECS)
            except Empty:
                left = [self.queue.find(job_id) for job_id in missing]
                told = ", ".join(f"{job.kind} of {job.scope}, {job.state}" for job in left)
                self.faults.append(f"{how}: nobody leased {told}")
                return len(ready)
            since_ns = missing.pop(job_id, None)
            if since_ns is None:
                self.faults.append(f"{how}: {job_id} was leased twice, or is none of ours")
                return len(ready)
            self.counted["later than 50 ms"] += at_ns - since_ns > SLOW_NS
        self.counted[how] += len(ready)
        return len(ready)


def one(hall: Hall, chance: Random) -> dict[UUID, int]:
    """One job, and silence."""
    job = hall.queue.enqueue(chance.choice((ACME, OTHER)), chance.choice(KINDS))
    return {job.job_id: time.monotonic_ns()}


def many(hall: Hall, chance: Random) -> dict[UUID, int]:
    """Several jobs in one write: as many waiters are to wake as fit."""
    specs = [JobSpec(chance.choice(KINDS)) for _ in range(chance.randint(2, 12))]
    jobs = hall.queue.enqueue_many(chance.choice((ACME, OTHER)), specs)
    return {job.job_id: time.monotonic_ns() for job in jobs}


def row(hall: Hall, chance: Random) -> dict[UUID, int]:
    """Several jobs, one hard upon the other."""
    ready: dict[UUID, int] = {}
    for _ in range(chance.randint(2, 6)):
        ready |= one(hall, chance)
    return ready


def gated(hall: Hall, chance: Random) -> dict[UUID, int]:
    """A gate opens while nothing else happens."""
    delay_secs = chance.choice((0.0002, 0.001, 0.003, 0.01))
    job = hall.queue.enqueue(chance.choice((ACME, OTHER)), chance.choice(KINDS), delay_secs=delay_secs)
    return {job.job_id: time.monotonic_ns() + round(delay_secs * 1e9)}


def unfit(hall: Hall, chance: Random) -> dict[UUID, int]:
    """A job that nobody may have who is woken for it, then one that somebody may."""
    hall.queue.enqueue(OTHER, "nothing else", delay_secs=3600)
    return one(hall, chance)


def given_back(hall: Hall, chance: Random) -> dict[UUID, int]:
    """A job that comes back: released, failed, retried or taken back by the reaper."""
    queue = hall.queue
    made = queue.enqueue(
        Scope.SYSTEM, "back"
    )  # where nobody waits but those who wait for any scope: the producer races them
    lease = queue.lease_next(Scope.SYSTEM, Exact("back"), worker_id="producer", lease_ttl_secs=0.000001)
    if lease is None:
        return {made.job_id: time.monotonic_ns()}
    how = chance.choice(("release", "fail", "retry", "reap"))
    try:
        if how == "release":
            queue.release(lease)
        elif how == "fail":
            queue.fail(lease, "error")
        elif how == "retry":
            queue.retry(Scope.SYSTEM, queue.fail(lease, "no", retryable=False).job_id)
        else:
            queue.reap_expired()
    except LeaseConflict as error:
        hall.faults.append(f"given back: {error}")
    return {made.job_id: time.monotonic_ns()}


PATTERNS: tuple[Callable[[Hall, Random], dict[UUID, int]], ...] = (one, one, many, row, gated, unfit, given_back)


def run(request: Request) -> Result:
    """Pattern after pattern, each to its end, until there were so many jobs."""
    hall, chance, done, stretch = Hall(request), request.chance("producer"), 0, -1
    with restless():
        while done < request.wanted and not hall.faults:
            if done // STRETCH_JOBS > stretch:
                stretch = done // STRETCH_JOBS
                (hall.noise.set if stretch % 2 else hall.noise.clear)()
            pattern = chance.choice(PATTERNS)
            done += hall.expect(pattern.__name__.replace("_", " "), pattern(hall, chance))
        hall.close()
    return Result(done, 2 * done, counted=dict(hall.counted), faults=tuple(hall.faults))


HARNESS = Harness(
    name="wakeups",
    tests="T13",
    about="one producer and 16 who wait, with kinds that do not fit, waits that run out and gates that open in "
    "silence; nobody sleeps beside a job that fits",
    unit="jobs",
    ci=2_000,
    nightly=200_000,
    run=run,
)
