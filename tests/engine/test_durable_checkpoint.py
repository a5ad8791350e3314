"""Durable checkpoints: a continuation that outlives its lease, until the job is completed."""

from __future__ import annotations

import pytest

from telha_queue.job import JobState
from telha_queue.scope import Scope

ACME = Scope.named("acme")


@pytest.fixture
def lease(queue):
    """A lease under which page 7 was saved for good, and page 8 for as long as it lasts."""
    queue.enqueue(ACME, "embed")
    lease = queue.lease_next(ACME, worker_id="w")
    queue.checkpoint(lease, b"page 7", durable=True)
    queue.checkpoint(lease, b"page 8")
    return lease


def test_it_stands_beside_the_one_of_the_lease(queue, lease):
    job = queue.get(ACME, lease.job_id)
    assert (job.continuation, job.durable_continuation) == (b"page 8", b"page 7")
    assert [event[1:3] for event in job.events[-2:]] == [("checkpoint", "durable, 6 bytes"), ("checkpoint", "6 bytes")]


@pytest.mark.parametrize("end", ["fail", "release", "reap", "die and retry"])
def test_it_survives_every_end_but_completion(queue, clock, lease, end):
    if end == "fail":
        queue.fail(lease, "error")
    elif end == "release":
        queue.release(lease)
    elif end == "reap":
        clock.set_us(lease.lease_deadline)
        assert queue.reap_expired().reclaimed == 1
    else:
        assert queue.fail(lease, "error", retryable=False).durable_continuation == b"page 7"
        queue.retry(ACME, lease.job_id)
    clock.advance(secs=3600)
    successor = queue.lease_next(ACME, worker_id="w2")
    assert (successor.job_id, successor.continuation) == (lease.job_id, None)
    assert successor.durable_continuation == b"page 7"


def test_it_goes_with_completion(queue, lease):
    job = queue.complete(lease)
    assert (job.continuation, job.durable_continuation) == (None, None)


def test_the_newest_counts(queue, lease):
    assert queue.checkpoint(lease, b"page 9", durable=True).durable_continuation == b"page 9"
    queue.release(lease)
    successor = queue.lease_next(ACME, worker_id="w2")
    assert queue.checkpoint(successor, b"", durable=True).durable_continuation == b""
    assert queue.get(ACME, lease.job_id).continuation is None


def test_it_is_a_heartbeat(queue, clock, lease):
    clock.advance(secs=200)
    assert queue.checkpoint(lease, b"x", durable=True).lease_deadline == clock() + 300_000_000
    extended = queue.checkpoint(lease, b"x", durable=True, lease_ttl_secs=400)
    assert (extended.lease_deadline, extended.state) == (clock() + 400_000_000, JobState.LEASED)


def test_it_survives_a_restart(queue, reopen, lease):
    assert reopen(queue).get(ACME, lease.job_id).durable_continuation == b"page 7"
