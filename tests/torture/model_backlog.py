"""T21 and T22: a lease behind very many jobs that it cannot take: completed ones, which leave marks, and gated ones.

A lease is compared with itself on a queue that holds nothing else, in processor time, and what is allowed is wide: a
scan over what lies in front would be slower by thousands.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

from telha_queue import JobRecord, JobSpec, JobState, Queue, QueueConfig, Scope
from telha_queue.testing import ManualClock
from tests.torture.protocol import Harness, Request, Result

ACME = Scope.named("acme")
BATCH = 1000
SAMPLES = 200
MOST_TIMES = 20
MOST_NS = 5_000_000
CONFIG = QueueConfig(durability="os", backoff_base_secs=3600, backoff_cap_secs=3600)


def run_tombstones(request: Request) -> Result:
    """Complete so many, then lease; then once more after the queue was opened again."""
    fresh_ns = fresh_lease_ns(request.folder)
    clock = ManualClock()
    faults, figures = [], {}
    path = request.folder / "queue"
    with Queue.open(path, CONFIG, clock) as queue:
        for start in range(0, request.wanted, BATCH):
            queue.enqueue_many(ACME, [JobSpec("x")] * min(BATCH, request.wanted - start))
            outcomes = queue.complete_many(queue.lease_many(ACME, BATCH, worker_id="w"))
            if not all(isinstance(each, JobRecord) and each.state == JobState.COMPLETED for each in outcomes):
                faults.append(f"a completion was refused after {start}")
        figures["behind them, ns"] = leased_ns(queue, faults)
    with Queue.open(path, CONFIG, clock) as queue:
        began_ns = time.thread_time_ns()
        first = queue.lease_next(ACME, worker_id="w")
        figures["first after opening, us"] = (time.thread_time_ns() - began_ns) // 1000
        if first is not None:
            faults.append("an empty queue leased a job after it was opened again")
        figures["behind them after opening, ns"] = leased_ns(queue, faults)
        completed = queue.counts()[JobState.COMPLETED]
    if completed != request.wanted + 2 * SAMPLES:
        faults.append(f"{completed} are completed, should be {request.wanted + 2 * SAMPLES}")
    return _result(request, fresh_ns, figures, faults)


def run_gated(request: Request) -> Result:
    """Lose so many to the reaper, all of which then wait out their backoff; one job is due behind them."""
    fresh_ns = fresh_lease_ns(request.folder)
    clock = ManualClock()
    faults, figures = [], {}
    path = request.folder / "queue"
    with Queue.open(path, CONFIG, clock) as queue:
        for start in range(0, request.wanted, BATCH):
            queue.enqueue_many(ACME, [JobSpec("x", priority=0)] * min(BATCH, request.wanted - start))
            queue.lease_many(ACME, BATCH, worker_id="lost", lease_ttl_secs=1)
        clock.advance(secs=2)
        reclaimed = queue.reap_expired().reclaimed
        if reclaimed != request.wanted:
            faults.append(f"the reaper took {reclaimed} of {request.wanted}")
        figures["behind them, ns"] = leased_ns(queue, faults)
    with Queue.open(path, CONFIG, clock) as queue:
        figures["behind them after opening, ns"] = leased_ns(queue, faults)
        clock.advance(secs=3601)
        again = queue.lease_many(ACME, BATCH, worker_id="w")
        if [job.lease_generation for job in again] != [2] * min(BATCH, request.wanted):
            faults.append("not all that had waited were due when their time came")
    return _result(request, fresh_ns, figures, faults)


def fresh_lease_ns(folder: Path) -> int:
    """What a lease costs on a queue with nothing else in it."""
    with Queue.open(folder / "fresh", CONFIG, ManualClock()) as queue:
        return leased_ns(queue, [])


def leased_ns(queue: Queue, faults: list[str]) -> int:
    """Enqueue one, lease it, complete it, time and again; what a lease costs. Each must get the one that is due."""
    spent = []
    for _ in range(SAMPLES):
        made = queue.enqueue(ACME, "x")
        began_ns = time.thread_time_ns()
        leased = queue.lease_next(ACME, worker_id="w")
        spent.append(time.thread_time_ns() - began_ns)
        if leased is None or leased.job_id != made.job_id:
            faults.append(f"leased {leased!r}, due was {made!r}")
            break
        queue.complete(leased)
    return int(median(spent))


def _result(request: Request, fresh_ns: int, figures: dict[str, int], faults: list[str]) -> Result:
    for what, spent_ns in figures.items():
        if what.endswith("ns") and spent_ns > max(MOST_TIMES * fresh_ns, MOST_NS):
            faults.append(f"a lease {what}: {spent_ns}, on an empty queue {fresh_ns}")
    counted = {"ns of a lease on an empty queue": fresh_ns, **{f"lease {what}": ns for what, ns in figures.items()}}
    return Result(request.wanted, 3 * request.wanted, counted=counted, faults=tuple(faults[:10]))


TOMBSTONES = Harness(
    name="tombstones",
    tests="T21",
    about="a lease after very many jobs were completed costs what it costs on an empty queue, before and after opening",
    unit="completed jobs",
    ci=300_000,
    nightly=5_000_000,
    run=run_tombstones,
)
GATED = Harness(
    name="gated",
    tests="T22",
    about="one job that is due behind very many that wait out their backoff is leased at once, and they in time",
    unit="gated jobs",
    ci=100_000,
    nightly=1_000_000,
    run=run_gated,
)
