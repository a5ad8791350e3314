"""Late completion (design decision 8): refused unless asked for, and never once somebody has leased the job since."""

from __future__ import annotations

import pytest

from telha_queue.errors import InvalidArgument, LeaseConflict
from telha_queue.job import JobState, Lease
from telha_queue.scope import Scope

ACME = Scope.named("acme")
LATE = "accept_if_unclaimed"


def reaped(queue, clock, **job):
    """A lease that the reaper has ended."""
    queue.enqueue(ACME, "embed", b"x", **job)
    lease = queue.lease_next(ACME, worker_id="slow", lease_ttl_secs=1)
    clock.advance(secs=1)
    queue.reap_expired()
    return lease


def test_it_is_refused_unless_asked_for(queue, clock, refused):
    lease = reaped(queue, clock)
    with refused(queue, LeaseConflict):
        queue.complete(lease)
    with refused(queue, LeaseConflict):
        queue.complete(lease, late="refuse")


def test_it_is_accepted_while_nobody_has_leased_the_job_since(queue, clock):
    lease = reaped(queue, clock)
    done = queue.complete(lease, late=LATE)
    assert (done.state, done.lease_generation, done.attempts) == (JobState.COMPLETED, 1, 1)
    assert (done.not_before, done.worker_id, done.reaped_worker_id) == (None, None, None)
    assert done.events[-1][:3] == (clock(), "completed", "late")
    clock.advance(secs=3600)
    assert queue.lease_next(ACME, worker_id="w") is None
    assert queue.counts()[JobState.COMPLETED] == 1


def test_it_is_accepted_from_a_job_that_died_of_the_loss(queue, clock):
    lease = reaped(queue, clock, max_attempts=1)
    assert queue.get(ACME, lease.job_id).state == JobState.DEAD
    done = queue.complete(lease, late=LATE)
    assert (done.state, done.dead_reason) == (JobState.COMPLETED, None)


def test_it_is_never_accepted_after_a_new_lease(queue, clock, refused):
    lease = reaped(queue, clock)
    clock.advance(secs=10)
    successor = queue.lease_next(ACME, worker_id="quick")
    with refused(queue, LeaseConflict):
        queue.complete(lease, late=LATE)
    queue.release(successor)
    with refused(queue, LeaseConflict):
        queue.complete(lease, late=LATE)


def test_it_is_never_accepted_after_a_new_lease_was_reaped_as_well(queue, clock, refused):
    lease = reaped(queue, clock)
    clock.advance(secs=10)
    successor = queue.lease_next(ACME, worker_id="slow", lease_ttl_secs=1)
    clock.advance(secs=1)
    queue.reap_expired()
    with refused(queue, LeaseConflict):
        queue.complete(lease, late=LATE)
    assert queue.complete(successor, late=LATE).state == JobState.COMPLETED


def test_it_is_accepted_from_the_worker_that_was_reaped_only(queue, clock, refused):
    lease = reaped(queue, clock)
    for stranger in (Lease(ACME, lease.job_id, "other", 1), Lease(ACME, lease.job_id, "slow", 2)):
        with refused(queue, LeaseConflict):
            queue.complete(stranger, late=LATE)


@pytest.mark.parametrize("end", ["complete", "release", "fail", "die"])
def test_it_is_not_accepted_when_the_holder_ended_the_lease_itself(queue, refused, end):
    queue.enqueue(ACME, "embed")
    lease = queue.lease_next(ACME, worker_id="w")
    {
        "complete": queue.complete,
        "release": queue.release,
        "fail": lambda job: queue.fail(job, "error"),
        "die": lambda job: queue.fail(job, "error", retryable=False),
    }[end](lease)
    with refused(queue, LeaseConflict):
        queue.complete(lease, late=LATE)


def test_it_is_not_accepted_after_an_operator_retried_the_job(queue, clock, refused):
    lease = reaped(queue, clock, max_attempts=1)
    queue.retry(ACME, lease.job_id)
    with refused(queue, LeaseConflict):
        queue.complete(lease, late=LATE)


def test_it_happens_once(queue, clock, refused):
    lease = reaped(queue, clock)
    queue.complete(lease, late=LATE)
    with refused(queue, LeaseConflict):
        queue.complete(lease, late=LATE)


def test_other_verbs_stay_refused(queue, clock, refused):
    lease = reaped(queue, clock)
    for verb in (queue.extend, queue.release, lambda job: queue.fail(job, "error"), lambda job: queue.stats(job, "x")):
        with refused(queue, LeaseConflict):
            verb(lease)


def test_many_can_be_late_together(queue, clock):
    late, lost = reaped(queue, clock), reaped(queue, clock, priority=0)
    clock.advance(secs=10)
    assert queue.lease_next(ACME, worker_id="quick").job_id == lost.job_id
    assert all(isinstance(refusal, LeaseConflict) for refusal in queue.complete_many([late, lost]))
    done, refusal = queue.complete_many([late, lost], late=LATE)
    assert (done.state, done.events[-1].detail) == (JobState.COMPLETED, "late")
    assert isinstance(refusal, LeaseConflict)


def test_a_lease_in_force_is_completed_as_ever(queue):
    queue.enqueue(ACME, "embed")
    done = queue.complete(queue.lease_next(ACME, worker_id="w"), late=LATE)
    assert done.events[-1][1:3] == ("completed", None)


@pytest.mark.parametrize("late", [True, None, "", "accept", b"refuse", 1])
def test_only_the_two_ways_are_known(queue, refused, late):
    queue.enqueue(ACME, "embed")
    lease = queue.lease_next(ACME, worker_id="w")
    with refused(queue, InvalidArgument):
        queue.complete(lease, late=late)
