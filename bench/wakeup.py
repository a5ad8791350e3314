"""From enqueue in one thread to the lease returned in another, against a bare condition-variable hand-over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from statistics import median

from bench.load import KIND, SCOPE, WORKER, Figure, Options, fresh, pause, us

ASLEEP_SECS = 0.002
"""After which a thread that was about to wait does wait."""


class HandOver:
    """A value handed from one Python thread to another, and nothing else."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._value: object = None

    def put(self) -> None:
        """Give the one who waits something."""
        with self._changed:
            self._value = object()
            self._changed.notify()

    def take(self) -> object:
        """Wait for it."""
        with self._changed:
            while self._value is None:
                self._changed.wait()
            value, self._value = self._value, None
            return value


def run(options: Options) -> list[Figure]:
    """Rounds of both in turns; the one who waits is not the main thread, which looks for Ctrl-C as it waits."""
    rounds = options.of(20, 8)
    woken: list[float] = []
    handed: list[float] = []
    bare = HandOver()
    with fresh(options) as queue:
        for _ in range(rounds):
            handed += _latencies(bare.put, bare.take)
            woken += _latencies(
                lambda: queue.enqueue(SCOPE, KIND), lambda: queue.lease_next(SCOPE, worker_id=WORKER, wait_secs=10)
            )
    ratio = median(woken) / median(handed)
    detail = f"{us(median(woken))} against {us(median(handed))} (threading.Condition), medians of {len(woken)}"
    return [Figure("wake-up: enqueue to lease returned in another thread", ratio, 10, detail=detail)]


def _latencies(put: Callable[[], object], take: Callable[[], object], n: int = 50) -> list[float]:
    taken: list[float] = []
    waiting = threading.Semaphore(0)

    def waiter() -> None:
        for _ in range(n):
            waiting.release()
            assert take() is not None
            taken.append(time.perf_counter())

    thread = threading.Thread(target=waiter)
    thread.start()
    given = []
    for _ in range(n):
        waiting.acquire()
        pause(ASLEEP_SECS)
        given.append(time.perf_counter())
        put()
    thread.join()
    return [after - before for before, after in zip(given, taken, strict=True)]
