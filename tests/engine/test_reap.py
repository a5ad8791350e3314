"""The reaper: takes back what dead workers held, and nothing else."""

from __future__ import annotations

from contextlib import suppress

import pytest

from telha_queue.errors import LeaseConflict
from telha_queue.job import JobSpec, JobState, ReapReport
from telha_queue.scope import Scope

ACME = Scope.named("acme")
OTHER = Scope.named("other")


@pytest.fixture
def leased(queue):
    """A job of scope ACME, leased by w1 for 60 s."""
    queue.enqueue(ACME, "embed", b"x")
    return queue.lease_next(ACME, worker_id="w1", lease_ttl_secs=60)


def test_an_expired_lease_is_taken_back_at_its_deadline_and_not_before(queue, clock, leased, rows):
    queue.checkpoint(leased, b"half", lease_ttl_secs=60)
    before = rows(queue)
    clock.set_us(leased.lease_deadline - 1)
    assert queue.reap_expired() == ReapReport(0, 0)
    assert rows(queue) == before
    clock.advance_us(1)
    assert queue.reap_expired() == ReapReport(1, 0)
    job = queue.get(ACME, leased.job_id)
    assert (job.state, job.attempts, job.crashes) == (JobState.PENDING, 1, 1)
    assert (job.worker_id, job.lease_deadline, job.continuation) == (None, None, None)
    assert (job.reaped_worker_id, job.lease_generation, job.payload) == ("w1", 1, b"x")
    assert job.not_before == clock() + 10_000_000
    assert job.events[-1][:3] == (clock(), "reaped", "w1")
    clock.advance(secs=10)
    assert queue.lease_next(ACME, worker_id="w2").reaped_worker_id is None


def test_the_grace_comes_on_top_of_the_deadline(make_queue, clock):
    queue = make_queue(lease_grace_secs=60)
    queue.enqueue(ACME, "embed")
    lease = queue.lease_next(ACME, worker_id="w")
    clock.set_us(lease.lease_deadline + 59_999_999)
    assert queue.reap_expired().reclaimed == 0
    clock.advance_us(1)
    assert queue.reap_expired().reclaimed == 1


def test_a_second_pass_finds_nothing(queue, clock, leased, rows):
    clock.set_us(leased.lease_deadline)
    queue.reap_expired()
    before = rows(queue)
    assert queue.reap_expired() == ReapReport(0, 0)
    assert rows(queue) == before


def test_a_heartbeat_keeps_the_lease(queue, clock, leased):  # D8
    clock.advance(secs=59)
    extended = queue.extend(leased, lease_ttl_secs=60)
    clock.set_us(leased.lease_deadline)
    assert queue.reap_expired().reclaimed == 0
    clock.set_us(extended.lease_deadline)
    assert queue.reap_expired().reclaimed == 1


def test_the_backoff_of_the_kind_holds_for_reaped_jobs_too(make_queue, clock):
    queue = make_queue(backoff_base_secs_by_kind={"clarify": 7200})
    job = queue.enqueue(ACME, "clarify")
    clock.set_us(queue.lease_next(ACME, worker_id="w").lease_deadline)
    queue.reap_expired()
    assert queue.get(ACME, job.job_id).not_before == clock() + 7_200_000_000


def test_every_scope_is_swept_in_one_pass(queue, clock):
    scopes = [Scope.SYSTEM, ACME, OTHER, Scope(b"\xff" * 32)]
    for scope in scopes:
        queue.enqueue(scope, "embed")
        queue.lease_next(scope, worker_id="w", lease_ttl_secs=1)
    clock.advance(secs=1)
    assert queue.reap_expired().reclaimed == 4
    assert [queue.counts(scope)[JobState.PENDING] for scope in scopes] == [1, 1, 1, 1]


def test_only_leased_jobs_are_touched(queue, clock, rows):
    queue.enqueue_many(ACME, [JobSpec("pending"), JobSpec("gated", delay_secs=1)])
    for kind in ("done", "dead"):
        queue.enqueue(ACME, kind)
    queue.complete(queue.lease_next(ACME, "done", worker_id="w"))
    queue.fail(queue.lease_next(ACME, "dead", worker_id="w"), "error", retryable=False)
    before = rows(queue)
    clock.advance(secs=10**6)
    assert queue.reap_expired() == ReapReport(0, 0)
    assert rows(queue) == before


def test_a_worker_lost_in_the_last_allowed_attempt_leaves_a_dead_job(queue, clock):  # Q3
    queue.enqueue(ACME, "embed", max_attempts=2)
    queue.fail(queue.lease_next(ACME, worker_id="w"), "error")
    clock.advance(secs=10)
    lease = queue.lease_next(ACME, worker_id="w9")
    clock.set_us(lease.lease_deadline)
    report = queue.reap_expired()
    assert report[:2] == (0, 1)
    assert report.dead_jobs == ((ACME, lease.job_id, "embed", 2, "w9", "attempts"),)
    dead = queue.get(ACME, lease.job_id)
    assert (dead.state, dead.attempts, dead.dead_reason) == (JobState.DEAD, 2, "attempts")
    assert dead.events[-1][:3] == (clock(), "dead", "lease of w9 expired")
    assert (dead.worker_id, dead.lease_deadline, dead.not_before) == (None, None, None)


