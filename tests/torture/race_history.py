"""Histories of what many threads were told of each job: recording, and nothing of what is right.

A stamp is drawn before a call and after it, from one counter for all threads, so that of two calls one is known to have
ended before the other began, or they are known to have overlapped.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import NamedTuple

from telha_queue import JobRecord, Queue
from telha_queue.errors import InvalidTransition, LeaseConflict
from telha_queue.job import ReapReport


class Seen(NamedTuple):
    """What a returned record says of its job."""

    state: int
    generation: int
    worker: str | None
    attempts: int
    crashes: int
    dead_reason: str | None
    deadline: int | None
    gate: int | None
    events: int
    at: int
    """When the newest event was: the time at which the verb was done."""


class Refused(NamedTuple):
    """What a refusal says of its job; `held` is None when the error does not tell a generation."""

    state: int
    held: int | None


class Entry(NamedTuple):
    """One call as its caller saw it."""

    start: int
    end: int
    verb: str
    worker: str
    """The worker presented; empty where none is."""
    generation: int
    ttl_us: int
    told: Seen | Refused

    def shown(self) -> str:
        who = f" by {self.worker} under {self.generation}" if self.worker else ""
        return f"[{self.start}, {self.end}] {self.verb}{who}: {self.told}"


class Pass(NamedTuple):
    """One pass of the reaper: when it ran, and between which times of the clock."""

    start: int
    end: int
    low_us: int
    high_us: int
    took: int


class Recorder:
    """One thread's part of a history. `stamp` is shared by all the threads of one history."""

    def __init__(self, queue: Queue, stamp: count[int]) -> None:
        self.queue = queue
        self.stamp = stamp
        self.entries: dict[bytes, list[Entry]] = {}
        self.passes: list[Pass] = []
        self.acknowledged = 0

    def lease(
        self, call: Callable[[], JobRecord | list[JobRecord] | None], worker: str, ttl_us: int
    ) -> list[JobRecord]:
        """A call that leases; what it leased."""
        start = next(self.stamp)
        told = call()
        end = next(self.stamp)
        jobs = told if isinstance(told, list) else [] if told is None else [told]
        for job in jobs:
            self._note(job.key[42:], Entry(start, end, "lease", worker, job.lease_generation, ttl_us, seen(job)))
        self.acknowledged += 1
        return jobs

    def on(
        self,
        verb: str,
        job: JobRecord,
        call: Callable[[], JobRecord],
        worker: str = "",
        generation: int = 0,
        ttl_us: int = 0,
    ) -> JobRecord | None:
        """A call on one job; the job after it, or None when it was refused."""
        told: Seen | Refused
        start = next(self.stamp)
        try:
            after = call()
        except LeaseConflict as refusal:
            told, after = Refused(refusal.state, refusal.held), None
        except InvalidTransition as refusal:
            told, after = Refused(refusal.state, None), None
        end = next(self.stamp)
        if after is not None:
            told = seen(after)
            self.acknowledged += 1
        self._note(job.key[42:], Entry(start, end, verb, worker, generation, ttl_us, told))
        return after

    def enqueue(self, call: Callable[[], list[JobRecord]]) -> list[JobRecord]:
        """A call that makes jobs."""
        start = next(self.stamp)
        jobs = call()
        end = next(self.stamp)
        for job in jobs:
            self._note(job.key[42:], Entry(start, end, "enqueue", "", 0, 0, seen(job)))
        self.acknowledged += 1
        return jobs

    def reap(self, clock: Callable[[], int]) -> ReapReport:
        """A pass of the reaper. Of one history, one thread makes them all."""
        low_us, start = clock(), next(self.stamp)
        report = self.queue.reap_expired()
        self.passes.append(Pass(start, next(self.stamp), low_us, clock(), report.reclaimed + report.dead))
        self.acknowledged += 1
        return report

    def _note(self, job_id: bytes, entry: Entry) -> None:
        self.entries.setdefault(job_id, []).append(entry)


def seen(job: JobRecord) -> Seen:
    """What a record says, in short."""
    last = job.events[-1]
    return Seen(
        int(job.state),
        job.lease_generation,
        job.worker_id,
        job.attempts,
        job.crashes,
        job.dead_reason,
        job.lease_deadline,
        job.not_before,
        len(job.events) + job.events_dropped,
        last.at if last.last_at is None else last.last_at,
    )


def merged(recorders: list[Recorder]) -> dict[bytes, list[Entry]]:
    """The histories of all jobs, each in the order in which its calls began."""
    histories: dict[bytes, list[Entry]] = {}
    for recorder in recorders:
        for job_id, entries in recorder.entries.items():
            histories.setdefault(job_id, []).extend(entries)
    for entries in histories.values():
        entries.sort()
    return histories
