"""T10 and T11: many threads do everything to the same jobs at once; every job's history must have an explanation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

from telha_queue import JobRecord, JobState, Queue, QueueConfig
from telha_queue.testing import ManualClock
from tests.torture.protocol import Harness, Request, Result
from tests.torture.race_checker import Checker
from tests.torture.race_history import Entry, Pass, Refused, Seen, merged, seen
from tests.torture.race_load import RULES, Feeder, Progress, Ticker, Worker
from tests.torture.race_threads import at_once, restless

STEP_US = 20_000
ROUND_JOBS = {"ci": 5_000, "nightly": 20_000}
THREADS = {"ci": (8,), "nightly": (1, 2, 4, 8, 16, 32)}
HISTORIES_OF_A_ROUND = 2_000
"""So many are explained, those with a refusal first; the others are looked at for what they end in."""
CONFIG = QueueConfig(
    durability="os",
    memtable_bytes=256 * 1024,
    max_attempts=RULES.max_attempts,
    backoff_base_secs=RULES.base_us // 1_000_000,
    backoff_factor=RULES.factor,
    backoff_cap_secs=RULES.cap_us // 1_000_000,
    window_jobs=64,
)


class Played(NamedTuple):
    """What came of one round."""

    histories: dict[bytes, list[Entry]]
    """Each ends with a look at its job when all was over."""
    passes: list[Pass]
    acknowledged: int
    faults: list[str]


def run(request: Request) -> Result:
    """Rounds of one number of threads after the other, until there were so many jobs."""
    total, rounds = Counter[str](), 0
    faults: list[str] = []
    while total["jobs"] < request.wanted and not faults:
        threads = THREADS[request.scale][rounds % len(THREADS[request.scale])]
        jobs = min(ROUND_JOBS[request.scale], request.wanted - total["jobs"])
        played = play(request, rounds, threads, jobs)
        explained = explain(played)
        faults += [
            f"round {rounds} with {threads} threads: {text}" for text in [*played.faults, *explained.pop("faults")]
        ]
        total.update(explained)
        total.update(jobs=jobs, acknowledged=played.acknowledged, passes=len(played.passes))
        rounds += 1
    cycles, acknowledged = total.pop("jobs"), total.pop("acknowledged")
    return Result(cycles, acknowledged, counted=dict(total), faults=tuple(faults))


def play(request: Request, number: int, threads: int, jobs: int) -> Played:
    """One round: a thread enqueues, one moves the clock and reaps, the others work; or one does it all by turns."""
    clock, stamp, progress = ManualClock(), count(), Progress(jobs)
    with Queue.open(request.folder / f"round{number}", CONFIG, clock) as queue:
        names = [f"w{n}" for n in range(max(threads - 1, 1))]
        workers = [Worker(queue, stamp, request.chance(number, name), name, progress) for name in names]
        feeder, ticker = Feeder(queue, stamp, jobs), Ticker(queue, stamp, clock, STEP_US // threads, progress)
        if threads == 1:
            faults = at_once([lambda: alone(feeder, workers[0], ticker)])
        else:
            with restless():
                faults = at_once([feeder.run, ticker.run, *[worker.run for worker in workers]])
        if faults:
            progress.over.set()
            return Played({}, [], 0, faults)
        everyone = [feeder.recorder, ticker.recorder, *[worker.recorder for worker in workers]]
        histories, last = merged(everyone), list(everything(queue))
        faults = end_faults(queue, last, histories, jobs, sum(each.took for each in ticker.recorder.passes))
    end = next(stamp)
    for job in last:
        histories.setdefault(job.key[42:], []).append(Entry(end, end, "get", "", 0, 0, seen(job)))
    return Played(histories, ticker.recorder.passes, sum(each.acknowledged for each in everyone), faults)


def explain(played: Played) -> dict[str, Any]:
    """Look for an order of each history, those with the most refusals first."""
    checker = Checker(RULES, played.passes)
    contested = sorted(played.histories.values(), key=lambda history: -refusals(history))[:HISTORIES_OF_A_ROUND]
    faults = [fault for fault in map(checker.fault, contested) if fault is not None]
    reaped = sum(each.took for each in played.passes)
    return {"histories": len(contested), "refusals": sum(map(refusals, contested)), "reaped": reaped, "faults": faults}


def refusals(history: list[Entry]) -> int:
    """How many calls of a history were refused."""
    return sum(isinstance(entry.told, Refused) for entry in history)


def alone(feeder: Feeder, worker: Worker, ticker: Ticker) -> None:
    """All of it in one thread, by turns."""
    feeder.run()
    while not worker.progress.over.is_set():
        worker.turn()
        ticker.once()


def end_faults(
    queue: Queue, last: list[JobRecord], histories: dict[bytes, list[Entry]], jobs: int, taken: int
) -> list[str]:
    """What is wrong when all is over: each job is completed, by one call; nothing is there that nobody made."""
    faults = []
    counts = queue.counts()
    if counts != {state: jobs if state == JobState.COMPLETED else 0 for state in JobState}:
        faults.append(f"of {jobs} jobs the counts at the end are {counts}")
    if {job.key[42:] for job in last} != histories.keys():
        faults.append("other jobs are there than were enqueued")
    for history in histories.values():
        told = [entry for entry in history if entry.verb.startswith("complete") and isinstance(entry.told, Seen)]
        if len(told) != 1:
            faults.append(f"completed {len(told)} times: {[entry.shown() for entry in told]}")
    by_reaper = sum(
        event.transition == "reaped" or (event.transition == "dead" and "expired" in (event.detail or ""))
        for job in last
        for event in job.events
    )
    if by_reaper != taken:
        faults.append(f"the passes told of {taken} leases taken back, the trails of {by_reaper}")
    return faults


def everything(queue: Queue) -> Iterator[JobRecord]:
    """All jobs, page by page."""
    page = queue.list(limit=1000)
    while page:
        yield from page
        page = queue.list(limit=1000, after=page[-1])


HARNESS = Harness(
    name="contention",
    tests="T10, T11",
    about="up to 32 threads lease, complete, fail, release, extend and retry the same jobs while one reaps; each job "
    "is completed once, and the history of each has an order that the state machine allows",
    unit="jobs",
    ci=5_000,
    nightly=1_200_000,
    run=run,
)
