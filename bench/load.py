"""What the rows share: stores to measure on, the jobs they hold, and the patience to measure when all is quiet."""

from __future__ import annotations

import contextlib
import gc
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

from telha_queue import JobRecord, JobSpec, Queue, QueueConfig, Scope

SCOPE = Scope.named("bench")
KIND = "embed"
WORKER = "worker-1"
FILL_BATCH = 1000
RECORD_BYTES = 300
"""Mean size of a record over enqueue, lease and complete."""


class Figure(NamedTuple):
    """One line of the table: a measured value and the bar it is held to."""

    what: str
    value: float
    limit: float
    at_least: bool = False
    unit: str = "x"
    detail: str = ""

    @property
    def passes(self) -> bool:
        """Whether the bar is met."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit


class Options(NamedTuple):
    """How a run was asked for."""

    quick: bool
    folder: Path

    def of(self, full: int, quick: int) -> int:
        """A size: of the full run, or of a quick one."""
        return quick if self.quick else full


@contextlib.contextmanager
def fresh(options: Options, durability: str = "os") -> Iterator[Queue]:
    """An empty queue on the disk that is measured, gone afterwards."""
    with (
        tempfile.TemporaryDirectory(dir=options.folder) as path,
        Queue.open(Path(path) / "queue", QueueConfig(durability=durability)) as queue,
    ):
        gc.collect()  # what an earlier row left is not this one's cost
        yield queue


def fill(queue: Queue, n: int, kind: str = KIND, payload: bytes = b"", **fields: object) -> None:
    """Enqueue n jobs as fast as it goes."""
    specs = [JobSpec(kind, payload, **fields)] * FILL_BATCH  # type: ignore[arg-type]
    for left in range(n, 0, -FILL_BATCH):
        queue.enqueue_many(SCOPE, specs[:left])


def drain(queue: Queue, n: int) -> None:
    """Lease and complete n jobs as fast as it goes."""
    for left in range(n, 0, -FILL_BATCH):
        queue.complete_many(queue.lease_many(SCOPE, min(left, FILL_BATCH), worker_id=WORKER))


def record_sizes(options: Options, payload: bytes) -> tuple[int, int, int]:
    """How long the records are that enqueue, lease and complete write of a job with this payload."""
    with fresh(options) as queue:
        enqueued = queue.enqueue(SCOPE, KIND, payload)
        leased = lease(queue)
        return len(enqueued.value), len(leased.value), len(queue.complete(leased).value)


def payload_for_records(options: Options) -> tuple[bytes, tuple[int, int, int]]:
    """A payload that makes records RECORD_BYTES long in the mean, and what enqueue, lease and complete write then."""
    payload = noise(RECORD_BYTES // 2)
    for _ in range(3):  # headers are longer for longer payloads: the second step settles it
        sizes = record_sizes(options, payload)
        payload = noise(len(payload) + RECORD_BYTES - round(sum(sizes) / 3))
    return payload, record_sizes(options, payload)


def noise(size_bytes: int) -> bytes:
    """Bytes that do not compress, the same in every run."""
    state, out = 1, bytearray()
    while len(out) < size_bytes:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        out += state.to_bytes(8, "big")[:4]
    return bytes(out[:size_bytes])


def pause(secs: float) -> None:
    """Let time pass."""
    threading.Event().wait(secs)


def settle() -> None:
    """Wait until RocksDB's background threads have nothing left to do: they would be measured with the next row."""
    idle = 0
    for _ in range(600):
        before = time.process_time()
        pause(0.1)
        idle = idle + 1 if time.process_time() - before < 0.005 else 0
        if idle == 3:
            return


def seconds(call: Callable[[], object]) -> float:
    """Time one call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def lease(queue: Queue, kinds: str | None = None) -> JobRecord:
    """Lease one job, which must be there."""
    job = queue.lease_next(SCOPE, kinds, worker_id=WORKER)
    assert job is not None
    return job


class Pair(NamedTuple):
    """Two ways to do the same, timed in turns so that what the machine does besides falls on both."""

    subject: list[float]
    base: list[float]

    @classmethod
    def of(cls, subject: Callable[[], object], base: Callable[[], object], rounds: int, budget_secs: float) -> Pair:
        """Call them in turns, up to `rounds` times each, or until the time is used up (but three times at least)."""
        pair = cls([], [])
        give_up = time.monotonic() + budget_secs
        for i in range(rounds):
            if i >= 3 and time.monotonic() > give_up:
                break
            pair.base.append(seconds(base))
            pair.subject.append(seconds(subject))
        return pair

    @property
    def ratio(self) -> float:
        """Of the sums: what happens seldom counts as well."""
        return sum(self.subject) / sum(self.base)

    @property
    def median_ratio(self) -> float:
        """Of the medians."""
        return median(self.subject) / median(self.base)


def us(secs: float) -> str:
    """A time for the details column."""
    return f"{secs * 1e6:,.1f} us" if secs < 1e-3 else f"{secs * 1e3:,.1f} ms" if secs < 1 else f"{secs:,.2f} s"
