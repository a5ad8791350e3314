"""How an attempt failed: with a delay of the job's own, by running out of time, or by taking its process with it."""

from __future__ import annotations

import pytest

from telha_queue import Failure
from telha_queue.errors import InvalidArgument
from telha_queue.job import JobState
from telha_queue.scope import Scope

ACME = Scope.named("acme")
CAUSES = ("error", "timeout", "crash")


@pytest.fixture(params=["fail", "fail_many"])
def fail(request):
    """fail(queue, lease, **how): by either verb."""
    if request.param == "fail":
        return lambda queue, lease, **how: queue.fail(lease, "boom", **how)
    return lambda queue, lease, **how: queue.fail_many([Failure(lease, "boom", **how)])[0]


@pytest.fixture
def leased(clock):
    """leased(queue): lease the only job there is, which is enqueued if it has to be, once its gate is open."""

    def lease(queue, **spec):
        if not queue.list():
            queue.enqueue(ACME, "embed", **spec)
        [job] = queue.list()
        if job.not_before is not None:
            clock.set_us(job.not_before)
        return queue.lease_next(ACME, worker_id="w", lease_ttl_secs=1)

    return lease


def test_a_delay_takes_the_place_of_the_backoff(queue, clock, fail, leased):
    for delay_secs in (7200, 0.5):
        failed = fail(queue, leased(queue), delay_secs=delay_secs)
        assert (failed.state, failed.not_before) == (JobState.PENDING, clock() + delay_secs * 1_000_000)
        assert failed.events[-1][1:3] == ("failed", "boom")
    assert failed.attempts == 2
    assert fail(queue, leased(queue)).not_before == clock() + 160_000_000


def test_a_delay_of_zero_is_due_at_once(queue, fail, leased):
    assert fail(queue, leased(queue), delay_secs=0).not_before is None
    assert queue.lease_next(ACME, worker_id="w").attempts == 1


def test_whoever_always_asks_for_a_delay_is_dead_at_the_ceiling(make_queue, fail, leased):
    queue = make_queue(max_attempts=3)
    failed = [fail(queue, leased(queue), delay_secs=0) for _ in range(3)]
    assert [job.state for job in failed] == [JobState.PENDING, JobState.PENDING, JobState.DEAD]
    assert (failed[-1].dead_reason, failed[-1].not_before) == ("attempts", None)


def test_a_delay_does_not_keep_a_job_alive_that_is_not_to_be_retried(queue, fail, leased):
    dead = fail(queue, leased(queue), retryable=False, delay_secs=5)
    assert (dead.state, dead.dead_reason, dead.not_before) == (JobState.DEAD, "not_retryable", None)


@pytest.mark.parametrize(
    ("cause", "last", "reason"),
    [
        ("error", True, "attempts"),
        ("timeout", True, "timeout"),
        ("crash", True, "poison"),
        ("error", False, "not_retryable"),
        ("timeout", False, "timeout"),
        ("crash", False, "not_retryable"),
    ],
)
def test_the_cause_of_the_last_failure_is_in_the_reason(queue, fail, leased, cause, last, reason):
    lease = leased(queue, max_attempts=1 if last else 5)
    dead = fail(queue, lease, retryable=last, cause=cause)
    assert (dead.state, dead.dead_reason) == (JobState.DEAD, reason)
    assert (dead.attempts, dead.crashes) == (1, int(cause == "crash"))
    assert dead.events[-1][1:3] == ("dead", "boom")


@pytest.mark.parametrize("cause", CAUSES)
def test_a_failure_that_is_not_the_last_backs_off_whatever_its_cause(queue, clock, fail, leased, cause):
    failed = fail(queue, leased(queue), cause=cause)
    assert (failed.state, failed.dead_reason, failed.not_before) == (JobState.PENDING, None, clock() + 10_000_000)
    assert (failed.attempts, failed.crashes) == (1, int(cause == "crash"))
    assert failed.events[-1][1:3] == ("failed", "boom")


