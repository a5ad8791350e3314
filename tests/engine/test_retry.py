"""Operator retry: a dead job gets a fresh start and keeps its past."""

from __future__ import annotations

from uuid import UUID

import pytest

from telha_queue.errors import InvalidTransition, JobNotFound
from telha_queue.job import JobState
from telha_queue.scope import Scope

ACME = Scope.named("acme")
OTHER = Scope.named("other")


@pytest.fixture
def dead(queue):
    """A job of scope ACME that failed for good."""
    queue.enqueue(ACME, "embed", b"x", priority=3, idempotency_key="once", max_attempts=2)
    return queue.fail(queue.lease_next(ACME, worker_id="w"), "error", retryable=False)


def test_a_dead_job_starts_afresh(queue, clock, dead):
    clock.advance(secs=5)
    job = queue.retry(ACME, dead.job_id)
    assert (job.state, job.attempts, job.crashes) == (JobState.PENDING, 0, 0)
    assert (job.dead_reason, job.not_before, job.reaped_worker_id) == (None, None, None)
    assert (job.lease_generation, job.max_attempts, job.payload) == (1, 2, b"x")
    assert (job.created_at, job.priority, job.idempotency_key) == (dead.created_at, 3, "once")
    assert tuple(job.events) == (*dead.events, (clock(), "retried", None, 1, None))
    assert queue.lease_next(ACME, worker_id="w").job_id == dead.job_id


def test_a_retried_job_has_all_its_attempts_again(queue, clock, dead):
    queue.retry(ACME, dead.job_id)
    failed = queue.fail(queue.lease_next(ACME, worker_id="w"), "error")
    assert (failed.state, failed.attempts) == (JobState.PENDING, 1)
    assert failed.not_before == clock() + 10_000_000
    clock.advance(secs=10)
    assert queue.fail(queue.lease_next(ACME, worker_id="w"), "error").state == JobState.DEAD


def test_a_retried_job_is_back_in_its_place(queue, dead):
    later = queue.enqueue(ACME, "embed", priority=3)
    queue.retry(ACME, dead.job_id)
    assert queue.lease_next(ACME, worker_id="w").job_id == dead.job_id
    assert queue.lease_next(ACME, worker_id="w").job_id == later.job_id


def test_crashes_before_the_retry_do_not_make_it_poison(queue, clock):
    job = queue.enqueue(ACME, "embed", max_attempts=2)

    def crash():
        clock.set_us(queue.lease_next(ACME, worker_id="w").lease_deadline)
        queue.reap_expired()
        clock.advance(secs=10)
        return queue.get(ACME, job.job_id)

    crash()
    assert crash().dead_reason == "poison"
    queue.retry(ACME, job.job_id)
    queue.fail(queue.lease_next(ACME, worker_id="w"), "error")
    clock.advance(secs=10)
    dead = crash()
    assert (dead.attempts, dead.crashes, dead.dead_reason) == (2, 1, "attempts")


def pending(queue, clock):
    return queue.enqueue(ACME, "embed")


def gated(queue, clock):
    pending(queue, clock)
    return queue.fail(queue.lease_next(ACME, worker_id="w"), "error")


def leased(queue, clock):
    pending(queue, clock)
    return queue.lease_next(ACME, worker_id="w")


def completed(queue, clock):
    return queue.complete(leased(queue, clock))


def retried(queue, clock):
    return queue.retry(ACME, queue.fail(leased(queue, clock), "error", retryable=False).job_id)


@pytest.mark.parametrize("make", [pending, gated, leased, completed, retried])
def test_a_job_that_is_not_dead_cannot_be_retried(queue, clock, refused, make):
    job = make(queue, clock)
    with refused(queue, InvalidTransition) as caught:
        queue.retry(ACME, job.job_id)
    assert (caught.value.job_id, caught.value.verb, caught.value.state) == (job.job_id, "retry", job.state)


def test_a_job_of_another_scope_cannot_be_retried(queue, refused, dead):
    for scope in (OTHER, Scope.SYSTEM):
        with refused(queue, JobNotFound):
            queue.retry(scope, dead.job_id)


def test_an_unknown_job_cannot_be_retried(queue, refused, dead):
    with refused(queue, JobNotFound) as caught:
        queue.retry(ACME, UUID(int=1))
    assert caught.value.job_id == UUID(int=1)
