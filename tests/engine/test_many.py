"""Verbs on many jobs: one outcome each, or all or nothing."""

from __future__ import annotations

import pytest

from telha_queue.errors import InvalidArgument, InvalidType, JobNotFound, LeaseConflict
from telha_queue.job import JobSpec, JobState, Lease
from telha_queue.scope import Scope

ACME = Scope.named("acme")
OTHER = Scope.named("other")


@pytest.fixture
def leases(queue):
    """Three leases of "w": the second is lost, its job is leased by "v"."""
    queue.enqueue_many(ACME, [JobSpec("embed", bytes([n])) for n in range(3)])
    held = queue.lease_many(ACME, 3, worker_id="w")
    queue.release(held[1])
    queue.lease_next(ACME, worker_id="v")
    return held


CALLS = {
    "extend_many": lambda queue, leases, **how: queue.extend_many(leases, lease_ttl_secs=600, **how),
    "complete_many": lambda queue, leases, **how: queue.complete_many(leases, **how),
    "fail_many": lambda queue, leases, **how: queue.fail_many([(lease, "boom") for lease in leases], **how),
}


@pytest.fixture(params=CALLS)
def many(request):
    return CALLS[request.param]


def test_each_has_its_own_outcome(queue, leases, many):
    gone = Lease(ACME, queue.enqueue(OTHER, "x").job_id, "w", 1)
    outcomes = many(queue, [*leases, gone])
    assert [type(outcome) for outcome in outcomes[1::2]] == [LeaseConflict, JobNotFound]
    for lease, job in zip(leases[::2], outcomes[::2], strict=True):
        assert job.job_id == lease.job_id
        assert queue.get(ACME, job.job_id).value == job.value != lease.value


def test_all_or_nothing(queue, leases, many, refused):
    with refused(queue, LeaseConflict) as caught:
        many(queue, leases, atomic=True)
    assert caught.value.job_id == leases[1].job_id
    with refused(queue, JobNotFound):
        many(queue, [leases[0], Lease(OTHER, leases[2].job_id, "w", 1)], atomic=True)
    assert [job.job_id for job in many(queue, leases[::2], atomic=True)] == [lease.job_id for lease in leases[::2]]


def test_after_nothing_was_done_the_jobs_are_as_they_were(queue, leases, many):
    with pytest.raises(LeaseConflict):
        many(queue, leases, atomic=True)
    assert queue.complete(leases[0]).state == JobState.COMPLETED
    assert queue.lease_next(ACME, worker_id="u") is None


def test_one_that_stands_twice_is_judged_twice(queue, leases):
    first, second = queue.complete_many([leases[0], leases[0]])
    assert first.state == JobState.COMPLETED
    assert isinstance(second, LeaseConflict)
    twice = queue.extend_many([leases[2], leases[2]])
    assert [job.events[-1].count for job in twice] == [1, 2]


def test_none_are_none(queue, many):
    assert many(queue, []) == []
    assert many(queue, [], atomic=True) == []


def test_heartbeats_move_the_deadlines(queue, leases, clock):
    clock.advance(secs=1)
    extended = queue.extend_many(leases[::2], lease_ttl_secs=1000)
    assert [job.lease_deadline for job in extended] == [clock() + 10**9] * 2
    by_lease = queue.extend_many(leases[:1])
    assert by_lease[0].lease_deadline == extended[0].lease_deadline


def test_failures_say_each_their_own(queue, leases):
    failed = queue.fail_many([(leases[0], "no such file"), (leases[2], "x" * 9000)])
    assert [job.state for job in failed] == [JobState.PENDING] * 2
    assert failed[0].last_error == "no such file"
    assert "[cut here]" in failed[1].last_error
    clock_gate = [job.not_before for job in failed]
    assert all(clock_gate)
    assert queue.lease_next(ACME, worker_id="w") is None


def test_failures_for_good(queue, leases):
    failed = queue.fail_many([(leases[0], "no")], retryable=False)
    assert (failed[0].state, failed[0].dead_reason) == (JobState.DEAD, "not_retryable")


@pytest.mark.parametrize("bad", [None, 5, "ab", [5], ["ab"], [("x", "y")], [(None, "y")], [()], [[1, 2]]], ids=repr)
def test_failures_are_pairs(queue, leases, refused, bad):
    with refused(queue, InvalidArgument):
        queue.fail_many(bad)


def test_a_failure_without_text_says_which(queue, leases, refused):
    with refused(queue, InvalidType) as caught:
        queue.fail_many([(leases[0], "x"), (leases[2], None)])
    assert str(caught.value).startswith("failure 1: error is a str")


@pytest.mark.parametrize("atomic", [None, 1, "yes"])
def test_atomic_is_a_bool(queue, leases, many, refused, atomic):
    with refused(queue, InvalidType):
        many(queue, leases, atomic=atomic)


# lease_many within bytes


def test_payloads_of_a_batch_stay_within_bytes(queue):
    queue.enqueue_many(ACME, [JobSpec("x", bytes(n)) for n in (30, 30, 30, 5000, 1)])
    sizes = [
        [job.payload_bytes for job in queue.lease_many(ACME, 9, worker_id="w", max_bytes=bound)]
        for bound in (60, 29, 100, 10**6)
    ]
    assert sizes == [[30, 30], [30], [5000], [1]]  # the first is leased whatever its size


def test_what_was_too_much_is_still_next(queue):
    jobs = queue.enqueue_many(ACME, [JobSpec("x", bytes(10)) for _ in range(6)])
    for _ in range(2):
        leased = queue.lease_many(ACME, 6, worker_id="w", max_bytes=25)
        for lease in leased:
            queue.release(lease)
    order = [queue.lease_next(ACME, worker_id="w").job_id for _ in jobs]
    assert order == [job.job_id for job in jobs]


@pytest.mark.parametrize("bad", [-1, True, 1.5, "1", 2**63])
def test_bytes_are_a_whole_number(queue, refused, bad):
    with refused(queue, InvalidArgument):
        queue.lease_many(ACME, 2, worker_id="w", max_bytes=bad)
