"""One life: a queue on disk and one in memory do the same steps; after each of them every row of the two is the same.

The two draw different random bits for their job ids, so jobs are numbered as they come and ids are left out of what is
compared. The promises are checked on the rows themselves as well, where both engines could be wrong together.
"""

from __future__ import annotations

import shutil
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from telha_queue import JobRecord, JobState, Lease, Queue, QueueConfig
from telha_queue.errors import JobError, LeaseConflict
from telha_queue.testing import ManualClock, memory_queue
from tests.torture import model_invariants as invariants
from tests.torture.model_steps import BY_LEASE, PERFORM, SCOPES, Step

CONFIG = QueueConfig(
    lease_ttl_secs=20,
    lease_grace_secs=0.5,
    max_attempts=3,
    backoff_base_secs=2,
    backoff_factor=3,
    backoff_cap_secs=10,
    backoff_base_secs_by_kind={"ab": 15},
    durability="os",
    memtable_bytes=1024 * 1024,
    block_cache_bytes=0,
    window_jobs=16,
)
MAX_ROWS = 900
"""A life that has so many jobs enqueues no more: one page is to hold them all."""


ID_AT, ID_END = 6, 22
"""Where a record of format 1 has its job's id: cutting it out there is much faster than looking for it."""


class Disagreement(AssertionError):
    """The two queues differ, or a promise is broken."""


