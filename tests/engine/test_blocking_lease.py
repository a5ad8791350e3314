"""A lease that waits: woken by whatever makes a job ready, and by nothing else to the waiter's harm."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count

import pytest
from watched import LONG_SECS, SOON_SECS, Watched, interrupted

from telha_queue.errors import StoreClosed
from telha_queue.job import Exact, JobSpec, JobState
from telha_queue.queue import Queue
from telha_queue.scope import Scope
from telha_queue.testing import START_US

ACME = Scope.named("acme")
OTHER = Scope.named("other")


@pytest.fixture
def watched(engine):
    return Watched(engine)


@pytest.fixture
def queue(watched, clock):
    return Queue(watched, None, clock)


@pytest.fixture
def waiting(queue, watched):
    """waiting(call): run a call in a thread, until it sleeps; returns its Future."""
    pool = ThreadPoolExecutor(32)

    def start(call) -> Future:
        future = pool.submit(call)
        assert watched.asleep.acquire(timeout=SOON_SECS)
        return future

    yield start
    queue.close()
    pool.shutdown()


def lease(queue, kinds=None, scope=ACME, worker_id="waiter"):
    return lambda: queue.lease_next(scope, kinds, worker_id=worker_id, wait_secs=LONG_SECS)


def test_a_job_that_is_there_is_not_waited_for(queue):
    job = queue.enqueue(ACME, "embed")
    assert lease(queue)().job_id == job.job_id


def test_a_wait_of_nothing_returns_at_once(queue):
    assert queue.lease_next(ACME, worker_id="w", wait_secs=0.0) is None


def test_a_wait_in_vain_ends_in_time(queue):
    started = time.monotonic()
    assert queue.lease_next(ACME, worker_id="w", wait_secs=0.05) is None
    assert queue.lease_next_any(worker_id="w", wait_secs=0.05) is None
    assert queue.lease_many(ACME, 5, worker_id="w", wait_secs=0.05) == []
    assert 0.15 <= time.monotonic() - started < SOON_SECS


def test_enqueueing_wakes_the_waiter(queue, waiting):
    future = waiting(lease(queue))
    job = queue.enqueue(ACME, "embed")
    assert future.result(SOON_SECS).job_id == job.job_id


def test_a_batch_wakes_a_waiter_per_job(queue, waiting):
    futures = [waiting(lease(queue)) for _ in range(5)]
    jobs = queue.enqueue_many(ACME, [JobSpec("embed")] * 5)
    assert {future.result(SOON_SECS).job_id for future in futures} == {job.job_id for job in jobs}


def test_one_who_waits_for_any_scope_is_woken_by_every_scope(queue, waiting):
    for scope in (ACME, Scope.SYSTEM):
        future = waiting(lambda: queue.lease_next_any(worker_id="w", wait_secs=LONG_SECS))
        job = queue.enqueue(scope, "embed")
        assert future.result(SOON_SECS).job_id == job.job_id


def test_one_who_waits_for_many_gets_what_came(queue, waiting):
    future = waiting(lambda: queue.lease_many(ACME, 10, worker_id="w", wait_secs=LONG_SECS))
    jobs = queue.enqueue_many(ACME, [JobSpec("embed")] * 3)
    assert [job.job_id for job in future.result(SOON_SECS)] == [job.job_id for job in jobs]


def test_a_gate_that_opens_wakes_the_waiter(queue, clock, waiting):
    job = queue.enqueue(ACME, "embed", delay_secs=3600)
    future = waiting(lease(queue))
    clock.advance(secs=3600)
    assert future.result(SOON_SECS).job_id == job.job_id


def test_a_gate_is_waited_for_by_the_wall_clock_too(engine):
    queue = Queue(engine)
    job = queue.enqueue(ACME, "embed", delay_secs=0.05)
    started = time.monotonic()
    assert lease(queue)().job_id == job.job_id
    assert time.monotonic() - started < SOON_SECS


def test_a_nearer_gate_than_the_one_waited_for_counts(engine):
    queue = Queue(Watched(engine))
    queue.enqueue(ACME, "embed", delay_secs=3600)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(lease(queue))
        assert queue._engine.asleep.acquire(timeout=SOON_SECS)
        job = queue.enqueue(ACME, "embed", delay_secs=0.05)
        assert future.result(SOON_SECS).job_id == job.job_id


def test_a_gate_that_opens_between_the_look_and_the_sleep_is_not_slept_beside(engine):
    seconds = count(START_US, 1_000_000)
    queue = Queue(engine, None, lambda: next(seconds))  # whoever looks at this clock finds it a second later
    job = queue.enqueue(ACME, "embed", delay_secs=1.5)
    started = time.monotonic()
    assert queue.lease_next(ACME, worker_id="waiter", wait_secs=SOON_SECS).job_id == job.job_id
    assert time.monotonic() - started < SOON_SECS / 2


def test_a_retry_wakes_the_waiter(queue, waiting):
    queue.enqueue(ACME, "embed")
    dead = queue.fail(queue.lease_next(ACME, worker_id="w"), "error", retryable=False)
    future = waiting(lease(queue))
    queue.retry(ACME, dead.job_id)
    assert future.result(SOON_SECS).job_id == dead.job_id


def test_a_job_given_back_wakes_the_waiter(queue, waiting):
    queue.enqueue(ACME, "embed")
    held = queue.lease_next(ACME, worker_id="w")
    future = waiting(lease(queue))
    queue.release(held)
    assert future.result(SOON_SECS).lease_generation == 2


@pytest.mark.parametrize("how", ["fail", "reap"])
def test_a_lost_lease_wakes_the_waiter_when_its_backoff_is_over(queue, clock, waiting, how):
    queue.enqueue(ACME, "embed")
    held = queue.lease_next(ACME, worker_id="w", lease_ttl_secs=1)
    future = waiting(lease(queue))
    if how == "fail":
        queue.fail(held, "error")
    else:
        clock.advance(secs=1)
        queue.reap_expired()
    assert queue.get(ACME, held.job_id).state == JobState.PENDING
    clock.advance(secs=10)
    assert future.result(SOON_SECS).lease_generation == 2


def test_a_reaped_job_without_backoff_wakes_the_waiter_at_once(engines, clock):
    config = Queue(engines.open()).config.replace(backoff_base_secs=0)
    queue = Queue(Watched(engines.open(config)), config, clock)
    queue.enqueue(ACME, "embed")
    queue.lease_next(ACME, worker_id="w", lease_ttl_secs=1)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(lease(queue))
        assert queue._engine.asleep.acquire(timeout=SOON_SECS)
        clock.advance(secs=1)
        assert queue._engine.asleep.acquire(timeout=SOON_SECS)  # woken by the clock, for nothing
        assert queue.reap_expired().reclaimed == 1
        assert future.result(SOON_SECS).lease_generation == 2


def test_a_waiter_sleeps_on_through_what_it_does_not_want(queue, watched, waiting):
    future = waiting(lease(queue, Exact("embed")))
    queue.enqueue(ACME, "embedding")
    queue.enqueue(OTHER, "embed")
    queue.enqueue(ACME, "embed", delay_secs=3600)
    assert not future.done()
    job = queue.enqueue(ACME, "embed")
    assert future.result(SOON_SECS).job_id == job.job_id


def test_a_waiter_that_rejects_the_job_does_not_use_up_the_call(queue, waiting):
    rejecting = [waiting(lease(queue, "other")) for _ in range(8)]
    wanting = waiting(lease(queue, "embed"))
    rejecting += [waiting(lease(queue, "other")) for _ in range(8)]
    job = queue.enqueue(ACME, "embed")
    assert wanting.result(SOON_SECS).job_id == job.job_id
    assert not any(future.done() for future in rejecting)
    queue.enqueue_many(ACME, [JobSpec("other")] * 16)
    assert len({future.result(SOON_SECS).job_id for future in rejecting}) == 16


def test_closing_ends_every_wait(queue, waiting):
    futures = [waiting(lease(queue, scope=scope)) for scope in (ACME, OTHER)]
    futures.append(waiting(lambda: queue.lease_next_any("embed", worker_id="w", wait_secs=LONG_SECS)))
    queue.close()
    for future in futures:
        with pytest.raises(StoreClosed):
            future.result(SOON_SECS)


def test_a_stale_ticket_is_not_slept_on(engine, queue):
    ticket = engine.ready_ticket(ACME.key)
    queue.enqueue(ACME, "embed")
    assert engine.ready_ticket(ACME.key) > ticket
    started = time.monotonic()
    engine.wait_ready(ACME.key, None, ticket, LONG_SECS * 1_000_000)
    engine.wake()
    engine.wait_ready(None, None, 0, LONG_SECS * 1_000_000)
    assert time.monotonic() - started < SOON_SECS


def test_ctrl_c_ends_a_wait(queue, watched):
    interrupted(watched, lease(queue))
    assert queue.lease_next(ACME, worker_id="w") is None
