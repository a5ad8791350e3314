"""A worker's own cost per job: no-op handlers in threads against the bare loop of lease_next and complete."""

from __future__ import annotations

from statistics import median

from bench.load import KIND, SCOPE, WORKER, Figure, Options, fill, fresh, seconds, us
from telha_queue import Queue
from telha_queue.worker import Job, Worker, task

CONCURRENCY, PREFETCH = 4, 200


@task(KIND)
def nothing(job: Job) -> None:
    """A job that costs nothing."""


def run(options: Options) -> list[Figure]:
    """The same jobs through both, in turns."""
    n = options.of(50_000, 5_000)
    ahead: list[float] = []
    at_once: list[float] = []
    bare: list[float] = []
    for _ in range(options.of(7, 3)):
        for times, way in ((bare, _bare), (ahead, _ahead), (at_once, _at_once)):
            with fresh(options) as queue:
                fill(queue, n)
                times.append(seconds(lambda way=way, queue=queue: way(queue)) / n)
    return [
        _figure(f"a worker's job, {PREFETCH} leased ahead, against lease_next and complete", ahead, bare, 2.5),
        _figure("a worker's job, none leased ahead, against the same", at_once, bare, 10),
    ]


def _figure(what: str, worker: list[float], bare: list[float], limit: float) -> Figure:
    ratio = median(a / b for a, b in zip(worker, bare, strict=True))
    detail = f"{us(median(worker))} against {us(median(bare))} a job, {1 / median(worker):,.0f} jobs a second"
    return Figure(what, ratio, limit, detail=detail)


def _bare(queue: Queue) -> None:
    while (job := queue.lease_next(SCOPE, KIND, worker_id=WORKER)) is not None:
        queue.complete(job)


def _ahead(queue: Queue) -> None:
    _work(queue, PREFETCH)


def _at_once(queue: Queue) -> None:
    _work(queue, 0)


def _work(queue: Queue, prefetch: int) -> None:
    with Worker(queue, scope=SCOPE, tasks=[nothing], concurrency=CONCURRENCY, prefetch=prefetch) as worker:
        assert worker.wait_idle(600)
