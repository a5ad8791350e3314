"""Time: it never runs backwards for a queue, and its ends do no harm."""

from __future__ import annotations

import pytest

from telha_queue.errors import LeaseConflict
from telha_queue.job import JobState
from telha_queue.queue import Queue
from telha_queue.scope import Scope
from telha_queue.testing import START_US, ManualClock

ACME = Scope.named("acme")
HOUR_US = 3_600_000_000
LAST_US = 2**63 - 1


def test_a_clock_set_back_does_not_reorder(queue, clock):
    jobs = []
    for step_us in (0, -HOUR_US, -24 * HOUR_US, 5, HOUR_US):
        clock.set_us(clock() + step_us)
        jobs.append(queue.enqueue(ACME, "embed"))
    created = [job.created_at for job in jobs]
    assert created == sorted(set(created))
    assert [queue.lease_next(ACME, worker_id="w").job_id for _ in jobs] == [job.job_id for job in jobs]


def test_a_clock_set_back_keeps_an_expired_lease_expired(queue, clock):
    queue.enqueue(ACME, "embed")
    lease = queue.lease_next(ACME, worker_id="w")
    clock.set_us(lease.lease_deadline)
    queue.counts()
    assert queue.lease_next(ACME, worker_id="w") is None  # the queue has seen this time
    clock.advance_us(-HOUR_US)
    assert queue.reap_expired().reclaimed == 1


def test_a_clock_set_back_keeps_an_open_gate_open(queue, clock):  # D13
    job = queue.enqueue(ACME, "embed", delay_secs=60)
    other = queue.enqueue(ACME, "embed", priority=0)
    clock.advance(secs=60)
    assert queue.lease_next(ACME, worker_id="w").job_id == other.job_id
    clock.advance_us(-HOUR_US)
    assert queue.lease_next(ACME, worker_id="w").job_id == job.job_id


def test_a_clock_set_back_expires_nothing_twice(queue, clock):
    queue.enqueue(ACME, "embed")
    clock.set_us(queue.lease_next(ACME, worker_id="w").lease_deadline)
    assert queue.reap_expired().reclaimed == 1
    clock.advance_us(-HOUR_US)
    assert queue.reap_expired().reclaimed == 0
    assert queue.lease_next(ACME, worker_id="w") is None
    clock.set_us(START_US + 300_000_000 + 10_000_000)
    lease = queue.lease_next(ACME, worker_id="w")
    assert lease.lease_deadline == clock() + 300_000_000
    assert queue.reap_expired().reclaimed == 0


def test_a_trail_written_over_a_step_back_stays_in_order(queue, clock):
    queue.enqueue(ACME, "embed")
    lease = queue.lease_next(ACME, worker_id="w")
    clock.advance_us(-HOUR_US)
    queue.extend(lease)
    job = queue.complete(lease)
    assert [event.at for event in job.events] == [START_US] * 4


def test_a_clock_that_stands_still_does_no_harm(queue):
    queue.enqueue(ACME, "embed")
    lease = queue.lease_next(ACME, worker_id="w")
    assert queue.extend(lease).lease_deadline == lease.lease_deadline
    assert queue.reap_expired().reclaimed == 0
    assert queue.fail(lease, "error").not_before == START_US + 10_000_000


def test_a_leap_forward_expires_leases_and_fencing_holds(queue, clock, refused):
    queue.enqueue(ACME, "embed")
    lease = queue.lease_next(ACME, worker_id="w")
    clock.advance(secs=10 * 365 * 24 * 3600)
    assert queue.reap_expired().reclaimed == 1
    with refused(queue, LeaseConflict):
        queue.complete(lease)


def test_a_clock_set_back_while_the_queue_was_closed_goes_on_from_the_latest_job(queue, clock, reopen):
    first = queue.enqueue(ACME, "embed")
    clock.advance(secs=100)
    lease = queue.lease_next(ACME, worker_id="w", lease_ttl_secs=60)
    clock.set_us(START_US - 24 * HOUR_US)
    queue = reopen(queue)
    second = queue.enqueue(ACME, "embed")
    assert second.created_at > first.created_at
    assert second.events[0].at >= lease.events[-1].at
    clock.set_us(lease.lease_deadline)
    assert queue.reap_expired().reclaimed == 1


def test_created_at_goes_on_growing_after_a_restart_in_one_tick(queue, reopen):
    created = [queue.enqueue(ACME, "embed").created_at for _ in range(50)]
    queue = reopen(queue)
    created += [queue.enqueue(ACME, "embed").created_at for _ in range(50)]
    assert created == list(range(START_US, START_US + 100))


def live(queue):
    """Put a job through every verb."""
    job = queue.enqueue(ACME, "embed", max_attempts=2)
    lease = queue.lease_next(ACME, worker_id="w")
    queue.extend(lease)
    queue.checkpoint(lease, b"x")
    queue.stats(lease, "line")
    queue.release(lease)
    lease = queue.lease_next(ACME, worker_id="w")
    failed = queue.fail(lease, "error", retryable=False)
    queue.retry(ACME, job.job_id)
    queue.reap_expired()
    return failed, queue.complete(queue.lease_next(ACME, worker_id="w"))


@pytest.mark.parametrize("start_us", [0, 1, 999, START_US])
def test_every_verb_works_at_any_time_of_the_past(engine, start_us):
    clock = ManualClock(start_us)
    queue = Queue(engine, None, clock)
    _, done = live(queue)
    assert (done.state, done.created_at) == (JobState.COMPLETED, max(start_us, 1))
    assert {event.at for event in done.events} == {start_us}


def test_the_end_of_time_overflows_nothing(engine):
    queue = Queue(engine, None, ManualClock(LAST_US))
    failed, done = live(queue)
    assert (failed.not_before, done.state) == (None, JobState.COMPLETED)
    assert done.created_at == LAST_US


def test_deadlines_and_gates_end_at_the_end_of_time(engine, clock):
    queue = Queue(engine, None, clock)
    queue.enqueue(ACME, "embed")
    clock.set_us(LAST_US - 5)
    lease = queue.lease_next(ACME, worker_id="w")
    assert lease.lease_deadline == LAST_US
    assert queue.extend(lease).lease_deadline == LAST_US
    assert queue.fail(lease, "error").not_before == LAST_US
    assert queue.lease_next(ACME, worker_id="w") is None
    clock.set_us(LAST_US)
    assert queue.lease_next(ACME, worker_id="w").lease_deadline == LAST_US
    assert queue.reap_expired().reclaimed == 1


def test_jobs_of_the_last_microsecond_are_kept(engine):
    queue = Queue(engine, None, ManualClock(LAST_US))
    jobs = {queue.enqueue(ACME, "embed").job_id for _ in range(3)}
    assert {queue.lease_next(ACME, worker_id="w").job_id for _ in range(3)} == jobs


def test_the_latest_time_is_what_the_jobs_bear_witness_to(engine, clock):
    assert engine.last_seen_us() == 0
    queue = Queue(engine, None, clock)
    clock.advance(secs=5)
    queue.enqueue(ACME, "embed")
    assert engine.last_seen_us() == clock()
    clock.advance(secs=5)
    lease = queue.lease_next(ACME, worker_id="w")
    queue.complete(lease)
    assert engine.last_seen_us() == clock()
