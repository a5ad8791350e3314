"""Cancelling a job: it is dead at once, its lease is refused from then on, and a race with its end has one winner."""

from __future__ import annotations

from uuid import UUID

import pytest

from telha_queue.errors import InvalidArgument, InvalidTransition, JobNotFound, LeaseConflict
from telha_queue.job import JobSpec, JobState, ReapReport
from telha_queue.scope import Scope

ACME = Scope.named("acme")
OTHER = Scope.named("other")


def test_a_pending_job_is_dead_at_once_and_says_why(queue, clock):
    job = queue.enqueue(ACME, "embed", b"x", delay_secs=60)
    clock.advance(secs=5)
    dead = queue.cancel(ACME, job.job_id, "a typo")
    assert (dead.state, dead.dead_reason, dead.not_before, dead.attempts) == (JobState.DEAD, "cancelled", None, 0)
    assert dead.events[-1][:3] == (clock(), "cancelled", "a typo")
    assert queue.get(ACME, job.job_id) == dead
    clock.advance(secs=60)
    assert queue.lease_next(ACME, worker_id="w") is None


def test_without_a_reason_the_event_has_none(queue):
    job = queue.enqueue(ACME, "embed")
    assert queue.cancel(ACME, job.job_id).events[-1].detail is None


def test_a_reason_is_kept_up_to_4_kib(queue):
    job = queue.enqueue(ACME, "embed")
    detail = queue.cancel(ACME, job.job_id, "x" * 10_000).events[-1].detail
    assert 4000 < len(detail) <= 4096
    with pytest.raises(InvalidArgument):
        queue.cancel(ACME, job.job_id, None)


def test_a_job_that_waits_in_line_is_leased_no_more(queue):
    first, second = queue.enqueue(ACME, "embed"), queue.enqueue(ACME, "embed")
    queue.release(queue.lease_next(ACME, worker_id="w"))  # so that whatever remembers who is next knows both
    queue.cancel(ACME, first.job_id)
    assert queue.lease_next(ACME, worker_id="w").job_id == second.job_id
    assert queue.lease_next_any(worker_id="w") is None


def test_the_lease_of_a_cancelled_job_is_refused_by_every_verb(queue, refused):
    queue.enqueue(ACME, "embed")
    lease = queue.lease_next(ACME, worker_id="w")
    dead = queue.cancel(ACME, lease.job_id, "no longer needed")
    assert (dead.state, dead.worker_id, dead.lease_deadline) == (JobState.DEAD, None, None)
    for verb in (
        lambda: queue.extend(lease),
        lambda: queue.checkpoint(lease, b"here"),
        lambda: queue.stats(lease, "line"),
        lambda: queue.fail(lease, "error"),
        lambda: queue.release(lease),
        lambda: queue.complete(lease),
        lambda: queue.complete(lease, late="accept_if_unclaimed"),
        lambda: queue.complete_and_lease(lease),
    ):
        with refused(queue, LeaseConflict) as caught:
            verb()
        assert (caught.value.state, caught.value.held) == (JobState.DEAD, lease.lease_generation)


def test_a_job_that_the_reaper_took_back_cannot_be_finished_late_once_it_is_cancelled(queue, clock, refused):
    queue.enqueue(ACME, "embed")
    lease = queue.lease_next(ACME, worker_id="w", lease_ttl_secs=1)
    clock.advance(secs=1)
    assert queue.reap_expired().reclaimed == 1
    assert queue.cancel(ACME, lease.job_id).reaped_worker_id is None
    with refused(queue, LeaseConflict):
        queue.complete(lease, late="accept_if_unclaimed")


def test_the_reaper_passes_a_cancelled_lease_by(queue, clock):
    queue.enqueue(ACME, "embed")
    lease = queue.lease_next(ACME, worker_id="w", lease_ttl_secs=1)
    dead = queue.cancel(ACME, lease.job_id)
    clock.advance(secs=3600)
    assert queue.reap_expired() == ReapReport(0, 0)
    assert queue.get(ACME, lease.job_id) == dead