def test_crashes_that_were_told_and_crashes_that_were_found_add_up_to_poison(queue, clock, fail, leased):
    fail(queue, leased(queue, max_attempts=3), cause="crash")
    clock.set_us(leased(queue).lease_deadline)
    assert queue.reap_expired().reclaimed == 1
    dead = fail(queue, leased(queue), cause="crash")
    assert (dead.attempts, dead.crashes, dead.dead_reason) == (3, 3, "poison")
    assert queue.retry(ACME, dead.job_id).crashes == 0


def test_one_attempt_that_reported_back_makes_it_no_poison(queue, fail, leased):
    fail(queue, leased(queue, max_attempts=2))
    assert fail(queue, leased(queue), cause="crash").dead_reason == "attempts"


@pytest.mark.parametrize("told", [True, False], ids=["told", "reaped"])
@pytest.mark.parametrize("budget", [1, 2, 4])
def test_a_job_is_poison_at_the_crash_that_reaches_the_budget(make_queue, clock, fail, leased, budget, told):
    queue = make_queue(max_crashes=budget, max_attempts=9)
    fail(queue, leased(queue))
    for crash in range(1, budget + 1):
        lease = leased(queue)
        if told:
            fail(queue, lease, cause="crash")
        else:
            clock.set_us(lease.lease_deadline)
            queue.reap_expired()
        job = queue.get(ACME, lease.job_id)
        assert (job.state, job.crashes) == (JobState.DEAD if crash == budget else JobState.PENDING, crash)
    assert (job.dead_reason, job.attempts) == ("poison", budget + 1)
    assert queue.retry(ACME, job.job_id).crashes == 0
    assert fail(queue, leased(queue), cause="crash").crashes == 1


def test_a_budget_beyond_the_attempts_changes_nothing(make_queue, fail, leased):
    queue = make_queue(max_crashes=9, max_attempts=2)
    fail(queue, leased(queue))
    assert fail(queue, leased(queue), cause="crash").dead_reason == "attempts"


@pytest.mark.parametrize("cause", ["error", "timeout"])
def test_a_failure_that_is_no_crash_asks_for_no_budget(make_queue, fail, leased, cause):
    queue = make_queue(max_crashes=1)
    assert fail(queue, leased(queue), cause=cause).state == JobState.PENDING


def test_failures_of_many_say_each_their_own(queue, clock):
    for _ in range(4):
        queue.enqueue(ACME, "embed")
    leases = queue.lease_many(ACME, 4, worker_id="w")
    pair, at_once, dead, crashed = queue.fail_many(
        [
            (leases[0], "a"),
            Failure(leases[1], "b", delay_secs=0),
            Failure(leases[2], "c", False, cause="timeout"),
            Failure(leases[3], "d", cause="crash"),
        ]
    )
    assert [job.last_error for job in (pair, at_once, dead, crashed)] == ["a", "b", "c", "d"]
    assert [job.not_before for job in (pair, at_once, crashed)] == [clock() + 10_000_000, None, clock() + 10_000_000]
    assert (dead.dead_reason, crashed.crashes) == ("timeout", 1)


def test_the_default_for_pairs_is_not_for_failures_that_say_it_themselves(queue):
    for _ in range(2):
        queue.enqueue(ACME, "embed")
    leases = queue.lease_many(ACME, 2, worker_id="w")
    states = [job.state for job in queue.fail_many([(leases[0], "a"), Failure(leases[1], "b")], retryable=False)]
    assert states == [JobState.DEAD, JobState.PENDING]


@pytest.mark.parametrize(
    "how",
    [{"cause": bad} for bad in ("", "poison", "ERROR", None, 1, True, b"crash", ["crash"])]
    + [{"delay_secs": bad} for bad in (-1, float("nan"), 10**18, True, "5")]
    + [{"retryable": bad} for bad in (None, 1, "no")],
    ids=repr,
)
def test_a_bad_argument_is_refused_by_either_verb(queue, leased, fail, refused, how):
    lease = leased(queue)
    with refused(queue, InvalidArgument):
        fail(queue, lease, **how)
