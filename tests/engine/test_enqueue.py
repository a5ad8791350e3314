"""Enqueue: what a new job looks like, and in which order jobs are stored."""

from __future__ import annotations

from uuid import UUID

import pytest

from telha_queue.job import JobEvent, JobSpec, JobState
from telha_queue.scope import Scope

ACME = Scope.named("acme")
SPACE = Scope.tenant(UUID(int=1), UUID(int=2))


def test_a_new_job_is_pending_and_untouched(queue, clock):
    job = queue.enqueue(ACME, "ingest:pdf", b"file 1")
    assert job.scope == ACME
    assert (job.kind, job.payload, job.payload_bytes) == ("ingest:pdf", b"file 1", 6)
    assert (job.state, job.priority, job.created_at) == (JobState.PENDING, 128, clock())
    assert (job.attempts, job.lease_generation, job.crashes) == (0, 0, 0)
    assert (job.worker_id, job.lease_deadline, job.continuation) == (None, None, None)
    assert (job.not_before, job.idempotency_key, job.max_attempts) == (None, None, None)
    assert (job.dead_reason, job.reaped_worker_id, job.events_dropped) == (None, None, 0)
    assert tuple(job.events) == (JobEvent(clock(), "enqueued"),)


def test_every_argument_is_kept(queue, clock):
    job = queue.enqueue(ACME, "embed", b"x", priority=7, not_before=clock() + 5, idempotency_key="once", max_attempts=2)
    assert (job.priority, job.not_before, job.idempotency_key, job.max_attempts) == (7, clock() + 5, "once", 2)
    assert queue.get(ACME, job.job_id).value == job.value


def test_a_delay_is_counted_from_now(queue, clock):
    assert queue.enqueue(ACME, "embed", delay_secs=1.5).not_before == clock() + 1_500_000
    assert queue.enqueue(ACME, "embed", delay_secs=0).not_before is None


def test_a_gate_in_the_past_is_open(queue, clock):
    job = queue.enqueue(ACME, "embed", not_before=clock() - 1)
    assert queue.lease_next(ACME, worker_id="w").job_id == job.job_id


def test_the_key_is_laid_out_as_documented(queue, clock):
    job = queue.enqueue(SPACE, "embed", priority=200)
    assert job.key == SPACE.key + b"\x00" + b"\xc8" + clock().to_bytes(8, "big") + job.job_id.bytes
    assert len(job.key) == 58
    leased = queue.lease_next(SPACE, worker_id="w")
    assert leased.key == job.key[:32] + b"\x01" + job.key[33:]


def test_the_system_scope_is_32_zero_bytes(queue):
    assert queue.enqueue(Scope.SYSTEM, "system:compact").key[:33] == bytes(33)


def test_job_ids_are_uuid7_that_sort_as_time_does(queue, clock):
    jobs = [queue.enqueue(ACME, "embed") for _ in range(2500)]  # more than two milliseconds' worth of ids
    ids = [job.job_id for job in jobs]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
    for job in jobs:
        assert job.job_id.version == 7
        assert job.job_id.variant == "specified in RFC 4122"
        assert job.job_id.int >> 80 == job.created_at // 1000
        assert job.job_id.int >> 64 & 0xFFF == job.created_at % 1000


def test_created_at_grows_by_one_while_the_clock_stands(queue, clock):
    created = [queue.enqueue(ACME, "embed").created_at for _ in range(5)]
    created += [job.created_at for job in queue.enqueue_many(SPACE, [JobSpec("embed")] * 5)]
    assert created == list(range(clock(), clock() + 10))


@pytest.mark.parametrize("size_bytes", [0, 1, 31, 255, 256, 4095, 4096, 4097, 65536, 1024 * 1024])
def test_a_payload_of_any_size_comes_back(queue, size_bytes):
    payload = bytes(range(256)) * (size_bytes // 256) + bytes(size_bytes % 256)
    job = queue.enqueue(ACME, "embed", payload)
    lease = queue.lease_next(ACME, worker_id="w")
    done = queue.complete(lease)
    for record in (job, lease, done, queue.get(ACME, job.job_id), queue.find(job.job_id)):
        assert record.payload == payload
        assert record.payload_bytes == size_bytes


def test_only_a_payload_over_4096_bytes_stands_beside_its_record(queue):
    within, beside = (queue.enqueue(ACME, "embed", bytes(size_bytes)) for size_bytes in (4096, 4097))
    assert len(within.value) > 4096
    assert len(beside.value) < 200


def test_a_payload_that_changes_afterwards_is_kept_as_it_was(queue):
    payload = bytearray(b"before")
    job = queue.enqueue(ACME, "embed", payload)
    payload[:] = b"after!"
    assert queue.get(ACME, job.job_id).payload == b"before"
    assert queue.enqueue(ACME, "embed", memoryview(b"view")).payload == b"view"


def test_text_of_any_language_comes_back(queue):
    job = queue.enqueue(ACME, "ingest:文書", idempotency_key="schlüssel-🔑")
    lease = queue.lease_next(ACME, "ingest:文", worker_id="працівник")
    failed = queue.fail(lease, "не вдалося\nline 2")
    assert (job.kind, job.idempotency_key) == ("ingest:文書", "schlüssel-🔑")
    assert lease.worker_id == "працівник"
    assert failed.events[-1].detail == "не вдалося\nline 2"


def test_the_longest_names_are_accepted(queue):
    job = queue.enqueue(ACME, "k" * 128, idempotency_key="i" * 255)
    assert queue.lease_next(ACME, "k" * 128, worker_id="w" * 128).job_id == job.job_id


def test_records_are_immutable(queue):
    job = queue.enqueue(ACME, "embed")
    with pytest.raises((AttributeError, TypeError)):
        job.kind = "other"
