"""T8: a closed queue is damaged, one file at a time: bits flipped, ends cut off, files deleted. Then it is opened.

Right is a queue that has everything, or an error that says damage, or rows that are reported one by one. Wrong is an
answer with fewer jobs and no error, a changed job, a process that dies or hangs.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from random import Random
from uuid import UUID

from telha_queue import JobRecord, JobSpec, Queue, QueueConfig, Scope
from tests.torture import children
from tests.torture.inspector import Inspector, Seen
from tests.torture.protocol import Harness, Request, Result, total

REPORTED = ("CorruptionError", "CorruptRecord", "UnsupportedVersion", "StorageError", "InvalidPath")
MANNERS = ("flip", "cut", "delete")
WEIGHTS = (12, 6, 1)
JOBS = 240
STORES = ("log", "tables", "both")
"""Where a store has its jobs: in the log, in table files, or half in each."""


def run(request: Request) -> Result:
    """Make and look at `request.wanted` damaged queues."""
    share = -(-request.wanted // len(STORES))  # rounded up
    with Inspector(request.folder) as inspector:
        return total(_Sweep(request, kind, inspector).run(share) for kind in STORES)


class _Sweep:
    """One store, damaged again and again in another place."""

    def __init__(self, request: Request, kind: str, inspector: Inspector) -> None:
        self._request = request
        self._kind = kind
        self._chance = request.chance(kind)
        self._store = request.folder / kind
        self._image = request.folder / "image"
        self._before = request.folder / "before"
        self._ids = request.folder / f"{kind}.ids"
        self._inspector = inspector
        self._jobs = {job.job_id.bytes: job for job in _filled(self._store, kind)}
        self._ids.write_text("".join(f"{UUID(bytes=job_id)}\n" for job_id in self._jobs))

    def run(self, count: int) -> Result:
        files = sorted(path.name for path in self._store.iterdir())
        results = []
        for number in range(count):
            chance = self._request.chance(self._kind, number)
            results.append(self._damaged(files[number % len(files)], chance))
        return total(results)

    def _damaged(self, name: str, chance: Random) -> Result:
        shutil.copytree(self._store, self._image)
        what = _damage(self._image / name, chance)
        if self._request.keep is not None:
            children.remove(self._before)
            shutil.copytree(self._image, self._before)
        seen = self._inspector.look(self._image, self._ids)
        children.remove(self._image)
        verdict, faults = self._verdict(seen)
        if faults and self._request.keep is not None:
            shutil.move(self._before, self._request.keep / f"{self._kind} {what}")
        return Result(
            1,
            lost=seen.missing,
            aborts=seen.error == "died",
            hangs=seen.error == "hung",
            counted=Counter({verdict: 1}),
            faults=tuple(f"store {self._kind}, {what}: {text}" for text in faults),
        )

    def _verdict(self, seen: Seen) -> tuple[str, list[str]]:
        """What it came to, and what is wrong with that."""
        if seen.error in REPORTED:
            return f"refused with {seen.error}", []
        if seen.error:
            return seen.error, [f"{seen.error}: {seen.text}"]
        changed = [job for job_id, job in seen.jobs.items() if self._jobs.get(job_id) != job]
        if changed and seen.missing == 0 and not all(self._is_earlier(job) for job in changed):
            return "changed", [f"{len(changed)} jobs are not as they were: {changed[0]!r}"]
        if seen.missing or changed:
            text = f"silent loss: {seen.missing} of {len(self._jobs)} jobs missing, {len(changed)} in an earlier state"
            return "silent_loss", [text, *seen.complaints[:1]]
        if seen.reported:
            return "rows reported", []
        if seen.complaints:
            return "silent_disagreement", list(seen.complaints[:3])
        return "whole", []

    def _is_earlier(self, job: JobRecord) -> bool:
        """Whether the job is as it once was: its newest transitions are lost."""
        known = self._jobs.get(job.job_id.bytes)
        return known is not None and known.events[: len(job.events)] == job.events


def _damage(path: Path, chance: Random) -> str:
    """Do one thing to a file; returns what was done."""
    data = bytearray(path.read_bytes())
    manner = chance.choices(MANNERS, WEIGHTS)[0] if data else "delete"
    if manner == "delete":
        path.unlink()
        return f"{path.name} deleted"
    at = chance.randrange(len(data))
    if manner == "cut":
        path.write_bytes(data[:at])
        return f"{path.name} cut to {at} of {len(data)}"
    bit = chance.randrange(8)
    data[at] ^= 1 << bit
    path.write_bytes(data)
    return f"{path.name} bit {bit} of byte {at} flipped"


def _filled(path: Path, kind: str) -> list[JobRecord]:
    """A store with jobs in every state, closed. Small write buffers put them into tables; large ones into the log."""
    buffers = {"log": [64 << 20], "tables": [64 << 10] * 2, "both": [64 << 10, 64 << 20]}[kind]
    scope = Scope.named("acme")
    for turn, memtable_bytes in enumerate(buffers):
        config = QueueConfig(durability="os", memtable_bytes=memtable_bytes, max_attempts=1)
        with Queue.open(path, config) as queue:
            for n in range(0, JOBS // len(buffers), 10):
                payload = b"p" * (6000 if n % 40 == 0 else 300)
                keys = [f"key {turn} {n} {i}" if i % 2 else None for i in range(10)]
                queue.enqueue_many(scope, [JobSpec("x", payload, idempotency_key=key) for key in keys])
                leases = queue.lease_many(scope, 6, worker_id="w")
                queue.complete_many(leases[:3])
                queue.fail(leases[3], "broken")
                queue.checkpoint(leases[4], b"half way")
            jobs = [*queue.list(limit=1000)]  # before it is closed: opening moves what is in the log into tables
    return jobs


HARNESS = Harness(
    name="damage",
    tests="T8",
    about="bits flipped, ends cut off, files deleted, in each file of a closed queue. It has everything, or says that "
    "it is damaged: never fewer jobs, and never rows that disagree, without an error.",
    unit="images",
    ci=200,
    nightly=5000,
    run=run,
)
