"""T14: days of a queue's life in minutes: the clock is turned, the reaper comes each 30 seconds, workers are lost.

In a process of its own, whose memory is nobody else's. What must stay flat is compared with itself earlier in the run:
memory, the processor time of a lease, the bytes on disk beside the bytes that are alive.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections import Counter, deque
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from telha_queue import JobRecord, JobSpec, JobState, Queue, QueueConfig, Scope
from telha_queue.errors import LeaseConflict
from telha_queue.testing import ManualClock
from tests.torture import api_child
from tests.torture.protocol import Harness, Request, Result

LIMIT_SECS = 1800
TICK_SECS = 30
DAYS = {"ci": 1, "nightly": 10}
TTL_SECS = 300
PARTS = 10
LOOKS = 200
"""Memory goes up and down with the write buffers, so it is looked at often, and medians are compared."""
ACME = Scope.named("acme")
MEMTABLE_BYTES = {"ci": 1024 * 1024, "nightly": 16 * 1024 * 1024}
"""Small ones make many table files, and each that is open costs some 10 KiB."""
CONFIG = QueueConfig(durability="os", block_cache_bytes=4 * 1024 * 1024, backoff_base_secs=60)
MOST = {"memory, permille": 1050, "memory, slack in KiB": 2048, "lease, permille": 2000, "disk, permille": 3000}


class Soak:
    """The queue, the workers that stall, and what was measured."""

    def __init__(self, folder: Path, jobs: int, ticks: int, seed: int, memtable_bytes: int) -> None:
        self.folder = folder
        self.clock = ManualClock()
        self.config = CONFIG.replace(memtable_bytes=memtable_bytes)
        self.queue = Queue.open(folder, self.config, self.clock)
        self.jobs, self.ticks = jobs, ticks
        self.chance = Random(seed)
        self.stalled: deque[tuple[int, JobRecord]] = deque()
        self.counted = Counter[str]()
        self.lease_ns: list[int] = []
        self.parts: list[dict[str, float]] = []
        self.memory: list[int] = []

    def run(self) -> None:
        """All ticks, and then on until nothing is left to do."""
        for tick in range(self.ticks):
            due = self.jobs * (tick + 1) // self.ticks - self.counted["enqueued"]
            self._tick(tick, due)
            if (tick + 1) % (self.ticks // LOOKS) == 0:
                self.memory.append(own_memory())
            if (tick + 1) % (self.ticks // PARTS) == 0:
                self._measure()
        for tick in range(self.ticks, self.ticks + 10_000):
            counts = self.queue.counts()
            if not counts[JobState.PENDING] and not counts[JobState.LEASED]:
                return
            for _ in range(100):
                self._tick(tick, 0)

    def _tick(self, tick: int, due: int) -> None:
        self.clock.advance(secs=TICK_SECS)
        report = self.queue.reap_expired()
        self.counted["reaped"] += report.reclaimed
        self.counted["dead"] += report.dead
        for start in range(0, due, 1000):
            specs = [JobSpec(f"kind:{n % 5}", b"p" * self.chance.randrange(200)) for n in range(min(1000, due - start))]
            self.counted["enqueued"] += len(self.queue.enqueue_many(ACME, specs))
        while (job := self._lease()) is not None:
            self._work(tick, job)
        while self.stalled and self.stalled[0][0] <= tick:
            self._come_back(self.stalled.popleft()[1])

    def _lease(self) -> JobRecord | None:
        began_ns = time.thread_time_ns()
        job = self.queue.lease_next(ACME, worker_id="w", lease_ttl_secs=TTL_SECS)
        self.lease_ns.append(time.thread_time_ns() - began_ns)
        return job

    def _work(self, tick: int, job: JobRecord) -> None:
        dice = self.chance.random()
        if dice < 0.05:
            self.counted["crashed"] += 1
        elif dice < 0.10:
            self.counted["stalled"] += 1
            self.stalled.append((tick + 2 * TTL_SECS // TICK_SECS, job))
        elif dice < 0.12:
            self.counted["dead"] += self.queue.fail(job, "error").state == JobState.DEAD
        else:
            self.queue.complete(job)
            self.counted["completed"] += 1

    def _come_back(self, job: JobRecord) -> None:
        """A worker that slept through its deadline; it may have the job only if nobody took it meanwhile."""
        before = self.queue.get(ACME, job.job_id)
        try:
            done = self.queue.complete(job, late=self.chance.choice(("refuse", "accept_if_unclaimed")))
        except LeaseConflict:
            self.counted["refused"] += 1
            return
        self.counted["completed"] += 1
        self.counted["dead"] -= before.state == JobState.DEAD
        assert (before.lease_generation, before.reaped_worker_id) == (done.lease_generation, "w"), "a stale one won"

    def _measure(self) -> None:
        ordered = sorted(self.lease_ns)
        self.lease_ns = []
        self.parts.append({"lease": median(ordered), "p99": ordered[len(ordered) * 99 // 100]})

    def result(self) -> Result:
        """What is wrong, and the figures."""
        counts = self.queue.counts()
        live = sum(len(job.key) + len(job.value) for job in everything(self.queue))
        self.queue.close()
        Queue.open(self.folder, self.config, self.clock).close()  # what only the log held is in tables now
        on_disk = sum(file.stat().st_size for file in self.folder.iterdir())
        last = self.parts[-1]
        warm, late = (round(median(self.memory[LOOKS * at // 10 : LOOKS * (at + 3) // 10])) for at in (3, 7))
        grown = late - MOST["memory, slack in KiB"]
        figures = {
            "memory, permille": round(1000 * max(grown, 0) / warm),
            "lease, permille": round(1000 * last["lease"] / self.parts[1]["lease"]),
            "disk, permille": round(1000 * on_disk / live),
        }
        faults = [f"{what}: {figure}, at most {MOST[what]}" for what, figure in figures.items() if figure > MOST[what]]
        wanted = dict.fromkeys(JobState, 0)
        wanted |= {JobState.COMPLETED: self.counted["completed"], JobState.DEAD: self.counted["dead"]}
        if counts != wanted or sum(counts.values()) != self.jobs:
            faults.append(f"of {self.jobs} jobs there are {counts}, {wanted} were told")
        shown = {f"{name} of a lease, ns": int(last[name]) for name in ("lease", "p99")}
        memory = {"KiB of memory": late, "KiB when warm": warm}
        counted = {**self.counted, **figures, **shown, **memory}
        done = counted.pop("enqueued")
        return Result(done, counted["completed"] + counted["reaped"], counted=counted, faults=tuple(faults))


def own_memory() -> int:
    """What this process has of its own in memory, in KiB, without what it has freed and the allocator still keeps."""
    ctypes.CDLL(None).malloc_trim(0)
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["RssAnon"].split()[0])


def everything(queue: Queue) -> Any:
    """All jobs, page by page."""
    page = queue.list(limit=1000)
    while page:
        yield from page
        page = queue.list(limit=1000, after=page[-1])


def run(request: Request) -> Result:
    """Have a child do it, and take its word for it."""
    ticks = DAYS[request.scale] * 24 * 3600 // TICK_SECS
    words = [request.folder / "queue", request.wanted, ticks, request.seed, MEMTABLE_BYTES[request.scale]]
    return api_child.result_of("tests.torture.clock_soak", words, LIMIT_SECS)


HARNESS = Harness(
    name="soak",
    tests="T14",
    about="ten days of simulated time with a pass of the reaper each 30 seconds, 5 % of jobs lost with their worker "
    "and 5 % stalled; memory, the cost of a lease and the disk stay in bounds, and the counts are exact",
    unit="jobs",
    ci=20_000,
    nightly=1_000_000,
    run=run,
)

if __name__ == "__main__":
    soak = Soak(Path(sys.argv[1]), *map(int, sys.argv[2:]))
    soak.run()
    api_child.answer(soak.result())