class Life:
    """Two queues on one clock, what is known of their jobs, and the leases that were ever handed out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.homes = 0
        self.clock = ManualClock()
        self.seen_us = 0
        self.disk = Queue.open(self._home(), CONFIG, self.clock)
        self.memory = memory_queue(CONFIG, self.clock)
        self.numbers: dict[bytes, int] = {}
        self.leases: list[tuple[Lease, Lease]] = []
        self.rows: dict[int, JobRecord] = {}
        self.acknowledged = 0

    def close(self) -> None:
        """End it and remove its directory."""
        self.disk.close()
        self.memory.close()
        shutil.rmtree(self._home(), ignore_errors=True)

    def do(self, step: Step) -> None:
        """One step, and then everything is compared. Raises Disagreement."""
        verb, words = step
        if verb in ("tick", "jump"):
            us = words[0] * (1 if verb == "tick" else 1_000_000)
            self.clock.set_us(max(self.clock() + us, 0))
        elif verb in ("reopen", "crash"):
            self._start_again(crashed=verb == "crash")
        elif verb == "forge":
            self._forge(*words)
        elif verb not in BY_LEASE:
            self._both(verb, words, words)
        elif self.leases:
            self._both(verb, *self._with_leases(words))

    def _both(self, verb: str, of_disk: tuple[Any, ...], of_memory: tuple[Any, ...]) -> None:
        if verb.startswith("enqueue") and len(self.rows) > MAX_ROWS:
            return
        if verb == "reap" and of_disk[0] is not None:
            of_disk = of_memory = (max(self.seen_us + of_disk[0], 0),)
            self.seen_us = max(self.seen_us, of_disk[0])
        if verb not in ("list", "read") and of_disk[0] != []:  # those do not ask what time it is
            self.seen_us = max(self.seen_us, self.clock())
        told, expected = attempt(verb, self.disk, of_disk), attempt(verb, self.memory, of_memory)
        self._number(told, expected)
        if self._facts(told) != self._facts(expected):
            raise Disagreement(f"{verb} told {told!r}, in memory {expected!r}")
        if verb.startswith("lease"):
            self._check_order(verb, of_disk, told)
            self._keep(told, expected)
        self.acknowledged += not isinstance(told, JobError)
        refused = isinstance(told, LeaseConflict) or verb in ("read", "list")
        many = verb in ("stats", "complete_many", "lease_many", "enqueue_many", "reap")
        self._compare(0 if refused else None if many else 1)

    def _number(self, told: Any, expected: Any) -> None:
        pairs = zip(told, expected, strict=False) if isinstance(told, list) and isinstance(expected, list) else []
        for one, other in [(told, expected), *pairs]:
            if isinstance(one, JobRecord) and isinstance(other, JobRecord):
                number = self.numbers.setdefault(one.job_id.bytes, len(self.numbers) // 2)
                self.numbers.setdefault(other.job_id.bytes, number)

    def _facts(self, told: Any) -> Any:
        if isinstance(told, list):
            return [self._facts(each) for each in told]
        if isinstance(told, JobRecord):
            return *self._row(told), told.payload
        if isinstance(told, JobError):
            facts = {name: self.numbers.get(v.bytes) if name == "job_id" else v for name, v in vars(told).items()}
            return type(told), facts
        dead_jobs = getattr(told, "dead_jobs", None)
        if dead_jobs:
            bare = [(self.numbers[job.job_id.bytes], job._replace(job_id=None)) for job in dead_jobs]
            return told._replace(dead_jobs=sorted(bare, key=lambda pair: pair[0]))
        return told

    def _row(self, job: JobRecord) -> tuple[Any, ...]:
        key, value = job.key, job.value
        if value[ID_AT:ID_END] == key[42:]:
            return self.numbers.get(key[42:]), key[:42], value[:ID_AT], value[ID_END:]
        return self.numbers.get(key[42:]), key[:42], value.replace(key[42:], b"id")

    def _keep(self, told: Any, expected: Any) -> None:
        mine, its = ([each] if isinstance(each, JobRecord) else each or [] for each in (told, expected))
        for one, other in zip(mine, its, strict=True):
            pair = [Lease(j.scope, j.job_id, j.worker_id, j.lease_generation) for j in (one, other)]
            self.leases.append((pair[0], pair[1]))

    def _with_leases(self, words: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        which, *rest = words
        if isinstance(which, list):
            pairs = [self.leases[n % len(self.leases)] for n in which]
            return ([pair[0] for pair in pairs], *rest), ([pair[1] for pair in pairs], *rest)
        one, other = self.leases[which % len(self.leases)]
        return (one, *rest), (other, *rest)

    def _forge(self, which: int, worker: str, more: int, scope: object) -> None:
        if self.leases:
            one, other = self.leases[which % len(self.leases)]
            generation = min(one.lease_generation + more, 2**64 - 1)
            changed: dict[str, Any] = {"worker_id": worker, "lease_generation": generation, "scope": scope}
            self.leases.append((one._replace(**changed), other._replace(**changed)))

    def _check_order(self, verb: str, words: tuple[Any, ...], told: Any) -> None:
        """What was leased must be what stood first, by the rows as they were before."""
        scope, kinds = words[0], words[1 if verb != "lease_many" else 2]
        n = words[1] if verb == "lease_many" else 1
        jobs = [job for job in self.rows.values() if scope is None or job.scope == scope]
        should = [self.numbers[job.key[42:]] for job in invariants.first_due(jobs, kinds, self.seen_us)[:n]]
        leased = [self.numbers[job.key[42:]] for job in ([told] if isinstance(told, JobRecord) else told or [])]
        if leased != should:
            raise Disagreement(f"{verb}{words} leased jobs {leased}, first in line were {should}")

    def _start_again(self, *, crashed: bool) -> None:
        old = self.folder / f"queue{self.homes}"
        if crashed:
            self.homes += 1
            copy_of(old, self._home())
        self.disk.close()
        if crashed:
            shutil.rmtree(old)
        # A restart forgets times at which nothing was stored; the two go on from one that neither has passed.
        newest = max((job.created_at for job in self.rows.values()), default=0)
        self.clock.set_us(max(self.clock(), self.seen_us, newest))
        self.disk = Queue.open(self._home(), CONFIG, self.clock)
        for queue in (self.disk, self.memory):  # both know this time from now on, wherever the clock goes
            queue.lease_next(SCOPES[0], "nothing", worker_id="reads the clock")
        self.seen_us = self.clock()
        self._compare(0)
        for job in self.disk.list(limit=1000):
            if job.payload != self.rows[self.numbers[job.key[42:]]].payload:
                raise Disagreement(f"the payload of {invariants.shown(job)} changed")

    def _compare(self, writes: int | None) -> None:
        """All rows of both; what changed since the last look; the counts and scopes that the queue tells."""
        jobs, others = self.disk.list(limit=1000), self.memory.list(limit=1000)
        if [self._row(job) for job in jobs] != [self._row(job) for job in others]:
            raise Disagreement(f"rows differ: {[*map(invariants.shown, jobs)]}, {[*map(invariants.shown, others)]}")
        self._check_changes(jobs, writes)
        keys = [job.key for job in jobs]
        scopes = sorted({key[:32] for key in keys})
        if self.acknowledged % 4 == 0 and [scope.key for scope in self.disk.scopes()] != scopes:
            raise Disagreement(f"scopes {self.disk.scopes()}, a scan finds {scopes}")
        looked_at = SCOPES[self.acknowledged % len(SCOPES)]  # by turns
        for scope, told in ((None, self.disk.counts()), (looked_at, self.disk.counts(looked_at))):
            scanned = Counter(key[32] for key in keys if scope is None or key[:32] == scope.key)
            if told != {state: scanned[state] for state in JobState}:
                raise Disagreement(f"counts of {scope} are {told}, a scan finds {scanned}")

    def _check_changes(self, jobs: list[JobRecord], writes: int | None) -> None:
        faults: list[str] = []
        rows = {self.numbers[job.key[42:]]: job for job in jobs}
        newest = max((job.created_at for job in self.rows.values()), default=-1)
        changed = [(number, job) for number, job in rows.items() if self.rows.get(number) != job]
        for number, job in changed:
            faults += invariants.row_faults(job, CONFIG.max_attempts)
            if number in self.rows:
                faults += invariants.change_faults(self.rows[number], job, writes)
            elif job.created_at <= newest:
                faults.append(f"a new job stands before an older one: {invariants.shown(job)}")
        if writes is not None and len(changed) > writes:
            faults.append(f"{len(changed)} rows changed where {writes} may")
        if len(rows) < len(self.rows):
            faults.append(f"jobs are gone: {self.rows.keys() - rows.keys()}")
        keys = [(job.scope, job.idempotency_key) for job in jobs if job.idempotency_key is not None]
        if len(set(keys)) < len(keys):
            faults.append("two jobs have one idempotency key")
        if faults:
            raise Disagreement("; ".join(faults))
        self.rows = rows

    def _home(self) -> Path:
        return self.folder / f"queue{self.homes}"


def attempt(verb: str, queue: Queue, words: tuple[Any, ...]) -> Any:
    """What a verb returns or which documented error it raises."""
    try:
        return PERFORM[verb](queue, *words)
    except JobError as error:
        return error


def copy_of(source: Path, target: Path) -> None:
    """Copy a directory that is in use, at a moment at which no file of it changed: what a kill would leave."""
    for _ in range(100):
        with suppress(shutil.Error, FileNotFoundError):  # files that are not needed any more go in the background
            before = _look(source)
            shutil.copytree(source, target)
            if before == _look(source):
                return
        shutil.rmtree(target, ignore_errors=True)
    raise AssertionError(f"{source} does not hold still")


def _look(folder: Path) -> list[tuple[str, int, int]]:
    return sorted((file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in folder.iterdir())
