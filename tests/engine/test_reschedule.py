"""Another priority, another time: a pending job moves in line, and is found wherever it stands."""

from __future__ import annotations

import threading
from uuid import UUID

import pytest

from telha_queue.errors import InvalidArgument, InvalidTransition, JobNotFound, LeaseConflict
from telha_queue.job import JobSpec, JobState
from telha_queue.scope import Scope

ACME = Scope.named("acme")
OTHER = Scope.named("other")


def leased(queue, **how):
    """The payloads of all jobs that are due, in the order in which they are leased."""
    found = []
    while lease := queue.lease_next(ACME, worker_id="w", **how):
        found.append(lease.payload)
    return found


def fill(queue, *payloads, **how):
    return {payload: queue.enqueue(ACME, "embed", payload, **how).job_id for payload in payloads}


def warm(queue):
    """Have whatever remembers who is next know all jobs."""
    queue.release(queue.lease_next(ACME, worker_id="w"))
    queue.release(queue.lease_next_any(worker_id="w"))


def test_a_job_stands_at_its_new_priority_by_its_old_age(queue):
    first = fill(queue, b"a", b"b", b"c", priority=5)
    last = fill(queue, b"d", b"e", priority=9)
    warm(queue)
    moved = queue.reschedule(ACME, first[b"b"], priority=9)
    assert (moved.priority, moved.state) == (9, JobState.PENDING)
    assert moved.events[-1][1:3] == ("rescheduled", "priority 9")
    queue.reschedule(ACME, last[b"e"], priority=0)
    assert leased(queue) == [b"e", b"a", b"c", b"b", b"d"]


def test_it_is_found_by_its_id_whatever_its_priority_was(queue, reopen):
    job = queue.enqueue(ACME, "embed", b"p" * 5000, idempotency_key="once")
    for priority in (5, 255, 0, 0, 128):
        moved = queue.reschedule(ACME, job.job_id, priority=priority)
        assert queue.get(ACME, job.job_id) == queue.find(job.job_id) == moved
        assert queue.enqueue(ACME, "embed", idempotency_key="once") == moved
        assert queue.list() == [moved]
        assert moved.payload == b"p" * 5000
    moved = queue.reschedule(ACME, job.job_id, priority=3)
    queue = reopen(queue)
    assert queue.find(job.job_id) == moved
    assert queue.lease_next(ACME, worker_id="w").priority == 3


def test_a_gate_can_be_moved_both_ways_and_opened(queue, clock):
    job = fill(queue, b"x", delay_secs=60)[b"x"]
    assert leased(queue) == []
    later = queue.reschedule(ACME, job, delay_secs=120)
    assert (later.not_before, later.events[-1].detail) == (clock() + 120_000_000, "due in 120 s")
    clock.advance(secs=60)
    assert leased(queue) == []
    assert queue.reschedule(ACME, job, not_before=clock() + 500_000).events[-1].detail == "due in 0.5 s"
    clock.advance(secs=0.5)
    assert leased(queue) == [b"x"]


@pytest.mark.parametrize("how", [{"delay_secs": 0}, {"not_before": 0}])
def test_a_job_can_be_made_due_now(queue, how):
    job = fill(queue, b"x", delay_secs=60)[b"x"]
    assert leased(queue) == []
    now = queue.reschedule(ACME, job, **how)
    assert (now.not_before, now.events[-1].detail) == (None, "due now")
    assert leased(queue) == [b"x"]


def test_a_job_that_is_due_can_be_put_off(queue, clock):
    jobs = fill(queue, b"a", b"b")
    warm(queue)
    queue.reschedule(ACME, jobs[b"a"], delay_secs=10)
    assert leased(queue) == [b"b"]
    clock.advance(secs=10)
    assert leased(queue) == [b"a"]


def test_both_at_once_are_one_event(queue, clock):
    jobs = fill(queue, b"a", b"b")
    moved = queue.reschedule(ACME, jobs[b"b"], priority=1, delay_secs=2.5)
    assert moved.events[-1] == (clock(), "rescheduled", "priority 1, due in 2.5 s", 1, None)
    clock.advance(secs=2.5)
    assert leased(queue) == [b"b", b"a"]


def test_a_priority_alone_keeps_the_gate(queue, clock):
    jobs = fill(queue, b"a", b"b", delay_secs=10)
    assert leased(queue) == []
    assert queue.reschedule(ACME, jobs[b"b"], priority=1).not_before == clock() + 10_000_000
    assert leased(queue) == []
    clock.advance(secs=10)
    assert leased(queue) == [b"b", b"a"]


@pytest.mark.parametrize("state", [JobState.LEASED, JobState.COMPLETED, JobState.DEAD])
def test_only_a_pending_job_can_be_rescheduled(queue, refused, state):
    job = queue.enqueue(ACME, "embed")
    lease = queue.lease_next(ACME, worker_id="w")
    if state == JobState.COMPLETED:
        queue.complete(lease)
    if state == JobState.DEAD:
        queue.cancel(ACME, job.job_id)
    with refused(queue, InvalidTransition) as caught:
        queue.reschedule(ACME, job.job_id, priority=1)
    assert (caught.value.verb, caught.value.state) == ("reschedule", state)


