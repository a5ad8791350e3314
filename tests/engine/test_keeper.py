"""A keeper of leases: what it renews, and when it stops, with a native thread and without one."""

from __future__ import annotations

import threading
from itertools import count

import pytest

from telha_queue.errors import StorageError
from telha_queue.job import JobRecord, JobState, Lease
from telha_queue.scope import Scope

ACME = Scope.named("acme")
NEVER_SECS = 86_400


@pytest.fixture
def queue(kept_queue):
    return kept_queue


def test_a_kept_lease_is_renewed_after_a_third_of_its_ttl_again_and_again(
    queue, keeper, take, until, passing, renewals
):
    [lease] = take(1)
    [held] = keeper.hold([lease], timeout_secs=NEVER_SECS)
    until(lambda: renewals(lease) >= 3)
    job = queue.find(lease.job_id)
    [first] = [event for event in job.events if event.transition == "extended"]
    third_us = round(passing.ttl_secs * 1_000_000) // 3
    assert first.at - job.created_at >= third_us
    assert first.last_at - first.at >= 2 * third_us
    assert job.lease_deadline == first.last_at + job.lease_ttl_us
    assert held.over is None
    assert queue.complete(lease).state == JobState.COMPLETED


def test_a_lease_that_does_not_say_when_it_ends_is_renewed_at_once(queue, keeper, renewals):
    queue.enqueue(ACME, "embed")
    lease = queue.lease_next(ACME, worker_id="w", lease_ttl_secs=NEVER_SECS)
    keeper.hold([Lease(ACME, lease.job_id, "w", lease.lease_generation)])
    while not renewals(lease):
        threading.Event().wait(0.002)
    assert renewals(lease) == 1


def test_many_are_kept_and_more_than_one_call_takes(queue, keeper, take, until, renewals):
    leases = take(1000) + take(500)
    keeper.hold(leases[:1000], timeout_secs=NEVER_SECS)
    keeper.hold(iter(leases[1000:]), timeout_secs=NEVER_SECS)
    until(lambda: all(renewals(lease) for lease in leases[::100]))
    assert all(isinstance(outcome, JobRecord) for outcome in queue.complete_many(leases[:1000]))


@pytest.mark.parametrize("end", ["release", "fail", "complete elsewhere"])
def test_a_lease_that_somebody_else_has_ended_is_lost(queue, keeper, take, found, end):
    [lease, _] = take(2)
    [held] = keeper.hold([lease])
    if end == "fail":
        queue.fail(lease, "operator", retryable=False)
    else:
        queue.release(lease)
        again = queue.lease_next(ACME, worker_id="v", lease_ttl_secs=NEVER_SECS)
        assert again.job_id == lease.job_id
        if end == "complete elsewhere":
            queue.complete(again)
    assert found(1) == [held]
    assert held.over == "lost"
    assert keeper.wait(0) == []


def test_a_job_that_its_holder_completed_is_not_lost(queue, keeper, take, found, until):
    completed, released = take(2)
    mine, other = keeper.hold([completed, released])
    queue.complete(completed)
    until(lambda: mine.over)
    queue.release(released)
    assert found(1) == [other]
    assert (mine.over, other.over) == ("ended", "lost")


@pytest.mark.parametrize("bound", ["timeout", "stalled"])
def test_a_hold_at_its_bound_is_renewed_no_more_and_told_once(keeper, take, found, until, bound, passing, renewals):
    bounded, other = take(2)
    secs = {"timeout": "timeout_secs", "stalled": "progress_secs"}[bound]
    [held] = keeper.hold([bounded], **{"timeout_secs": NEVER_SECS, secs: 2 * passing.ttl_secs})
    keeper.hold([other], timeout_secs=NEVER_SECS)
    assert found(1) == [held]
    assert held.over == bound
    until(lambda: renewals(other) > 0)
    before = renewals(bounded), renewals(other)
    until(lambda: renewals(other) >= before[1] + 3)
    assert renewals(bounded) == before[0]
    held.progress()
    assert held.over == bound
    assert keeper.wait(0) == []


@pytest.mark.parametrize("passing", ["turned"], indirect=True)
def test_a_hold_that_makes_progress_does_not_stall(keeper, take, found, passing):
    idle, busy = keeper.hold(take(2), timeout_secs=10 * NEVER_SECS, progress_secs=NEVER_SECS)
    passing.clock.advance(secs=NEVER_SECS * 0.9)
    busy.progress()
    passing.clock.advance(secs=NEVER_SECS * 0.2)
    assert found(1) == [idle]
    assert (idle.over, busy.over) == ("stalled", None)


def test_what_was_ended_is_renewed_no_more_and_never_told(queue, keeper, take, found, until, renewals):
    ended, lost, other = take(3)
    holds = keeper.hold([ended, lost], timeout_secs=NEVER_SECS)
    keeper.hold([other], timeout_secs=NEVER_SECS)
    queue.release(lost)
    until(lambda: holds[1].over)
    keeper.end(holds)
    assert [held.over for held in holds] == ["ended", "lost"]
    before = renewals(ended)
    count_before = renewals(other)
    until(lambda: renewals(other) >= count_before + 3)
    assert renewals(ended) <= before + 1  # one may have been under way
    assert keeper.wait(0) == []
    keeper.end(holds)
    queue.release(other)
    assert len(found(1)) == 1


@pytest.mark.parametrize("passing", ["turned"], indirect=True)
def test_a_renewal_that_the_disk_refuses_is_tried_again_and_costs_no_lease(queue, keeper, take, until, renewals):
    extend_many, tries = queue._engine.extend_many, count()

    class Failing:
        def __getattr__(self, name, engine=queue._engine):
            return getattr(engine, name)

        def extend_many(self, *arguments):
            if next(tries) < 40:  # long after the deadline
                raise StorageError("the disk is gone")
            return extend_many(*arguments)

    [lease] = take(1)
    queue._engine = Failing()
    [held] = keeper.hold([lease], timeout_secs=NEVER_SECS)
    until(lambda: renewals(lease) >= 2)
    assert held.over is None
    assert queue.find(lease.job_id).events[-1].at > lease.lease_deadline


def test_a_clock_that_is_moved_during_a_renewal_and_then_stands_brings_about_the_next(make_queue, clock, monkeypatch):
    queue = make_queue(lease_ttl_secs=60)
    queue.enqueue(ACME, "embed")
    lease = queue.lease_next(ACME, worker_id="w")
    extend_many, moved = queue.extend_many, threading.Event()

    def slow(leases):
        outcomes = extend_many(leases)
        if not moved.is_set():
            moved.set()
            clock.advance(secs=30)
        return outcomes

    monkeypatch.setattr(queue, "extend_many", slow)
    queue.keeper().hold([lease])
    clock.advance(secs=30)
    for _ in range(10_000):
        if queue.get(ACME, lease.job_id).lease_deadline == clock() + 60_000_000:
            break
        threading.Event().wait(0.002)
    assert queue.get(ACME, lease.job_id).lease_deadline == clock() + 60_000_000
    assert moved.is_set()
