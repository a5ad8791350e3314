"""Makes a golden store: python -m tests.torture.api_golden NAME writes tests/torture/golden/NAME.

Run once for each format of the directory, with the release that writes it, and never again: what is there is what that
release wrote, and later ones must read it. It has jobs in every state, in tables and in the log, with every field used
by some; `expected.json` beside the store says what each row is. RocksDB's own notes are left out: it does without them.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

from telha_queue import JobSpec, Queue, QueueConfig, Scope, __version__
from telha_queue.testing import START_US, ManualClock

GOLDEN = Path(__file__).parent / "golden"
LEFT_OUT = ("OPTIONS-*", "LOG*", "LOCK", "IDENTITY")
ACME, OTHER = Scope.named("acme"), Scope.tenant(UUID(int=7), UUID(int=9))
CONFIG = QueueConfig(durability="os", memtable_bytes=65_536, max_attempts=3)


def make(path: Path) -> None:
    """A store with something of everything."""
    clock = ManualClock(START_US)
    with Queue.open(path, CONFIG, clock) as queue:
        for n in range(24):
            queue.enqueue(ACME, f"kind:{n % 3}", bytes([n]) * 5000, priority=n % 4, idempotency_key=f"key {n}")
        for lease in queue.lease_many(ACME, 6, worker_id="done"):
            queue.stats(lease, "half way")
            queue.complete(lease)
        for n, lease in enumerate(queue.lease_many(ACME, 4, worker_id="failing")):
            queue.fail(lease, f"error {n}", retryable=n % 2 == 0)
        for lease in queue.lease_many(ACME, 3, worker_id="lost", lease_ttl_secs=1):
            queue.checkpoint(lease, b"page 7")
        clock.advance(secs=2)
        queue.reap_expired()
    with Queue.open(path, CONFIG, clock) as queue:
        queue.enqueue_many(
            OTHER, [JobSpec("ä", b"p", max_attempts=1), JobSpec("b", b"", not_before=clock() + 60_000_000)]
        )
        queue.enqueue(Scope.SYSTEM, "tidy", priority=255)
        held = queue.lease_next(OTHER, "ä", worker_id="crashing", lease_ttl_secs=1)
        clock.advance(secs=2)
        queue.reap_expired()
        held = queue.lease_next(ACME, worker_id="holder", lease_ttl_secs=600)
        assert held is not None
        for _ in range(3):
            clock.advance(secs=1)
            queue.extend(held)
        queue.checkpoint(held, b"page 8")


def expected(path: Path) -> dict[str, Any]:
    """What a copy of the store says of itself."""
    with TemporaryDirectory() as folder:
        shutil.copytree(path, Path(folder) / "copy")
        with Queue.open(Path(folder) / "copy", CONFIG, ManualClock(START_US)) as queue:
            jobs = queue.list(limit=1000)
            rows = [[job.key.hex(), job.value.hex(), hashlib.sha256(job.payload).hexdigest()] for job in jobs]
            names = [[scope.key.hex(), scope.name] for scope in queue.scopes()]
            counts = {state.name: count for state, count in queue.counts().items()}
    return {"made by": __version__, "rows": rows, "scopes": names, "counts": counts}


if __name__ == "__main__":
    store = GOLDEN / sys.argv[1]
    GOLDEN.mkdir(exist_ok=True)
    make(store)
    for pattern in LEFT_OUT:
        for file in store.glob(pattern):
            file.unlink()
    (GOLDEN / f"{sys.argv[1]}.json").write_text(json.dumps(expected(store), indent=1) + "\n")
