"""Costs that must not grow: a lease, and an empty poll, with many rows in front that are not to be leased."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.load import KIND, SCOPE, WORKER, Figure, Options, Pair, drain, fill, fresh, lease, seconds, settle, us
from telha_queue import Queue, QueueConfig

LEASES_PER_ROUND = 100
POLLS_PER_ROUND = 200
BUDGET_SECS = 20
FIRST = 0
"""The priority of what stands in front."""


def flat(options: Options) -> list[Figure]:
    """Leases behind each sort of row that a scan would have to pass."""
    n = options.of(1_000_000, 100_000)
    cases: dict[str, Callable[[Queue], None]] = {
        "gated": lambda queue: fill(queue, n, priority=FIRST, delay_secs=24 * 3600),
        "foreign-kind": lambda queue: fill(queue, n, "other", priority=FIRST),
        "drained": lambda queue: _fill_and_drain(queue, n),
    }
    figures = [_lease_figure(options, name, n, prepare) for name, prepare in cases.items()]
    return [*figures, _lease_figure(options, "completed", n, cases["drained"], reopen=True)]


def _fill_and_drain(queue: Queue, n: int) -> None:
    fill(queue, n, priority=FIRST)
    drain(queue, n)


def _lease_figure(
    options: Options, name: str, n: int, prepare: Callable[[Queue], object], reopen: bool = False
) -> Figure:
    """Completed rows are met by a store that was opened on them; drained ones by the store that drained them."""
    kinds = KIND if name == "foreign-kind" else None
    rounds = options.of(100, 20)
    with _prepared(options, prepare, reopen) as behind, fresh(options) as empty:
        for queue in (empty, behind):
            fill(queue, rounds * LEASES_PER_ROUND + 1)
        settle()
        first_empty, first = (seconds(_leases(queue, 1, kinds)) for queue in (empty, behind))
        # A slow lease makes short rounds, so that a run ends.
        per_round = max(1, min(LEASES_PER_ROUND, int(0.5 / first)))
        pair = Pair.of(_leases(behind, per_round, kinds), _leases(empty, per_round, kinds), rounds, BUDGET_SECS)
    leased = len(pair.base) * per_round
    detail = (
        f"{us(sum(pair.subject) / leased)} against {us(sum(pair.base) / leased)} over {leased:,} leases; "
        f"the first of all {us(first)} against {us(first_empty)}"
    )
    return Figure(f"lease behind {n:,} {name} rows, against an empty store", pair.ratio, 1.2, detail=detail)


@contextlib.contextmanager
def _prepared(options: Options, prepare: Callable[[Queue], object], reopen: bool) -> Iterator[Queue]:
    config = QueueConfig(durability="os")
    with tempfile.TemporaryDirectory(dir=options.folder) as path:
        where = Path(path) / "queue"
        with Queue.open(where, config) as queue:
            prepare(queue)
            if not reopen:
                yield queue
        if reopen:
            with Queue.open(where, config) as queue:
                yield queue


def _leases(queue: Queue, n: int, kinds: str | None) -> Callable[[], None]:
    def call() -> None:
        for _ in range(n):
            lease(queue, kinds)

    return call


def empty_poll(options: Options) -> list[Figure]:
    """A poll that finds nothing, in a store that was drained, against one in a store that never held a job."""
    n = options.of(1_000_000, 100_000)
    with fresh(options) as drained, fresh(options) as empty:
        fill(drained, n)
        drain(drained, n)
        settle()
        for queue in (drained, empty):
            assert queue.lease_next(SCOPE, worker_id=WORKER) is None
        probe = seconds(lambda: drained.lease_next(SCOPE, worker_id=WORKER))
        per_round = max(1, min(POLLS_PER_ROUND, int(0.2 / probe)))
        pair = Pair.of(_polls(drained, per_round), _polls(empty, per_round), options.of(100, 30), BUDGET_SECS)
    polls = len(pair.base) * per_round
    detail = f"{us(sum(pair.subject) / polls)} against {us(sum(pair.base) / polls)}"
    return [Figure(f"empty poll after draining {n:,} jobs, against an empty store", pair.ratio, 1.5, detail=detail)]


def _polls(queue: Queue, n: int) -> Callable[[], None]:
    def call() -> None:
        for _ in range(n):
            queue.lease_next(SCOPE, worker_id=WORKER)

    return call


def heartbeats(options: Options) -> list[Figure]:
    """10,000 heartbeats on one job: its record stays small, and the last ones cost what the first did."""
    n, sample = 10_000, 500
    times = []
    with fresh(options) as queue:
        queue.enqueue(SCOPE, KIND, b"x" * 100)
        job = lease(queue)
        for _ in range(20):  # caches, allocators
            queue.extend(job)
        for _ in range(n):
            started = time.perf_counter()
            held = queue.extend(job)
            times.append(time.perf_counter() - started)
    size_bytes = len(held.value) - held.payload_bytes
    first, last = (sorted(part)[sample // 2] for part in (times[:sample], times[-sample:]))
    detail = f"{us(last)} against {us(first)}, medians of {sample}"
    return [
        Figure(f"record after {n:,} heartbeats, besides its payload", size_bytes, 4095, unit="bytes"),
        # "What the first did" within what two equal halves differ by on a machine like this.
        Figure(f"the last of {n:,} heartbeats against the first", last / first, 1.2, detail=detail),
    ]
