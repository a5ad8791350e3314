"""What the codec costs from Python, beside the call of an empty function: make bench-pytest."""

from __future__ import annotations

import pytest

from telha_queue import _codec

pytest_benchmark = pytest.importorskip("pytest_benchmark", reason="the bench extra is not installed")

SCOPE = bytes(32)
JOB_ID = bytes(range(16))
CREATED_AT = 1_800_000_000_000_000
KEY = _codec.encode_key(SCOPE, 0, 128, CREATED_AT, JOB_ID)


@pytest.fixture(scope="module")
def row(tmp_path_factory):
    from telha_queue import Queue, QueueConfig, Scope

    with Queue.open(tmp_path_factory.mktemp("codec") / "queue", QueueConfig(durability="os")) as queue:
        job = queue.enqueue(Scope.SYSTEM, "embed", b"x" * 150)
        return job.key, job.value


@pytest.mark.benchmark(group="codec")
def test_an_empty_call(benchmark):
    benchmark(lambda: None)


@pytest.mark.benchmark(group="codec")
def test_encode_key(benchmark):
    benchmark(_codec.encode_key, SCOPE, 0, 128, CREATED_AT, JOB_ID)


@pytest.mark.benchmark(group="codec")
def test_decode_key(benchmark):
    benchmark(_codec.decode_key, KEY)


@pytest.mark.benchmark(group="codec")
def test_open_a_record(benchmark, row):
    benchmark(_codec.JobRecord, *row)


@pytest.mark.benchmark(group="codec")
def test_read_the_trail_of_a_record(benchmark, row):
    benchmark(lambda: _codec.JobRecord(*row).events)
