"""The life cycle against the floor: how much of what RocksDB can do is left to a Python program."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from bench import floor
from bench.load import KIND, SCOPE, WORKER, Figure, Options, fresh, payload_for_records, settle
from telha_queue import JobSpec, Queue

BATCH = 50
VERBS = ("enqueue", "lease", "complete")
Times = dict[str, tuple[float, float]]
"""Per phase: seconds of wall, and of the thread's processor time, which other people's programs do not lengthen."""


def run(options: Options) -> list[Figure]:
    """One at a time and in batches; in phases, which tells the verbs apart, and each job through all three in turn."""
    payload, sizes = payload_for_records(options)
    floor.program()
    figures = []
    for batch, limit in ((1, 0.70), (BATCH, 0.80)):
        n = options.of(100_000, 10_000 if batch == 1 else 20_000)
        for order in ("phases", "cycle"):
            figures.append(_figure(options, n, batch, order, limit, payload, sizes))
    return figures


def _figure(
    options: Options, n: int, batch: int, order: str, limit: float, payload: bytes, sizes: tuple[int, int, int]
) -> Figure:
    runs: list[tuple[Times, Times]] = []
    for _ in range(options.of(7, 5)):
        runs.append((_floor(options, n, batch, order, sizes), _queue(options, n, batch, order, payload)))
    names = VERBS if order == "phases" else ("cycle",)
    wall = median(_total(base, 0) / _total(queue, 0) for base, queue in runs)
    cpu = median(_total(base, 1) / _total(queue, 1) for base, queue in runs)
    rate = n / median(_total(queue, 0) for _, queue in runs)
    floor_rate = n / median(_total(base, 0) for base, _ in runs)
    detail = f"{rate:,.0f} of {floor_rate:,.0f} jobs/s; by processor time {cpu:.2f}"
    if order == "phases":
        parts = (f"{name} {median(base[name][1] / queue[name][1] for base, queue in runs):.2f}" for name in names)
        detail += f" ({', '.join(parts)})"
    size = "one at a time" if batch == 1 else f"in batches of {batch}"
    how = "in phases" if order == "phases" else "each in turn"
    return Figure(f"enqueue + lease + complete, {size}, {how}", wall, limit, True, "of the floor", detail)


def _total(times: Times, clock: int) -> float:
    return sum(both[clock] for both in times.values())


def _floor(options: Options, n: int, batch: int, order: str, sizes: tuple[int, int, int]) -> Times:
    with tempfile.TemporaryDirectory(dir=options.folder) as path:
        printed = floor.run(Path(path) / "floor", n, sizes, batch=batch, order=order)
    return {name: (times["wall_s"], times["cpu_s"]) for name, times in printed.items() if name != "rocksdb"}


def _queue(options: Options, n: int, batch: int, order: str, payload: bytes) -> Times:
    with fresh(options) as queue:
        settle()
        return (_one_by_one if batch == 1 else _in_batches)(queue, n, batch, order, payload)


def _one_by_one(queue: Queue, n: int, batch: int, order: str, payload: bytes) -> Times:
    enqueue, lease_next, complete = queue.enqueue, queue.lease_next, queue.complete
    leases: list[Any] = []

    def cycle() -> None:
        for _ in range(n):
            enqueue(SCOPE, KIND, payload)
            complete(lease_next(SCOPE, worker_id=WORKER))  # type: ignore[arg-type]

    def phase_enqueue() -> None:
        for _ in range(n):
            enqueue(SCOPE, KIND, payload)

    def phase_lease() -> None:
        for _ in range(n):
            leases.append(lease_next(SCOPE, worker_id=WORKER))

    def phase_complete() -> None:
        for lease in leases:
            complete(lease)

    return _timed(cycle, phase_enqueue, phase_lease, phase_complete, order)


def _in_batches(queue: Queue, n: int, batch: int, order: str, payload: bytes) -> Times:
    specs = [JobSpec(KIND, payload)] * batch
    enqueue_many, lease_many, complete_many = queue.enqueue_many, queue.lease_many, queue.complete_many
    leases: list[Any] = []

    def cycle() -> None:
        for _ in range(n // batch):
            enqueue_many(SCOPE, specs)
            complete_many(lease_many(SCOPE, batch, worker_id=WORKER))

    def phase_enqueue() -> None:
        for _ in range(n // batch):
            enqueue_many(SCOPE, specs)

    def phase_lease() -> None:
        for _ in range(n // batch):
            leases.append(lease_many(SCOPE, batch, worker_id=WORKER))

    def phase_complete() -> None:
        for held in leases:
            complete_many(held)

    return _timed(cycle, phase_enqueue, phase_lease, phase_complete, order)


def _timed(cycle: Callable[[], None], *phases_and_order: object) -> Times:
    *phases, order = phases_and_order
    calls = dict(zip(VERBS, phases, strict=True)) if order == "phases" else {"cycle": cycle}
    return {name: _clocks(call) for name, call in calls.items()}  # type: ignore[arg-type]


def _clocks(call: Callable[[], None]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.thread_time()
    call()
    return time.perf_counter() - wall, time.thread_time() - cpu
