"""A handler that completes its job together with what it stores and enqueues, as one write."""

from __future__ import annotations

import logging

import pytest

from telha_queue import JobState, Scope
from telha_queue.errors import LeaseConflict
from telha_queue.testing import WorkerLost, run_due
from telha_queue.worker import Job, task

ACME = Scope.named("acme")


def store(job: Job) -> None:
    with job.completing(result=b"2 pages") as tx:
        tx.put("pages", job.payload, b"text")
        tx.enqueue(job.scope, "index", job.payload)


split = task("split")(store)


@task("split")
async def split_on_loop(job: Job) -> None:
    store(job)


def completed(queue):
    return queue.list(ACME, state=JobState.COMPLETED)


@pytest.mark.parametrize("one", [split, split_on_loop], ids=["thread", "loop"])
def test_all_of_it_is_there_once_and_the_worker_adds_nothing(queue, work, until, one):
    worker = work(one)
    jobs = [queue.enqueue(ACME, "split", bytes([n])) for n in range(20)]
    until(lambda: len(completed(queue)) == len(jobs))
    worker.stop()
    assert {job.result for job in completed(queue)} == {b"2 pages"}
    assert len(queue.data("pages").scan()) == len(queue.list(ACME, kinds="index")) == len(jobs)
    for job in completed(queue):
        assert [event.transition for event in job.events] == ["enqueued", "leased", "completed"]


@pytest.mark.parametrize("lost_at", ["handled", "settled"])
def test_a_worker_that_dies_after_it_leaves_a_job_that_is_over(queue, clock, lost_at):
    queue.enqueue(ACME, "split", b"a")
    with pytest.raises(WorkerLost):
        run_due(queue, [split], lost_at=lost_at)
    clock.advance(secs=1000)
    assert queue.reap_expired()[:2] == (0, 0)
    [job] = completed(queue)
    assert (job.result, job.attempts) == (b"2 pages", 0)
    assert len(queue.list(ACME, kinds="index")) == 1


def test_a_worker_that_dies_before_it_leaves_nothing_and_the_next_does_it_all(queue, clock):
    queue.enqueue(ACME, "split", b"a")
    with pytest.raises(WorkerLost):
        run_due(queue, [split], lost_at="leased")
    assert queue.data("pages").scan() == []
    clock.advance(secs=1000)
    assert queue.reap_expired().reclaimed == 1
    clock.advance(secs=1000)
    assert [job.state for job in run_due(queue, [split])] == [JobState.COMPLETED]
    assert len(queue.data("pages").scan()) == len(queue.list(ACME, kinds="index")) == 1


def test_a_handler_whose_lease_is_lost_stores_nothing(queue):
    refusals = []

    @task("split")
    def late(job: Job) -> None:
        queue.release(job.record, delay_secs=60)
        try:
            store(job)
        except LeaseConflict as refusal:
            refusals.append(refusal)
            raise

    queue.enqueue(ACME, "split", b"a")
    [job] = run_due(queue, [late])
    assert (job.state, len(refusals)) == (JobState.PENDING, 1)
    assert queue.data("pages").scan() == []
    assert queue.list(ACME, kinds="index") == []


def test_what_it_raises_after_it_is_logged_and_changes_nothing(queue, work, until, caplog):
    @task("split")
    def goes_on(job: Job) -> None:
        store(job)
        raise ValueError("too late")

    worker = work(goes_on)
    queue.enqueue(ACME, "split", b"a")
    with caplog.at_level(logging.ERROR, "telha_queue.worker"):
        until(lambda: completed(queue))
        worker.stop()
    assert "too late" in caplog.text
    [job] = completed(queue)
    assert job.attempts == 0


def test_what_was_said_last_of_its_progress_is_with_it(queue, work, until):
    @task("split")
    def talks(job: Job) -> None:
        job.progress(0.1, "first")
        job.progress(0.9, "last")
        store(job)

    work(talks)
    queue.enqueue(ACME, "split", b"a")
    until(lambda: completed(queue))
    assert (completed(queue)[0].progress, completed(queue)[0].progress_text) == (0.9, "last")


def test_one_that_hangs_after_it_counts_as_completed(queue, clock, work, until):
    @task("split", timeout_secs=5)
    async def hangs(job: Job) -> None:
        store(job)
        await job.lost

    worker = work(hangs)
    queue.enqueue(ACME, "split", b"a")
    until(lambda: completed(queue))
    clock.advance(secs=6)
    until(lambda: worker.counters.total("completed") == 1)
    assert completed(queue)[0].attempts == 0
