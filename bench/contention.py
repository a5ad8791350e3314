"""Eight threads against one, each taking jobs through their whole life, one at a time."""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path
from statistics import median

from bench import floor
from bench.load import KIND, SCOPE, Figure, Options, fresh, payload_for_records
from telha_queue import Queue

THREADS = 8


def run(options: Options) -> list[Figure]:
    """Both durabilities; with `sync`, threads share fsyncs. What the floor gains by threads stands beside."""
    payload, sizes = payload_for_records(options)
    return [
        _figure(options, "sync", 3.0, options.of(4000, 800), payload, sizes),
        _figure(options, "os", 1.0, options.of(40_000, 4000), payload, sizes),
    ]


def _figure(
    options: Options, durability: str, limit: float, n: int, payload: bytes, sizes: tuple[int, int, int]
) -> Figure:
    gains, rates, floor_gains = [], [], []
    for _ in range(options.of(7, 5)):
        one = _rate(options, durability, 1, n, payload)
        many = _rate(options, durability, THREADS, n, payload)
        gains.append(many / one)
        rates.append((one, many))
        floor_one = _floor_rate(options, durability, 1, n, sizes)
        floor_gains.append(_floor_rate(options, durability, THREADS, n, sizes) / floor_one)
    one, many = (median(column) for column in zip(*rates, strict=True))
    detail = f"{many:,.0f} against {one:,.0f} jobs/s; the floor gains {median(floor_gains):.2f} x"
    return Figure(f"{THREADS} threads against 1, one at a time, {durability}", median(gains), limit, True, "x", detail)


def _rate(options: Options, durability: str, threads: int, n: int, payload: bytes) -> float:
    with fresh(options, durability) as queue:
        start = threading.Barrier(threads + 1)
        workers = [
            threading.Thread(target=_work, args=(queue, start, n // threads, payload, f"worker-{i}"))
            for i in range(threads)
        ]
        for worker in workers:
            worker.start()
        start.wait()
        started = time.perf_counter()
        for worker in workers:
            worker.join()
        return n / (time.perf_counter() - started)


def _work(queue: Queue, start: threading.Barrier, n: int, payload: bytes, worker_id: str) -> None:
    start.wait()
    for _ in range(n):
        queue.enqueue(SCOPE, KIND, payload)
        queue.complete(queue.lease_next(SCOPE, worker_id=worker_id))  # type: ignore[arg-type]


def _floor_rate(options: Options, durability: str, threads: int, n: int, sizes: tuple[int, int, int]) -> float:
    with tempfile.TemporaryDirectory(dir=options.folder) as path:
        printed = floor.run(Path(path) / "floor", n, sizes, threads=threads, durability=durability, order="cycle")
    return printed["cycle"]["jobs_per_s"]
