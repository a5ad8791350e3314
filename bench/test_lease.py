"""The verbs one by one and in batches of 50, not fsynced. For ratios to what RocksDB can do: make bench."""

from __future__ import annotations

import pytest

from telha_queue import JobSpec, Queue, QueueConfig, Scope

pytest_benchmark = pytest.importorskip("pytest_benchmark", reason="the bench extra is not installed")

SCOPE = Scope.named("bench")
PAYLOAD = b"x" * 150
SPECS = [JobSpec("embed", PAYLOAD)] * 50
ROUNDS = 2000


@pytest.fixture
def queue(tmp_path):
    with Queue.open(tmp_path / "queue", QueueConfig(durability="os")) as queue:
        yield queue


def lease(queue):
    return queue.lease_next(SCOPE, worker_id="worker-1")


def lease_many(queue):
    return queue.lease_many(SCOPE, 50, worker_id="worker-1")


@pytest.mark.benchmark(group="enqueue")
def test_enqueue(benchmark, queue):
    benchmark.pedantic(queue.enqueue, (SCOPE, "embed", PAYLOAD), rounds=ROUNDS)


@pytest.mark.benchmark(group="enqueue")
def test_enqueue_50(benchmark, queue):
    benchmark.pedantic(queue.enqueue_many, (SCOPE, SPECS), rounds=ROUNDS // 50)


@pytest.mark.benchmark(group="lease")
def test_lease(benchmark, queue):
    benchmark.pedantic(lease, (queue,), setup=lambda: queue.enqueue(SCOPE, "embed", PAYLOAD) and None, rounds=ROUNDS)


@pytest.mark.benchmark(group="lease")
def test_lease_50(benchmark, queue):
    benchmark.pedantic(
        lease_many, (queue,), setup=lambda: queue.enqueue_many(SCOPE, SPECS) and None, rounds=ROUNDS // 50
    )


@pytest.mark.benchmark(group="lease")
def test_heartbeat(benchmark, queue):
    queue.enqueue(SCOPE, "embed", PAYLOAD)
    benchmark.pedantic(queue.extend, (lease(queue),), rounds=ROUNDS)


@pytest.mark.benchmark(group="complete")
def test_complete(benchmark, queue):
    def setup():
        queue.enqueue(SCOPE, "embed", PAYLOAD)
        return (lease(queue),), {}

    benchmark.pedantic(queue.complete, setup=setup, rounds=ROUNDS)


@pytest.mark.benchmark(group="complete")
def test_complete_50(benchmark, queue):
    def setup():
        queue.enqueue_many(SCOPE, SPECS)
        return (lease_many(queue),), {}

    benchmark.pedantic(queue.complete_many, setup=setup, rounds=ROUNDS // 50)
