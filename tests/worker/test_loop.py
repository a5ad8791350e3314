"""Coroutines: one loop, and whatever a handler does to it is its own affair."""

from __future__ import annotations

import asyncio
import threading

import pytest

from telha_queue import JobState, Scope
from telha_queue.errors import ConfigError
from telha_queue.worker import Job, loop, task

ACME = Scope.named("acme")


def test_coroutines_that_were_leased_ahead_run_too(queue, work):
    @task("x")
    async def x(job: Job) -> None:
        await asyncio.wait([asyncio.ensure_future(asyncio.wait_for(asyncio.Event().wait(), 0.001))])

    queue.enqueue_many(ACME, [x.spec()] * 50)
    worker = work(x, concurrency=4, prefetch=4)
    assert worker.wait_idle()
    assert queue.counts()[JobState.COMPLETED] == 50
    assert worker.load()["general"].used == 0


def test_a_handler_that_blocks_the_loop_holds_up_nobody_else(queue, work, until):
    begun, go = threading.Event(), threading.Event()

    @task("blocks")
    async def blocks(job: Job) -> None:
        begun.set()
        go.wait(20)

    @task("plain")
    def plain(job: Job) -> None: ...

    blocks.enqueue(queue, ACME)
    worker = work(blocks, plain)
    begun.wait(20)
    blocks.enqueue(queue, ACME)
    jobs = [plain.enqueue(queue, ACME) for _ in range(5)]
    until(lambda: all(queue.get(ACME, job.job_id).state is JobState.COMPLETED for job in jobs))
    assert worker.stop(grace_secs=0) is False
    assert queue.counts()[JobState.PENDING] == 2
    go.set()


def test_a_handler_that_ignores_its_end_is_counted_and_loses_its_place(queue, clock, work, until, monkeypatch):
    monkeypatch.setattr(loop, "PATIENCE_SECS", 0.01)
    begun, go = threading.Event(), asyncio.Event()

    @task("stubborn", timeout_secs=5, max_attempts=1)
    async def stubborn(job: Job) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await go.wait()

    stubborn.enqueue(queue, ACME)
    worker = work(stubborn, concurrency=1)
    begun.wait(20)
    clock.advance(secs=5)
    until(lambda: worker.abandoned == 1)
    assert worker.load()["general"].used == 0
    worker._crew._loop._loop.call_soon_threadsafe(go.set)
    until(lambda: worker.abandoned == 0)


class Callable:
    async def __call__(self, job: Job) -> None:
        job.stats("called")


def test_an_object_that_is_called_like_a_coroutine_is_one(queue, work):
    called = task("x")(Callable())
    job = called.enqueue(queue, ACME)
    assert work(called).wait_idle()
    assert [event.detail for event in queue.get(ACME, job.job_id).events if event.transition == "stats"] == ["called"]


def test_a_generator_is_no_task():
    def generator(job: Job):
        yield

    async def async_generator(job: Job):
        yield

    for function in (generator, async_generator):
        with pytest.raises(ConfigError, match="generator"):
            task("x")(function)
