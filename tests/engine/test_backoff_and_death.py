"""Failure: the backoff before the next attempt, and when a job is given up."""

from __future__ import annotations

import pytest

from telha_queue.errors import InvalidTransition
from telha_queue.job import JobState
from telha_queue.scope import Scope

ACME = Scope.named("acme")


@pytest.fixture
def failing(clock):
    """failing(queue, kind): fail a job whenever it is due, up to n times; yields (record, delay in µs)."""

    def fail_again(queue, kind="embed", times=1):
        job = queue.enqueue(ACME, kind, max_attempts=2**32 - 1)
        for _ in range(times):
            failed = queue.fail(queue.lease_next(ACME, kind, worker_id="w"), "error")
            assert (failed.job_id, failed.state) == (job.job_id, JobState.PENDING)
            yield failed.not_before - clock()
            clock.set_us(failed.not_before)

    return fail_again


def secs(delays_us):
    return [delay_us / 1_000_000 for delay_us in delays_us]


def test_a_failed_job_is_pending_again_behind_its_gate(queue, clock):
    queue.enqueue(ACME, "embed", b"x")
    lease = queue.lease_next(ACME, worker_id="w")
    queue.checkpoint(lease, b"half")
    clock.advance(secs=1)
    failed = queue.fail(lease, "no route to host")
    assert (failed.state, failed.attempts, failed.crashes) == (JobState.PENDING, 1, 0)
    assert failed.not_before == clock() + 10_000_000
    assert (failed.worker_id, failed.lease_deadline, failed.continuation) == (None, None, None)
    assert (failed.dead_reason, failed.payload) == (None, b"x")
    assert failed.events[-1][:3] == (clock(), "failed", "no route to host")
    assert queue.lease_next(ACME, worker_id="w") is None


def test_the_next_lease_opens_the_gate_for_good(queue, clock, failing):
    for _ in failing(queue):
        pass
    lease = queue.lease_next(ACME, worker_id="w")
    assert (lease.not_before, lease.attempts, lease.lease_generation) == (None, 1, 2)


def test_the_delay_grows_by_the_factor_up_to_the_cap(queue, failing):
    assert secs(failing(queue, times=7)) == [10, 40, 160, 640, 2560, 3600, 3600]


def test_settings_shape_the_delay(make_queue, failing):
    queue = make_queue(backoff_base_secs=3, backoff_factor=2, backoff_cap_secs=20)
    assert secs(failing(queue, times=5)) == [3, 6, 12, 20, 20]


def test_a_cap_below_the_base_wins(make_queue, failing):
    assert secs(failing(make_queue(backoff_base_secs=50, backoff_cap_secs=20), times=2)) == [20, 20]


def test_no_base_means_no_delay(make_queue, failing):
    assert secs(failing(make_queue(backoff_base_secs=0), times=3)) == [0, 0, 0]


def test_a_kind_has_its_own_base_and_a_cap_no_lower(make_queue, failing):
    queue = make_queue(backoff_base_secs_by_kind={"clarify:temporal": 7200, "quick": 1})
    assert secs(failing(queue, "clarify:temporal", 3)) == [7200, 7200, 7200]
    assert secs(failing(queue, "quick", 3)) == [1, 4, 16]
    assert secs(failing(queue, "quick:other", 2)) == [10, 40]  # kinds match whole


@pytest.mark.parametrize(
    ("base", "factor", "cap"), [(10, 4, 3600), (1, 2**32 - 1, 3600), (300_000_000, 9, 315_360_000)]
)
def test_seventy_failures_overflow_nothing(make_queue, failing, base, factor, cap):  # Q10
    queue = make_queue(backoff_base_secs=base, backoff_factor=factor, backoff_cap_secs=cap)
    delays = secs(failing(queue, times=70))
    assert delays == sorted(delays)
    assert delays[0] == base
    assert set(delays[9:]) == {cap}