def test_a_job_of_another_scope_or_none_cannot_be_rescheduled(queue, refused):
    job = queue.enqueue(ACME, "embed")
    for scope, job_id in ((OTHER, job.job_id), (ACME, UUID(int=1))):
        with refused(queue, JobNotFound):
            queue.reschedule(scope, job_id, priority=1)


def test_something_has_to_change_and_only_one_time_is_given(queue, clock, refused):
    job = queue.enqueue(ACME, "embed")
    for how in ({}, {"not_before": clock(), "delay_secs": 1}):
        with refused(queue, InvalidArgument):
            queue.reschedule(ACME, job.job_id, **how)


def test_a_lease_from_before_is_refused_though_the_job_has_another_place(queue, refused):
    job = fill(queue, b"x")[b"x"]
    old = queue.lease_next(ACME, worker_id="w")
    queue.release(old)
    queue.reschedule(ACME, job, priority=1)
    lease = queue.lease_next(ACME, worker_id="w")
    with refused(queue, LeaseConflict):
        queue.complete(old)
    assert queue.extend(lease).lease_generation == 2
    assert queue.complete(lease).priority == 1


def test_whoever_waits_is_woken_by_a_job_that_becomes_due(queue, together):
    job = fill(queue, b"x", delay_secs=3600)[b"x"]

    def wait():
        return queue.lease_next(ACME, worker_id="w", wait_secs=20)

    lease, _ = together(wait, lambda: queue.reschedule(ACME, job, delay_secs=0))
    assert lease.payload == b"x"


def test_readers_find_a_job_at_any_moment_of_its_moves(queue, together):
    job = queue.enqueue(ACME, "embed")
    over = threading.Event()

    def move():
        for number in range(400):
            queue.reschedule(ACME, job.job_id, priority=number % 256)
        over.set()

    def read():
        found = 0
        while not over.is_set():
            assert queue.get(ACME, job.job_id).job_id == queue.find(job.job_id).job_id == job.job_id
            assert len(queue.list(ACME)) == 1
            found += 1
        return found

    together(move, read, read)
    assert queue.get(ACME, job.job_id).priority == 399 % 256


@pytest.mark.parametrize("how", ["in its time", "due now", "after a failure", "many"])
def test_a_gated_job_that_goes_back_in_line_is_leased_when_it_is_due(queue, clock, how):
    job = queue.enqueue(ACME, "embed", delay_secs=0 if how == "after a failure" else 5)
    lease = queue.lease_next(ACME, worker_id="w")  # whoever looks knows of the gate from now on
    if how == "after a failure":
        queue.fail(lease, "error", delay_secs=5)
        assert queue.lease_next(ACME, worker_id="w") is None
    queue.reschedule(ACME, job.job_id, priority=200, delay_secs=0 if how == "due now" else None)
    others = [queue.enqueue(ACME, "other", priority=190).job_id for _ in range(2)] if how == "many" else []
    clock.advance(secs=6)
    leased = [lease.job_id for lease in queue.lease_many(ACME, 10, worker_id="w")]
    assert leased == [*others, job.job_id]


def test_a_gated_job_that_goes_back_in_line_is_met_by_one_of_many_workers(queue, clock, together):
    jobs = [job.job_id for job in queue.enqueue_many(ACME, [JobSpec("embed", delay_secs=5)] * 50)]
    assert queue.lease_next(ACME, worker_id="w") is None
    for job in jobs:
        queue.reschedule(ACME, job, priority=200)
    clock.advance(secs=6)

    def work():
        leases = []
        while lease := queue.lease_next(ACME, worker_id="w"):
            leases.append(lease.job_id)
        return leases

    leased = together(work, work, work)
    assert sorted([*leased[0], *leased[1], *leased[2], *leased_ids(queue)]) == sorted(jobs)


def test_jobs_that_move_while_they_are_leased_are_leased_once_each(queue, together):
    jobs = [job.job_id for job in queue.enqueue_many(ACME, [JobSpec("embed")] * 300)]

    def work():
        done = []
        while lease := queue.lease_next(ACME, worker_id="w"):
            done.append(queue.complete(lease).job_id)
        return done

    def move():
        moved = 0
        for number, job in enumerate(reversed(jobs)):
            try:
                queue.reschedule(ACME, job, priority=number % 7)
                moved += 1
            except InvalidTransition:
                pass
        return moved

    *done, moved = together(work, work, move)
    assert sorted([*done[0], *done[1], *leased_ids(queue)]) == jobs
    assert moved <= len(jobs)


def leased_ids(queue):
    """What was on its way from one place to another when the workers looked for the last time."""
    return [lease.job_id for lease in queue.lease_many(ACME, 1000, worker_id="w")]
