"""Jobs that expire: never leased at that time or later, buried by the reaper's pass, and nothing for all others."""

from __future__ import annotations

import pytest

from telha_queue.errors import InvalidArgument
from telha_queue.job import JobSpec, JobState
from telha_queue.scope import Scope

ACME = Scope.named("acme")
OTHER = Scope.named("other")
TEN_YEARS_SECS = 10 * 365 * 24 * 3600


def test_a_job_says_when_it_expires(queue, clock):
    assert queue.enqueue(ACME, "embed").expires_at is None
    assert queue.enqueue(ACME, "embed", expires_secs=2.5).expires_at == clock() + 2_500_000
    job = queue.enqueue(ACME, "embed", expires_at=clock() + 1)
    assert job.expires_at == queue.get(ACME, job.job_id).expires_at == clock() + 1
    outcomes = queue.enqueue_many(ACME, [JobSpec("embed", expires_secs=1), JobSpec("embed")])
    assert [outcome.expires_at for outcome in outcomes] == [clock() + 1_000_000, None]


@pytest.mark.parametrize("warm", [False, True])
def test_it_is_leased_until_then_and_never_at_that_time_or_later(queue, clock, warm):
    jobs = [queue.enqueue(ACME, "embed", expires_secs=10) for _ in range(3)]
    later = queue.enqueue(ACME, "embed")
    clock.advance_us(9_999_999)
    assert queue.lease_next(ACME, worker_id="w").job_id == jobs[0].job_id
    if warm:  # the others stand in whatever remembers who is next
        queue.release(queue.lease_next_any(worker_id="w"))
    clock.advance_us(1)
    assert queue.lease_next(ACME, worker_id="w").job_id == later.job_id
    assert queue.lease_next(ACME, worker_id="w") is None
    assert queue.lease_many(None, 5, worker_id="w") == []
    assert queue.get(ACME, jobs[1].job_id).state == JobState.PENDING


def test_an_expired_large_job_does_not_end_a_batch(queue, clock):
    queue.enqueue(ACME, "embed", b"a")
    queue.enqueue(ACME, "embed", b"b" * 100, expires_secs=1)
    queue.enqueue(ACME, "embed", b"c")
    queue.release(queue.lease_next(ACME, worker_id="w"))
    clock.advance(secs=1)
    leases = queue.lease_many(ACME, 5, worker_id="w", max_bytes=10)
    assert [lease.payload for lease in leases] == [b"a", b"c"]


def test_the_next_of_complete_and_lease_is_none_that_has_expired(queue, clock):
    queue.enqueue(ACME, "embed", b"a")
    queue.enqueue(ACME, "embed", b"b", expires_secs=1)
    queue.enqueue(ACME, "embed", b"c")
    lease = queue.lease_next(ACME, worker_id="w")
    clock.advance(secs=1)
    assert queue.complete_and_lease(lease).payload == b"c"


def test_a_pass_of_the_reaper_buries_those_that_wait(queue, clock):
    job = queue.enqueue(ACME, "embed", b"x", expires_secs=10)
    kept = queue.enqueue(OTHER, "embed", expires_secs=11)
    clock.advance_us(9_999_999)
    assert queue.reap_expired().expired == 0
    clock.advance_us(1)
    report = queue.reap_expired()
    assert (report.expired, report.reclaimed, report.dead, report.dead_jobs) == (1, 0, 0, ())
    dead = queue.get(ACME, job.job_id)
    assert (dead.state, dead.dead_reason, dead.attempts) == (JobState.DEAD, "expired", 0)
    assert dead.events[-1] == (clock(), "expired", None, 1, None)
    assert queue.get(OTHER, kept.job_id).state == JobState.PENDING
    assert queue.reap_expired().expired == 0


def test_one_pass_buries_many(queue, clock):
    queue.enqueue_many(ACME, [JobSpec("embed", expires_secs=1 + number % 3) for number in range(1000)])
    queue.enqueue_many(OTHER, [JobSpec("embed", expires_secs=100) for _ in range(10)])
    clock.advance(secs=2)
    assert queue.reap_expired().expired == 667
    clock.advance(secs=1)
    assert queue.reap_expired().expired == 333
    assert (queue.counts(ACME)[JobState.DEAD], queue.counts(OTHER)[JobState.PENDING]) == (1000, 10)


def test_a_lease_that_is_held_outlives_the_time_of_its_job(queue, clock):
    queue.enqueue(ACME, "embed", expires_secs=10)
    lease = queue.lease_next(ACME, worker_id="w", lease_ttl_secs=60)
    clock.advance(secs=20)
    assert queue.reap_expired().expired == 0
    assert queue.extend(lease).state == JobState.LEASED
    assert queue.complete(lease).state == JobState.COMPLETED
    assert queue.reap_expired().expired == 0


