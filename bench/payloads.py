"""Transitions of jobs with 1 MB of payload against jobs with 1 KB: the bytes are written once."""

from __future__ import annotations

import time
from itertools import pairwise
from statistics import median

from bench.load import KIND, SCOPE, Figure, Options, fresh, lease, noise, settle, us
from telha_queue import Queue

LARGE, SMALL = 1_000_000, 1_000
VERBS = ("lease", "extend", "checkpoint", "complete")


def run(options: Options) -> list[Figure]:
    """Job by job in turns, each through all transitions that keep or end a lease."""
    n = options.of(400, 100)
    with fresh(options) as large, fresh(options) as small:
        stores = ((large, noise(LARGE)), (small, noise(SMALL)))
        for queue, payload in stores:
            for _ in range(n):
                queue.enqueue(SCOPE, KIND, payload)
        settle()
        times: tuple[list[list[float]], list[list[float]]] = ([], [])
        for _ in range(n):
            for (queue, _), column in zip(stores, times, strict=True):
                column.append(_transitions(queue))
    medians = [[median(verb) for verb in zip(*column, strict=True)] for column in times]
    ratio = sum(medians[0]) / sum(medians[1])
    parts = (f"{verb} {a / b:.2f}" for verb, a, b in zip(VERBS, *medians, strict=True))
    detail = f"{us(sum(medians[0]))} against {us(sum(medians[1]))}: {', '.join(parts)}"
    return [Figure("transitions of a 1 MB payload against 1 KB", ratio, 1.5, detail=detail)]


def _transitions(queue: Queue) -> list[float]:
    marks = [time.perf_counter()]
    job = lease(queue)
    marks.append(time.perf_counter())
    job = queue.extend(job)
    marks.append(time.perf_counter())
    job = queue.checkpoint(job, b"page 7")
    marks.append(time.perf_counter())
    queue.complete(job)
    marks.append(time.perf_counter())
    return [after - before for before, after in pairwise(marks)]
