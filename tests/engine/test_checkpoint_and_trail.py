"""What a lease keeps while it lasts, and what the job's trail tells afterwards."""

from __future__ import annotations

import pytest

from telha_queue.job import JobState
from telha_queue.scope import Scope

ACME = Scope.named("acme")


@pytest.fixture
def lease(queue):
    """A job of scope ACME, leased by w for 300 s."""
    queue.enqueue(ACME, "embed")
    return queue.lease_next(ACME, worker_id="w")


def transitions(job):
    return [event.transition for event in job.events]


def test_a_checkpoint_is_kept_and_extends_the_lease(queue, clock, lease):
    clock.advance(secs=100)
    kept = queue.checkpoint(lease, b"page 7", lease_ttl_secs=250)
    assert (kept.state, kept.continuation) == (JobState.LEASED, b"page 7")
    assert kept.lease_deadline == clock() + 250_000_000
    assert kept.events[-1][:3] == (clock(), "checkpoint", "6 bytes")
    assert queue.get(ACME, lease.job_id).continuation == b"page 7"


def test_the_last_checkpoint_counts(queue, lease):  # Q15
    for page in range(4):
        queue.checkpoint(lease, b"page %d" % page)
    assert queue.get(ACME, lease.job_id).continuation == b"page 3"
    assert queue.checkpoint(lease, b"").continuation == b""


@pytest.mark.parametrize("size_bytes", [255, 256, 4097, 65536, 1024 * 1024])
def test_a_continuation_of_any_size_comes_back(queue, lease, size_bytes):
    assert queue.checkpoint(lease, b"c" * size_bytes).continuation == b"c" * size_bytes
    assert queue.get(ACME, lease.job_id).continuation == b"c" * size_bytes


@pytest.mark.parametrize("end", ["release", "fail", "die", "reap", "complete"])
def test_a_continuation_ends_with_its_lease(queue, clock, lease, end):
    queue.checkpoint(lease, b"page 7")
    if end == "release":
        queue.release(lease)
    elif end == "fail":
        queue.fail(lease, "error")
    elif end == "die":
        queue.fail(lease, "error", retryable=False)
    elif end == "reap":
        clock.advance(secs=300)
        queue.reap_expired()
    else:
        queue.complete(lease)
    assert queue.get(ACME, lease.job_id).continuation is None
    clock.advance(secs=3600)
    successor = queue.lease_next(ACME, worker_id="w2")
    assert successor is None or successor.continuation is None


def test_an_extension_counts_from_now(queue, clock, lease):
    clock.advance(secs=200)
    assert queue.extend(lease).lease_deadline == clock() + 300_000_000
    assert queue.extend(lease, lease_ttl_secs=400.5).lease_deadline == clock() + 400_500_000


def test_a_heartbeat_extends_by_what_the_lease_was_taken_for(queue, clock):
    queue.enqueue(ACME, "embed")
    lease = queue.lease_next(ACME, worker_id="w", lease_ttl_secs=7.5)
    for heartbeat in (
        queue.extend,
        lambda job: queue.checkpoint(job, b"x"),
        lambda job: queue.extend_any(job.job_id, "w", 1),
    ):
        clock.advance(secs=5)
        assert heartbeat(lease).lease_deadline == clock() + 7_500_000
    queue.release(lease)
    lease = queue.lease_next(ACME, worker_id="w")
    clock.advance(secs=5)
    assert queue.extend(lease).lease_deadline == clock() + 300_000_000


def test_an_extension_never_shortens_the_lease(queue, lease):
    assert queue.extend(lease, lease_ttl_secs=1).lease_deadline == lease.lease_deadline
    assert queue.checkpoint(lease, b"x", lease_ttl_secs=1).lease_deadline == lease.lease_deadline


def test_extending_by_id_alone_is_the_same(queue, clock, lease):
    clock.advance(secs=1)
    extended = queue.extend_any(lease.job_id, "w", 1, lease_ttl_secs=500)
    assert extended.lease_deadline == clock() + 500_000_000
    assert extended.scope == ACME


def test_the_trail_tells_the_whole_life(queue, clock, lease):
    for step in (queue.extend, lambda job: queue.checkpoint(job, b"12"), lambda job: queue.stats(job, "3 pages")):
        clock.advance(secs=1)
        step(lease)
    queue.fail(lease, "timeout")
    clock.advance(secs=10)
    clock.set_us(queue.lease_next(ACME, worker_id="w2").lease_deadline)
    queue.reap_expired()
    clock.advance(secs=3600)
    queue.fail(queue.lease_next(ACME, worker_id="w3"), "not a PDF", retryable=False)
    queue.retry(ACME, lease.job_id)
    queue.release(queue.lease_next(ACME, worker_id="w4"))
    job = queue.complete(queue.lease_next(ACME, worker_id="w5"))
    assert [event[1:3] for event in job.events] == [
        ("enqueued", None),
        ("leased", "w"),
        ("extended", None),
        ("checkpoint", "2 bytes"),
        ("stats", "3 pages"),
        ("failed", "timeout"),
        ("leased", "w2"),
        ("reaped", "w2"),
        ("leased", "w3"),
        ("dead", "not a PDF"),
        ("retried", None),
        ("leased", "w4"),
        ("released", None),
        ("leased", "w5"),
        ("completed", None),
    ]
    times = [event.at for event in job.events]
    assert times == sorted(times)
    assert job.events_dropped == 0


def test_heartbeats_in_a_row_are_one_event(queue, clock, lease):
    first_us = clock.advance(secs=1)
    queue.extend(lease)
    assert queue.get(ACME, lease.job_id).events[-1] == (first_us, "extended", None, 1, None)
    for _ in range(9):
        clock.advance(secs=1)
        job = queue.extend(lease)
    assert job.events[-1] == (first_us, "extended", None, 10, clock())
    queue.stats(lease, "half")
    job = queue.extend(lease)
    assert transitions(job) == ["enqueued", "leased", "extended", "stats", "extended"]
    assert job.events[-1].count == 1


def test_a_million_heartbeats_would_not_grow_the_record(queue, clock, lease):
    queue.extend(lease)
    clock.advance(secs=1)
    size = len(queue.extend(lease).value)
    for _ in range(120):
        clock.advance(secs=1)
        record = queue.extend(lease)
    assert len(record.value) == size
    assert record.events[-1].count == 122


def test_the_trail_keeps_the_first_and_the_newest_events(queue, lease):
    for line in range(400):
        job = queue.stats(lease, f"line {line}")
    assert len(job.events) == 257
    assert job.events_dropped == 402 - 257
    assert job.events[0].transition == "enqueued"
    assert [event.detail for event in job.events[1:]] == [f"line {line}" for line in range(144, 400)]


def test_a_job_given_back_again_and_again_stays_small(queue, lease):  # Q19
    queue.release(lease)
    sizes = []
    for _ in range(600):
        sizes.append(len(queue.release(queue.lease_next(ACME, worker_id="w")).value))
    assert sizes[-1] <= sizes[300] + 8
    job = queue.get(ACME, lease.job_id)
    assert (job.attempts, job.lease_generation, job.events_dropped) == (0, 601, 1 + 601 * 2 - 257)


def test_long_details_push_out_older_ones(queue, lease):
    for line in range(40):
        job = queue.stats(lease, f"{line:02d}" + "x" * 4094)
    details = [event.detail for event in job.events if event.transition == "stats"]
    assert [detail[:2] for detail in details] == [f"{line:02d}" for line in range(24, 40)]
    assert job.events[0].transition == "enqueued"
    assert job.events_dropped == 25
    assert len(job.value) < 70_000
