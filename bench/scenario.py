"""The fixed life cycles that bench/counts.py counts: python -m bench.scenario single|batch JOBS FOLDER.

Everything that may differ from run to run is fixed: the clock is a counter, nothing is fsynced, and all rows fit the
memtable, so that no background work falls into the count. What is left of chance is the random part of job ids.
"""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

from bench.load import KIND, SCOPE, WORKER
from telha_queue import JobSpec, Queue, QueueConfig

BATCH = 50
PAYLOAD = b"x" * 150
START_US = 1_800_000_000_000_000


def main() -> None:
    """One job, or one batch, at a time through enqueue, lease and complete."""
    order, jobs, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    config = QueueConfig(durability="os", memtable_bytes=256 * 2**20)
    with Queue.open(Path(folder) / f"{order}-{jobs}", config, count(START_US, 10).__next__) as queue:
        if order == "single":
            for _ in range(jobs):
                queue.enqueue(SCOPE, KIND, PAYLOAD)
                queue.complete(queue.lease_next(SCOPE, worker_id=WORKER))  # type: ignore[arg-type]
        else:
            specs = [JobSpec(KIND, PAYLOAD)] * BATCH
            for _ in range(jobs // BATCH):
                queue.enqueue_many(SCOPE, specs)
                queue.complete_many(queue.lease_many(SCOPE, BATCH, worker_id=WORKER))


if __name__ == "__main__":
    main()