@pytest.mark.parametrize("end", ["complete", "bury", "cancel"])
def test_a_job_that_has_ended_cannot_be_cancelled(queue, refused, end):
    queue.enqueue(ACME, "embed")
    lease = queue.lease_next(ACME, worker_id="w")
    if end == "complete":
        ended = queue.complete(lease)
    else:
        ended = queue.fail(lease, "no", retryable=False) if end == "bury" else queue.cancel(ACME, lease.job_id)
    with refused(queue, InvalidTransition) as caught:
        queue.cancel(ACME, lease.job_id, "too late")
    assert (caught.value.verb, caught.value.state) == ("cancel", ended.state)
    assert "cannot cancel a job that is" in str(caught.value)


def test_a_cancelled_job_can_be_retried(queue):
    job = queue.enqueue(ACME, "embed", max_attempts=2)
    queue.lease_next(ACME, worker_id="w")
    queue.cancel(ACME, job.job_id)
    again = queue.retry(ACME, job.job_id)
    assert (again.state, again.dead_reason, again.attempts) == (JobState.PENDING, None, 0)
    lease = queue.lease_next(ACME, worker_id="w")
    assert (lease.job_id, lease.lease_generation) == (job.job_id, 2)
    assert queue.complete(lease).state == JobState.COMPLETED


def test_a_job_of_another_scope_or_none_cannot_be_cancelled(queue, refused):
    job = queue.enqueue(ACME, "embed")
    for scope, job_id in ((OTHER, job.job_id), (Scope.SYSTEM, job.job_id), (ACME, UUID(int=1))):
        with refused(queue, JobNotFound):
            queue.cancel(scope, job_id)


def test_an_idempotency_key_goes_on_standing_for_the_cancelled_job(queue):
    job = queue.enqueue(ACME, "embed", idempotency_key="once")
    dead = queue.cancel(ACME, job.job_id)
    assert queue.enqueue(ACME, "embed", idempotency_key="once") == dead


def test_a_cancelled_job_is_so_after_a_restart(queue, reopen):
    job = queue.enqueue(ACME, "embed")
    dead = queue.cancel(ACME, job.job_id, "enough")
    queue = reopen(queue)
    assert queue.get(ACME, job.job_id) == dead
    assert queue.lease_next(ACME, worker_id="w") is None


def test_of_a_cancel_and_a_completion_at_the_same_time_exactly_one_wins(queue, together):
    jobs = 400
    queue.enqueue_many(ACME, [JobSpec("embed")] * jobs)
    leases = queue.lease_many(ACME, jobs, worker_id="w")

    def complete():
        return {lease.job_id: won(lambda lease=lease: queue.complete(lease), LeaseConflict) for lease in leases}

    def cancel():
        return {lease.job_id: won(lambda lease=lease: queue.cancel(ACME, lease.job_id), InvalidTransition)
                for lease in reversed(leases)}  # fmt: skip

    completed, cancelled = together(complete, cancel)
    for lease in leases:
        job = queue.get(ACME, lease.job_id)
        outcome = completed[lease.job_id], cancelled[lease.job_id], job.state, job.dead_reason
        assert outcome in ((True, False, JobState.COMPLETED, None), (False, True, JobState.DEAD, "cancelled"))
        assert job.events[-1].transition == ("completed" if completed[lease.job_id] else "cancelled")


def test_jobs_that_are_cancelled_while_others_lease_them_end_one_way(queue, together):
    jobs = [job.job_id for job in queue.enqueue_many(ACME, [JobSpec("embed")] * 300)]

    def work():
        done = set()
        while lease := queue.lease_next(ACME, worker_id="w"):
            if won(lambda lease=lease: queue.complete(lease), LeaseConflict):
                done.add(lease.job_id)
        return done

    def cancel():
        return {job for job in jobs if won(lambda job=job: queue.cancel(ACME, job), InvalidTransition)}

    *done, cancelled = together(work, work, cancel)
    assert sorted([*done[0], *done[1], *cancelled]) == jobs
    counts = queue.counts()
    assert (counts[JobState.DEAD], counts[JobState.COMPLETED]) == (len(cancelled), len(jobs) - len(cancelled))


def won(verb, refusal):
    """Whether a call went through, and was not refused so."""
    try:
        verb()
    except refusal:
        return False
    return True
