"""The floor that every figure is a ratio to is honest: it writes, row for row, what the queue writes, and no less."""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import UUID

import pytest

from telha_queue.config import QueueConfig
from telha_queue.queue import Queue
from telha_queue.scope import Scope

floor = pytest.importorskip("bench.floor", reason="run from the project's folder")

JOBS = 7
SCOPE = Scope.tenant(UUID(int=1))  # without a name, which would be a row of its own
QUICK = QueueConfig(durability="os", memtable_bytes=1024 * 1024)

if shutil.which("c++") is None:
    pytest.skip("no C++ compiler", allow_module_level=True)


def run_queue(path: Path) -> tuple[int, int, int]:
    """Take the jobs through their life; returns the sizes of the records that one of them went through."""
    with Queue.open(path, QUICK) as queue:
        enqueued = [queue.enqueue(SCOPE, "embed", b"x" * 150) for _ in range(JOBS)]
        leased = queue.lease_many(SCOPE, JOBS, worker_id="worker-1")
        completed = [queue.complete(lease) for lease in leased]
        return tuple(len(jobs[0].value) for jobs in (enqueued, leased, completed))


@pytest.mark.parametrize("order", ["phases", "cycle"])
@pytest.mark.parametrize("batch", [1, 3])
def test_it_writes_the_rows_that_the_queue_writes(quick_path, order, batch):
    with Queue.open(quick_path / "empty", QUICK):
        pass
    sizes = run_queue(quick_path / "queue")
    floor.run(quick_path / "floor", JOBS, sizes, batch=batch, order=order)

    empty, queue, base = (floor.rows(quick_path / name) for name in ("empty", "queue", "floor"))
    housekeeping = empty.pop("writes")
    assert base.pop("writes") == queue.pop("writes") - housekeeping == JOBS * 6
    assert base.pop("default") == []
    assert queue.pop("default") == empty["default"]
    assert base == queue
    assert queue["jobs"] == [[2, 58, sizes[2]]] * JOBS
    assert queue["ids"] == [[-1, 16, 41]] * JOBS
