"""Leases and deadlines: what becomes of a job whose handler hangs or loses its lease."""

from __future__ import annotations

import threading

import pytest

from telha_queue import JobState, Lease, Scope
from telha_queue.worker import Job, task

ACME = Scope.named("acme")


def test_a_hung_thread_is_abandoned_at_its_deadline_and_the_worker_goes_on(queue, clock, work, until):
    go = threading.Event()

    @task("hang", timeout_secs=5, max_attempts=2)
    def hang(job: Job) -> None:
        go.wait(20)

    @task("quick")
    def quick(job: Job) -> None: ...

    hung = hang.enqueue(queue, ACME)
    worker = work(hang, quick, concurrency=1)
    until(lambda: queue.get(ACME, hung.job_id).state is JobState.LEASED and worker.load()["general"].used)
    until(lambda: worker.status()["running"])
    clock.advance(secs=5)
    until(lambda: queue.get(ACME, hung.job_id).state is JobState.PENDING)
    after = queue.get(ACME, hung.job_id)
    assert (after.attempts, after.crashes, after.events[-1].transition) == (1, 0, "failed")
    assert after.events[-1].detail == "timeout: the handler ran longer than 5 s"
    assert worker.abandoned == 1
    following = quick.enqueue(queue, ACME)
    until(lambda: queue.get(ACME, following.job_id).state is JobState.COMPLETED)
    assert worker.counters.total("timeout") == 1
    go.set()
    until(lambda: worker.abandoned == 0)
    assert queue.get(ACME, hung.job_id).state is JobState.PENDING


@pytest.mark.parametrize(("retries", "state", "reason"), [(True, "pending", None), (False, "dead", "timeout")])
def test_a_coroutine_is_cancelled_at_its_deadline(queue, clock, work, until, retries, state, reason):
    import anyio

    begun, ended = threading.Event(), []

    @task("hang", timeout_secs=5, retries_timeout=retries)
    async def hang(job: Job) -> None:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(job.lost.reason)

    job = hang.enqueue(queue, ACME)
    worker = work(hang)
    begun.wait(20)
    clock.advance(secs=5)
    until(lambda: ended)
    until(lambda: str(queue.get(ACME, job.job_id).state) == state)
    assert ended == ["timeout"]
    assert queue.get(ACME, job.job_id).dead_reason == reason
    until(lambda: worker.load()["general"].used == 0)


def test_a_handler_that_makes_no_progress_is_stopped_and_one_that_does_is_not(queue, clock, work, until):
    steps, go = [], threading.Semaphore(0)

    @task("slow", progress_secs=5)
    def slow(job: Job) -> None:
        while go.acquire(timeout=20) and not job.lost:
            job.progress()
            steps.append(job.lost.reason)

    job = slow.enqueue(queue, ACME)
    worker = work(slow)
    until(lambda: worker.status()["running"])
    for step in (1, 2, 3):
        go.release()
        until(lambda step=step: len(steps) == step)
        clock.advance(secs=4)
    assert queue.get(ACME, job.job_id).state is JobState.LEASED
    clock.advance(secs=1)
    until(lambda: queue.get(ACME, job.job_id).attempts == 1)
    assert queue.get(ACME, job.job_id).events[-1].detail == "timeout: the handler made no progress for 5 s"
    go.release()


@pytest.mark.parametrize("how", ["reaped", "completed by an operator's hand"])
def test_a_handler_is_told_that_its_lease_is_lost_and_its_result_is_refused_once(
    queue, clock, work, until, caplog, how
):
    told, go = [], threading.Event()

    @task("x")
    def x(job: Job) -> None:
        told.append(job.lost.wait(20))
        told.append(job.lost.reason)
        go.wait(20)

    job = x.enqueue(queue, ACME)
    worker = work(x, lease_ttl_secs=60, reaper=False)
    until(lambda: worker.status()["running"])
    held = queue.get(ACME, job.job_id)
    if how == "reaped":
        queue.release(held)  # as a reaper would have it, and another worker takes it
        [other] = queue.lease_many(ACME, 1, worker_id="other")
        assert other.job_id == job.job_id
    else:
        queue.complete(Lease(ACME, held.job_id, held.worker_id, held.lease_generation))
    clock.advance(secs=20)
    if how == "reaped":
        until(lambda: told == [True, "lost"])
    go.set()
    until(lambda: worker.counters.total("lost") == 1)
    assert [record.levelname for record in caplog.records if "refused" in record.message] == ["WARNING"]
    assert queue.get(ACME, job.job_id).state is (JobState.LEASED if how == "reaped" else JobState.COMPLETED)


def test_whoever_looks_again_and_again_leaves_nothing_behind(queue, work):
    left = []

    @task("x")
    def x(job: Job) -> None:
        for _ in range(100):
            job.lost.wait(0)
        left.append(len(job.lost._waiters))

    x.enqueue(queue, ACME)
    assert work(x).wait_idle()
    assert left == [0]


def test_a_coroutine_can_await_the_loss(queue, clock, work, until):
    told = []

    @task("x")
    async def x(job: Job) -> None:
        await job.lost
        told.append(job.lost.reason)

    x.enqueue(queue, ACME)
    worker = work(x, lease_ttl_secs=60, reaper=False)
    until(lambda: worker.status()["running"])
    [held] = queue.list(state=JobState.LEASED)
    queue.release(held, delay_secs=3600)
    clock.advance(secs=20)
    until(lambda: told == ["lost"])


def test_a_lease_is_kept_for_as_long_as_the_handler_works(queue, clock, work, until):
    go = threading.Event()

    @task("x")
    def x(job: Job) -> None:
        go.wait(20)

    job = x.enqueue(queue, ACME)
    worker = work(x, lease_ttl_secs=60)
    until(lambda: worker.status()["running"])
    for _ in range(10):
        before = queue.get(ACME, job.job_id).lease_deadline
        clock.advance(secs=30)
        until(lambda before=before: queue.get(ACME, job.job_id).lease_deadline > before)
    queue.reap_expired()
    go.set()
    until(lambda: queue.get(ACME, job.job_id).state is JobState.COMPLETED)
    assert queue.get(ACME, job.job_id).lease_generation == 1


@pytest.mark.parametrize(("late", "state"), [("refuse", "pending"), ("accept_if_unclaimed", "completed")])
def test_a_result_after_the_reaper_came_counts_if_it_is_asked_for(queue, clock, work, until, late, state):
    begun, go = threading.Event(), threading.Event()

    @task("x")
    def x(job: Job) -> None:
        begun.set()
        go.wait(20)

    job = x.enqueue(queue, ACME)
    worker = work(x, reaper=False, late=late)
    begun.wait(20)
    worker._keeper.close()  # as if the machine had slept: nobody renews
    clock.advance(secs=300)
    assert queue.reap_expired().reclaimed == 1
    go.set()
    until(lambda: worker.counters.total("lost") + worker.counters.total("completed") == 1)
    assert str(queue.get(ACME, job.job_id).state) == state
