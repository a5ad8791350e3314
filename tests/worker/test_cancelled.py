"""A job that is cancelled while its handler runs: the handler is told at the next heartbeat, and so is the operator."""

from __future__ import annotations

import asyncio
import threading

import pytest

from telha_queue import JobState, Scope
from telha_queue.errors import LeaseConflict
from telha_queue.testing import run_due
from telha_queue.worker import Job, task

ACME = Scope.named("acme")


@pytest.mark.parametrize("is_async", [False, True])
def test_its_handler_learns_of_it_at_the_next_heartbeat(queue, clock, work, until, caplog, is_async):
    begun, told = threading.Event(), []

    def plain(job: Job) -> None:
        begun.set()
        told.append((job.lost.wait(20), job.lost.reason))

    async def coroutine(job: Job) -> None:
        begun.set()
        await asyncio.wait_for(job.lost, 20)
        told.append((bool(job.lost), job.lost.reason))

    x = task("x")(coroutine if is_async else plain)
    job = x.enqueue(queue, ACME)
    worker = work(x, lease_ttl_secs=60, reaper=False)
    begun.wait(20)
    queue.cancel(ACME, job.job_id, "enough")
    clock.advance(secs=20)
    until(lambda: worker.counters.total("cancelled") == 1)
    assert told == [(True, "cancelled")]
    assert worker.counters.total("lost") == 0
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f"job {job.job_id} (x) was cancelled while it ran"
    ]
    assert queue.get(ACME, job.job_id).dead_reason == "cancelled"


def test_a_handler_that_ends_before_the_heartbeat_has_its_result_refused_as_cancelled(queue, work, until):
    begun, go = threading.Event(), threading.Event()

    @task("x")
    def x(job: Job) -> None:
        begun.set()
        go.wait(20)

    job = x.enqueue(queue, ACME)
    worker = work(x)
    begun.wait(20)
    queue.cancel(ACME, job.job_id)
    go.set()
    until(lambda: worker.counters.total("cancelled") == 1)
    assert queue.get(ACME, job.job_id).state is JobState.DEAD
    assert worker.status()["kinds"]["x"]["cancelled"] == 1


def test_a_job_that_was_cancelled_and_retried_is_another_workers_affair(queue, clock, work, until):
    begun, told = threading.Event(), []

    @task("x")
    def x(job: Job) -> None:
        if begun.is_set():
            return
        begun.set()
        job.lost.wait(20)
        told.append(job.lost.reason)

    job = x.enqueue(queue, ACME)
    worker = work(x, lease_ttl_secs=60, reaper=False)
    begun.wait(20)
    queue.cancel(ACME, job.job_id)
    queue.retry(ACME, job.job_id)
    until(lambda: queue.get(ACME, job.job_id).state is JobState.COMPLETED)
    clock.advance(secs=20)
    until(lambda: worker.counters.total("lost") == 1)
    assert told == ["lost"]
    assert (worker.counters.total("completed"), worker.counters.total("cancelled")) == (1, 0)


def test_a_handler_without_threads_meets_it_at_its_next_call(queue):
    @task("x")
    def x(job: Job) -> None:
        job.queue.cancel(job.scope, job.job_id, "by itself")
        with pytest.raises(LeaseConflict):
            job.checkpoint(b"half")

    x.enqueue(queue, ACME)
    [dead] = run_due(queue, [x])
    assert (dead.state, dead.dead_reason, dead.events[-1].detail) == (JobState.DEAD, "cancelled", "by itself")
