"""Waiting for the end of a job: the finished job, or an error that says why not; and nobody sleeps beside an end."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from uuid import UUID

import pytest
from watched import LONG_SECS, SOON_SECS, Watched, interrupted

from telha_queue.errors import JobNotFound, NotEnded, StoreClosed
from telha_queue.job import JobSpec, JobState
from telha_queue.queue import Queue
from telha_queue.scope import Scope

ACME = Scope.named("acme")
OTHER = Scope.named("other")


@pytest.fixture
def watched(engine):
    return Watched(engine)


@pytest.fixture
def queue(watched, clock):
    return Queue(watched, None, clock)


@pytest.fixture
def lease(queue):
    """The lease of a job that is dead at its first loss."""
    queue.enqueue(ACME, "embed", max_attempts=1)
    return queue.lease_next(ACME, worker_id="w")


@pytest.fixture
def waiting(queue, watched):
    """waiting(job): wait for its end in a thread; returns the Future once that sleeps."""
    pool = ThreadPoolExecutor(32)

    def start(job) -> Future:
        future = pool.submit(queue.wait, ACME, job.job_id, LONG_SECS)
        assert watched.asleep.acquire(timeout=SOON_SECS)
        return future

    yield start
    queue.close()
    pool.shutdown()


def reap(queue, clock, lease):
    clock.set_us(lease.lease_deadline)
    assert queue.reap_expired().dead == 1


ENDS = {
    "complete": (lambda queue, clock, lease: queue.complete(lease, result=b"r" * 5000), JobState.COMPLETED),
    "complete_many": (lambda queue, clock, lease: queue.complete_many([lease]), JobState.COMPLETED),
    "complete_and_lease": (lambda queue, clock, lease: queue.complete_and_lease(lease), JobState.COMPLETED),
    "fail": (lambda queue, clock, lease: queue.fail(lease, "error"), JobState.DEAD),
    "fail_many": (lambda queue, clock, lease: queue.fail_many([(lease, "error")]), JobState.DEAD),
    "reap": (reap, JobState.DEAD),
    "cancel": (lambda queue, clock, lease: queue.cancel(ACME, lease.job_id), JobState.DEAD),
}


@pytest.mark.parametrize(("end", "state"), ENDS.values(), ids=ENDS)
def test_every_end_wakes_the_waiter_and_is_what_it_returns(queue, clock, lease, waiting, end, state):
    future = waiting(lease)
    end(queue, clock, lease)
    job = future.result(SOON_SECS)
    assert (job.job_id, job.state) == (lease.job_id, state)
    assert job == queue.get(ACME, lease.job_id)


@pytest.mark.parametrize(("end", "state"), ENDS.values(), ids=ENDS)
def test_a_job_that_has_ended_is_not_waited_for(queue, clock, lease, watched, end, state):
    end(queue, clock, lease)
    assert queue.wait(ACME, lease.job_id, LONG_SECS).state == state
    assert watched.slept_us == []


def test_a_dead_job_is_returned_and_says_why(queue, lease):
    queue.fail(lease, "boom")
    job = queue.wait(ACME, lease.job_id, 0)
    assert (job.state, job.dead_reason, job.last_error) == (JobState.DEAD, "attempts", "boom")


def test_a_late_completion_wakes_who_waits_for_a_job_that_went_back(queue, clock, waiting):
    queue.enqueue(ACME, "embed")
    lease = queue.lease_next(ACME, worker_id="w")
    clock.set_us(lease.lease_deadline)
    assert queue.reap_expired().reclaimed == 1
    future = waiting(lease)
    queue.complete(lease, late="accept_if_unclaimed")
    assert future.result(SOON_SECS).state == JobState.COMPLETED


def test_all_who_wait_for_one_job_are_woken(queue, lease, waiting):
    futures = [waiting(lease) for _ in range(8)]
    queue.complete(lease)
    assert {future.result(SOON_SECS).state for future in futures} == {JobState.COMPLETED}


def test_a_waiter_sleeps_on_through_all_that_is_not_the_end_of_its_job(queue, watched, waiting):
    queue.enqueue_many(ACME, [JobSpec("embed")] * 300)
    mine, *others = queue.lease_many(ACME, 300, worker_id="w")
    future = waiting(mine)
    queue.complete_many(others)  # some of them are of its group of ids
    queue.extend(mine)
    queue.progress(mine, 0.5)
    queue.release(mine)
    mine = queue.lease_next(ACME, worker_id="w")
    assert not future.done()
    queue.complete(mine)
    assert future.result(SOON_SECS).job_id == mine.job_id


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.LEASED])
def test_a_wait_in_vain_ends_in_time_and_says_what_was_last_seen(queue, state):
    job = queue.enqueue(ACME, "embed")
    if state == JobState.LEASED:
        queue.lease_next(ACME, worker_id="w")
    started = time.monotonic()
    for secs in (0, 0.05):
        with pytest.raises(NotEnded) as caught:
            queue.wait(ACME, job.job_id, secs)
        assert (caught.value.job_id, caught.value.state, caught.value.waited_secs) == (job.job_id, state, secs)
    assert 0.05 <= time.monotonic() - started < SOON_SECS


def test_the_time_of_a_wait_is_real_whatever_the_clock_says(queue, clock, lease, watched, waiting):
    future = waiting(lease)
    clock.advance(secs=10 * LONG_SECS)  # which makes it look again
    assert watched.asleep.acquire(timeout=SOON_SECS)
    assert not future.done()
    queue.complete(lease)
    assert future.result(SOON_SECS).state == JobState.COMPLETED


def test_an_unknown_job_and_one_of_another_scope_are_not_found(queue, lease):
    for scope, job_id in ((ACME, UUID(int=7)), (OTHER, lease.job_id)):
        with pytest.raises(JobNotFound):
            queue.wait(scope, job_id, LONG_SECS)


def test_closing_ends_every_wait(queue, lease, waiting):
    futures = [waiting(lease) for _ in range(3)]
    queue.close()
    for future in futures:
        with pytest.raises(StoreClosed):
            future.result(SOON_SECS)


def test_a_wait_goes_on_when_the_store_is_opened_again_beneath(queue, lease, watched, waiting):
    future = waiting(lease)
    queue.reopen()
    queue.complete(lease)
    assert future.result(SOON_SECS).state == JobState.COMPLETED


def test_an_end_between_the_look_and_the_sleep_is_not_slept_beside(engine, clock):
    class Late(Watched):
        """Its jobs end when somebody has looked and is about to sleep."""

        def wait_ended(self, *arguments):
            plain.complete(lease)
            super().wait_ended(*arguments)

    plain, queue = Queue(engine, None, clock), Queue(Late(engine), None, clock)
    plain.enqueue(ACME, "embed")
    lease = plain.lease_next(ACME, worker_id="w")
    started = time.monotonic()
    assert queue.wait(ACME, lease.job_id, LONG_SECS).state == JobState.COMPLETED
    assert time.monotonic() - started < SOON_SECS


def test_a_job_that_was_retried_before_its_death_was_seen_is_waited_for_again(engine, clock):
    class Slow(Watched):
        """Whoever has slept here finds that more has happened since it was woken."""

        def wait_ended(self, *arguments):
            dead = queue.fail(queue.lease_next(ACME, worker_id="w"), "error", retryable=False)
            super().wait_ended(*arguments)
            queue.retry(ACME, dead.job_id)

    slow = Slow(engine)
    queue = Queue(engine, None, clock)
    job = queue.enqueue(ACME, "embed")
    with pytest.raises(NotEnded) as caught:
        Queue(slow, None, clock).wait(ACME, job.job_id, 0.2)
    assert caught.value.state == JobState.PENDING
    assert len(slow.slept_us) > 1


def test_no_waiter_misses_an_end_that_comes_as_it_falls_asleep(engine, clock):
    queue = Queue(engine, None, clock)
    jobs = queue.enqueue_many(ACME, [JobSpec("embed")] * 400)
    barrier = threading.Barrier(8)

    def work():
        barrier.wait()
        while (lease := queue.lease_next(ACME, worker_id="w")) is not None:
            queue.complete(lease)

    def wait(mine):
        barrier.wait()
        return [queue.wait(ACME, job.job_id, LONG_SECS).state for job in mine]

    started = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        waits = [pool.submit(wait, jobs[first::6]) for first in range(6)]
        works = [pool.submit(work) for _ in range(2)]
        states = [state for future in waits for state in future.result(LONG_SECS)]
        assert [future.result(LONG_SECS) for future in works] == [None, None]
    assert states == [JobState.COMPLETED] * 400
    assert time.monotonic() - started < LONG_SECS


def test_ctrl_c_ends_a_wait(queue, lease, watched):
    interrupted(watched, lambda: queue.wait(ACME, lease.job_id, LONG_SECS))
    assert queue.get(ACME, lease.job_id).state == JobState.LEASED
