"""telha-queue itself: the row that the others are compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from bench.peers.protocol import LEASE_SECS, Client, Durability, Held, Peer, Settings, expect
from telha_queue import JobSpec, JobState, Queue, QueueConfig, Scope, build_info

SCOPE = Scope.named("peers")
KIND = "job"


class Telha(Peer):
    name = "telha-queue"
    batches = True
    settings = Settings(sync='`durability="sync"`', os='`durability="os"`')
    batch_means = "`enqueue_many`, `lease_many`, `complete_many`"
    apart = "leases are durable and fenced; every job keeps its trail; completed jobs stay in the store"

    def version(self) -> str:
        built = build_info()
        return f"{built['telha_queue']}, {built['rocksdb_mode']} RocksDB {built['rocksdb']}"

    @contextmanager
    def open(self, directory: Path, durability: Durability) -> Iterator[Callable[[], Client]]:
        config = QueueConfig(durability=durability.value, lease_ttl_secs=LEASE_SECS)
        with Queue.open(directory / "queue", config) as queue:
            workers = count()
            yield lambda: TelhaClient(queue, f"worker-{next(workers)}")


class TelhaClient(Client):
    def __init__(self, queue: Queue, worker: str) -> None:
        self.queue = queue
        self.worker = worker

    def enqueue(self, payloads: Sequence[bytes]) -> None:
        if len(payloads) == 1:
            self.queue.enqueue(SCOPE, KIND, payloads[0])
        else:
            self.queue.enqueue_many(SCOPE, [JobSpec(KIND, payload) for payload in payloads])

    def lease(self, n: int) -> Sequence[Held]:
        if n == 1:
            job = self.queue.lease_next(SCOPE, worker_id=self.worker)
            return [(job, job.payload)] if job is not None else []
        return [(job, job.payload) for job in self.queue.lease_many(SCOPE, n, worker_id=self.worker)]

    def complete(self, held: Sequence[Held]) -> None:
        if len(held) == 1:
            self.queue.complete(held[0][0])
        else:
            for outcome in self.queue.complete_many([job for job, _ in held]):
                expect(not isinstance(outcome, Exception), f"complete_many: {outcome}")

    def left(self) -> int:
        counts = self.queue.counts(SCOPE)
        return counts.get(JobState.PENDING, 0) + counts.get(JobState.LEASED, 0)
