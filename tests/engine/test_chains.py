"""Successors that exist exactly when the completion does."""

from __future__ import annotations

import pytest

from telha_queue.errors import InvalidArgument, LeaseConflict
from telha_queue.job import JobSpec, JobState, Lease
from telha_queue.scope import Scope

ACME = Scope.named("acme")
THEN = [JobSpec("embed", b"page 1"), JobSpec("embed", b"page 2", idempotency_key="page 2", delay_secs=5)]


def leased(queue):
    queue.enqueue(ACME, "sync:drive")
    return queue.lease_next(ACME, worker_id="w")


@pytest.mark.parametrize("short", [False, True])
def test_successors_are_stored_with_the_completion(queue, clock, short):
    lease = leased(queue)
    held = Lease(lease.scope, lease.job_id, lease.worker_id, lease.lease_generation) if short else lease
    done = queue.complete(held, then=THEN)
    assert (done.job_id, done.state) == (lease.job_id, JobState.COMPLETED)
    first, second = queue.list(ACME, state=JobState.PENDING)
    assert [(job.kind, job.payload, job.not_before) for job in (first, second)] == [
        ("embed", b"page 1", None),
        ("embed", b"page 2", clock() + 5_000_000),
    ]
    assert queue.lease_next(ACME, worker_id="w").job_id == first.job_id


def test_a_chain_returns_its_successors(queue):
    lease = leased(queue)
    following = queue.enqueue_chained(lease, THEN)
    assert [job.payload for job in following] == [b"page 1", b"page 2"]
    assert queue.list(ACME, state=JobState.PENDING) == following
    assert queue.get(ACME, lease.job_id).state == JobState.COMPLETED


def test_a_lost_lease_has_no_successors(queue, refused):
    lease = leased(queue)
    queue.release(lease, delay_secs=60)
    with refused(queue, LeaseConflict):
        queue.complete(lease, then=THEN)
    with refused(queue, LeaseConflict):
        queue.enqueue_chained(lease, THEN)


def test_a_bad_successor_leaves_the_job_leased(queue, refused):
    lease = leased(queue)
    for then in ([JobSpec("")], THEN[0], ["embed"], 7, [*THEN, None]):
        with refused(queue, InvalidArgument):
            queue.complete(lease, then=then)
        with refused(queue, InvalidArgument):
            queue.enqueue_chained(lease, then)
    assert queue.complete(lease, then=[]).state == JobState.COMPLETED


def test_a_successor_that_is_there_is_not_stored_again(queue):
    earlier = queue.enqueue(ACME, "embed", b"page 2", idempotency_key="page 2", priority=255)
    first, second = queue.enqueue_chained(leased(queue), THEN)
    assert second == earlier
    assert queue.list(ACME, state=JobState.PENDING) == [first, earlier]


def test_a_late_completion_has_its_successors_once(queue, clock):
    lease = leased(queue)
    clock.advance(secs=301)
    assert queue.reap_expired().reclaimed == 1
    with pytest.raises(LeaseConflict):
        queue.complete(lease, then=THEN)
    queue.complete(lease, late="accept_if_unclaimed", then=THEN)
    with pytest.raises(LeaseConflict):
        queue.complete(lease, late="accept_if_unclaimed", then=THEN)
    assert len(queue.list(ACME, state=JobState.PENDING)) == 2


def test_a_chain_goes_on_from_job_to_job(queue):
    queue.enqueue(ACME, "step", b"3")
    while lease := queue.lease_next(ACME, worker_id="w"):
        left = int(lease.payload) - 1
        queue.complete(lease, then=[JobSpec("step", str(left).encode())] if left else [])
    assert [job.payload for job in queue.list(ACME, state=JobState.COMPLETED)] == [b"3", b"2", b"1"]