@pytest.mark.parametrize("how", ["fail", "release", "reap"])
def test_a_job_that_would_be_due_again_only_too_late_is_dead_at_once(queue, clock, how):
    queue.enqueue(ACME, "embed", expires_secs=10)
    lease = queue.lease_next(ACME, worker_id="w", lease_ttl_secs=5)
    if how == "fail":
        queue.fail(lease, "boom", delay_secs=10)
    elif how == "release":
        queue.release(lease, delay_secs=10)
    else:
        clock.advance(secs=5)
        report = queue.reap_expired()
        assert (report.dead, report.expired, report.dead_jobs[0].dead_reason) == (1, 0, "expired")
    dead = queue.find(lease.job_id)
    assert (dead.state, dead.dead_reason, dead.events[-1].transition) == (JobState.DEAD, "expired", "dead")


def test_a_job_that_comes_back_in_time_expires_later(queue, clock):
    job = queue.enqueue(ACME, "embed", expires_secs=10)
    queue.release(queue.lease_next(ACME, worker_id="w"), delay_secs=9)
    clock.advance(secs=10)
    assert queue.reap_expired().expired == 1
    assert queue.find(job.job_id).dead_reason == "expired"


def test_a_retry_of_one_that_has_expired_expires_no_more(queue, clock):
    job = queue.enqueue(ACME, "embed", expires_secs=10)
    clock.advance(secs=10)
    queue.reap_expired()
    assert queue.retry(ACME, job.job_id).expires_at is None
    clock.advance(secs=3600)
    assert queue.reap_expired().expired == 0
    assert queue.lease_next(ACME, worker_id="w").job_id == job.job_id


def test_a_retry_in_time_expires_as_before(queue, clock):
    job = queue.enqueue(ACME, "embed", expires_secs=10)
    queue.cancel(ACME, job.job_id)
    clock.advance(secs=5)
    assert queue.retry(ACME, job.job_id).expires_at == job.expires_at
    clock.advance(secs=5)
    assert queue.lease_next(ACME, worker_id="w") is None
    assert queue.reap_expired().expired == 1


def test_one_that_has_ended_otherwise_is_passed_by(queue, clock):
    cancelled = queue.cancel(ACME, queue.enqueue(ACME, "embed", expires_secs=10).job_id)
    queue.enqueue(ACME, "embed", expires_secs=10)
    done = queue.complete(queue.lease_next(ACME, worker_id="w"))
    clock.advance(secs=10)
    assert queue.reap_expired().expired == 0
    assert (queue.find(cancelled.job_id), queue.find(done.job_id)) == (cancelled, done)


def test_a_gate_that_opens_too_late_never_opens(queue, clock):
    queue.enqueue(ACME, "embed", delay_secs=10, expires_secs=10)
    assert queue.lease_next(ACME, worker_id="w") is None
    clock.advance(secs=10)
    assert queue.lease_next(ACME, worker_id="w") is None
    assert queue.lease_next_any(worker_id="w", wait_secs=0.01) is None


def test_a_rescheduled_job_still_expires(queue, clock):
    job = queue.enqueue(ACME, "embed", expires_secs=10)
    queue.reschedule(ACME, job.job_id, priority=1, delay_secs=20)
    clock.advance(secs=20)
    assert queue.lease_next(ACME, worker_id="w") is None
    assert queue.reap_expired().expired == 1


def test_it_expires_across_a_restart_too(queue, clock, reopen):
    jobs = [queue.enqueue(ACME, "embed", expires_secs=secs) for secs in (10, 20)]
    queue = reopen(queue)
    clock.advance(secs=10)
    assert queue.lease_next(ACME, worker_id="w").job_id == jobs[1].job_id
    assert queue.reap_expired().expired == 1


def test_jobs_expire_beside_workers_that_lease_them(queue, clock, together):
    jobs = queue.enqueue_many(ACME, [JobSpec("embed", expires_secs=1 + number % 5) for number in range(500)])

    def work():
        done = []
        while lease := queue.lease_next(ACME, worker_id="w"):
            done.append(queue.complete(lease).job_id)
        return done

    def reap():
        expired = 0
        for _ in range(6):
            clock.advance(secs=1)
            expired += queue.reap_expired().expired
        return expired

    *done, expired = together(work, work, reap)
    assert len({*done[0], *done[1]}) == len(done[0]) + len(done[1]) == len(jobs) - expired
    counts = queue.counts()
    assert (counts[JobState.COMPLETED], counts[JobState.DEAD]) == (len(jobs) - expired, expired)


def test_a_job_that_has_expired_already_is_not_stored(queue, clock, refused):
    for how in (
        {"expires_at": clock()},
        {"expires_at": clock() - 1},
        {"expires_secs": 0},
        {"expires_secs": 1e-9},
        {"expires_secs": 1, "expires_at": clock() + 1},
        {"expires_at": clock() + TEN_YEARS_SECS * 10**6 + 1},
        {"expires_secs": TEN_YEARS_SECS + 1},
    ):
        with refused(queue, InvalidArgument, case=str(how)):
            queue.enqueue(ACME, "embed", **how)
    assert queue.enqueue(ACME, "embed", expires_secs=TEN_YEARS_SECS).state == JobState.PENDING


def test_a_repeat_of_its_key_keeps_the_time_of_the_first(queue, clock):
    first = queue.enqueue(ACME, "embed", idempotency_key="once", expires_secs=10)
    assert queue.enqueue(ACME, "embed", idempotency_key="once", expires_secs=99) == first