def test_live_leases_in_front_do_not_starve_the_expired_ones(queue, clock):  # Q4
    queue.enqueue_many(ACME, [JobSpec("long", priority=0)] * 1000)
    queue.enqueue_many(ACME, [JobSpec("short", priority=9)] * 7)
    assert len(queue.lease_many(ACME, 1000, "long", worker_id="w", lease_ttl_secs=1000)) == 1000
    assert len(queue.lease_many(ACME, 10, "short", worker_id="w", lease_ttl_secs=1)) == 7
    clock.advance(secs=1)
    assert queue.reap_expired().reclaimed == 7
    assert queue.counts(ACME)[JobState.LEASED] == 1000


def test_more_expired_leases_than_a_batch_are_taken_in_one_pass(queue, clock):
    for _ in range(3):
        queue.enqueue_many(ACME, [JobSpec("embed")] * 1000)
        queue.lease_many(ACME, 1000, worker_id="w", lease_ttl_secs=1)
    clock.advance(secs=1)
    assert queue.reap_expired().reclaimed == 3000


def test_a_job_that_kills_every_worker_is_dead_as_poison(queue, clock):  # Q6, D9
    job = queue.enqueue(ACME, "embed")
    for attempt in range(1, 6):
        lease = queue.lease_next(ACME, worker_id=f"w{attempt}")
        clock.set_us(lease.lease_deadline)
        report = queue.reap_expired()
        assert report[:2] == ((0, 1) if attempt == 5 else (1, 0))
        clock.advance(secs=3600)
    dead = queue.get(ACME, job.job_id)
    assert (dead.state, dead.attempts, dead.crashes, dead.dead_reason) == (JobState.DEAD, 5, 5, "poison")
    assert queue.lease_next(ACME, worker_id="w") is None


def test_a_kind_that_nobody_knows_any_more_is_taken_back_too(queue, clock):  # D7
    queue.enqueue(ACME, "retired:2019")
    queue.lease_next(ACME, worker_id="w", lease_ttl_secs=1)
    clock.advance(secs=1)
    assert queue.reap_expired().reclaimed == 1
    clock.advance(secs=10)
    assert queue.lease_next(ACME, "retired:", worker_id="w") is not None


def test_a_job_just_leased_is_never_swept(queue, together):  # Q21
    queue.enqueue_many(ACME, [JobSpec("embed")] * 400)

    def lease_and_complete():
        while lease := queue.lease_next(ACME, worker_id="w", lease_ttl_secs=1):
            queue.complete(lease)

    def sweep():
        return sum(queue.reap_expired().reclaimed for _ in range(200))

    assert together(lease_and_complete, lease_and_complete, sweep)[2] == 0
    assert queue.counts(ACME)[JobState.COMPLETED] == 400


def test_completion_and_reaper_never_both_win(queue, clock, together):  # Q1, D6
    queue.enqueue_many(ACME, [JobSpec("embed")] * 300)
    leases = queue.lease_many(ACME, 300, worker_id="w", lease_ttl_secs=1)
    clock.advance(secs=1)

    def complete():
        done = set()
        for lease in leases:
            with suppress(LeaseConflict):
                done.add(queue.complete(lease).job_id)
        return done

    done, report = together(complete, queue.reap_expired)
    assert len(done) + report.reclaimed == 300
    for lease in leases:
        job = queue.get(ACME, lease.job_id)
        won = (JobState.COMPLETED, 0) if job.job_id in done else (JobState.PENDING, 1)
        assert (job.state, job.attempts) == won


def test_after_a_restart_every_lease_is_due_at_its_stored_deadline(queue, clock, reopen, leased):  # D10, D16
    queue = reopen(queue)
    clock.set_us(leased.lease_deadline - 1)
    assert queue.reap_expired().reclaimed == 0
    clock.advance_us(1)
    assert queue.reap_expired().reclaimed == 1


def test_the_reaper_may_be_told_a_later_time_but_no_earlier_one(queue, clock, leased):
    assert queue.reap_expired(leased.lease_deadline).reclaimed == 1
    lease = queue.enqueue(ACME, "other") and queue.lease_next(ACME, "other", worker_id="w", lease_ttl_secs=1)
    clock.set_us(lease.lease_deadline)
    assert queue.reap_expired(0).reclaimed == 1


def test_time_goes_on_from_what_the_reaper_was_told(queue, leased):
    queue.reap_expired(leased.lease_deadline)
    job = queue.complete(leased, late="accept_if_unclaimed")
    assert job.events[-1].at >= job.events[-2].at == leased.lease_deadline
    assert queue.enqueue(ACME, "embed").created_at >= leased.lease_deadline