def test_a_job_dies_at_its_last_allowed_attempt(queue, clock):
    job = queue.enqueue(ACME, "embed")
    for attempt in range(1, 6):
        failed = queue.fail(queue.lease_next(ACME, worker_id="w"), f"error {attempt}")
        assert failed.attempts == attempt
        assert failed.state == (JobState.DEAD if attempt == 5 else JobState.PENDING)
        clock.advance(secs=3600)
    assert (failed.job_id, failed.dead_reason, failed.not_before) == (job.job_id, "attempts", None)
    assert (failed.worker_id, failed.lease_deadline) == (None, None)
    assert failed.events[-1][1:3] == ("dead", "error 5")
    assert queue.lease_next(ACME, worker_id="w") is None


@pytest.mark.parametrize("ceiling", [1, 2, 7])
def test_a_job_may_have_a_ceiling_of_its_own(queue, clock, ceiling):
    queue.enqueue(ACME, "embed", max_attempts=ceiling)
    attempts = 0
    while lease := queue.lease_next(ACME, worker_id="w"):
        attempts = queue.fail(lease, "error").attempts
        clock.advance(secs=3600)
    assert attempts == ceiling
    assert queue.counts(ACME)[JobState.DEAD] == 1


def test_the_ceiling_of_the_settings_is_the_default(make_queue):
    queue = make_queue(max_attempts=1)
    queue.enqueue(ACME, "embed")
    assert queue.fail(queue.lease_next(ACME, worker_id="w"), "error").dead_reason == "attempts"


def test_an_error_that_is_not_retryable_ends_the_job_at_once(queue):
    queue.enqueue(ACME, "embed")
    dead = queue.fail(queue.lease_next(ACME, worker_id="w"), "not a PDF", retryable=False)
    assert (dead.state, dead.attempts, dead.dead_reason) == (JobState.DEAD, 1, "not_retryable")
    assert dead.events[-1][1:3] == ("dead", "not a PDF")


def test_giving_back_counts_no_attempt(queue, clock):  # Q13
    job = queue.enqueue(ACME, "embed", max_attempts=1)
    given_back = queue.release(queue.lease_next(ACME, worker_id="w"))
    assert (given_back.state, given_back.attempts, given_back.not_before) == (JobState.PENDING, 0, None)
    assert given_back.events[-1][1:3] == ("released", None)
    assert queue.lease_next(ACME, worker_id="w2").job_id == job.job_id


def test_giving_back_for_later_closes_a_gate(queue, clock):
    queue.enqueue(ACME, "embed")
    given_back = queue.release(queue.lease_next(ACME, worker_id="w"), delay_secs=2.5)
    assert given_back.not_before == clock() + 2_500_000
    assert queue.lease_next(ACME, worker_id="w") is None
    clock.advance(secs=2.5)
    assert queue.lease_next(ACME, worker_id="w").attempts == 0


def test_every_way_to_lose_an_attempt_leads_to_the_ceiling(queue, clock):  # Q20
    queue.enqueue(ACME, "embed", max_attempts=4)
    for turn in range(4):
        queue.release(queue.lease_next(ACME, worker_id="w"))
        lease = queue.lease_next(ACME, worker_id="w")
        if turn % 2:
            queue.fail(lease, "error")
        else:
            clock.set_us(lease.lease_deadline)
            queue.reap_expired()
        clock.advance(secs=3600)
    dead = queue.get(ACME, lease.job_id)
    assert (dead.state, dead.attempts, dead.crashes, dead.dead_reason) == (JobState.DEAD, 4, 2, "attempts")


def test_a_long_error_keeps_its_beginning_and_its_end(queue):
    queue.enqueue(ACME, "embed")
    error = "BEGIN" + "é" * 9000 + "END"
    detail = queue.fail(queue.lease_next(ACME, worker_id="w"), error).events[-1].detail
    assert detail.startswith("BEGIN")
    assert detail.endswith("END")
    assert len(detail.encode()) <= 4096


def test_only_a_dead_job_can_be_retried(queue, refused):
    job = queue.enqueue(ACME, "embed")
    with refused(queue, InvalidTransition):
        queue.retry(ACME, job.job_id)
