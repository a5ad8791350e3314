"""Stopping a worker, and a store that fails beside it: nothing is lost, and nobody waits for ever."""

from __future__ import annotations

import threading

import pytest

from telha_queue import JobState, Scope
from telha_queue.errors import ConfigError, CorruptionError, StorageError
from telha_queue.worker import Job, task

ACME = Scope.named("acme")


@pytest.fixture
def held():
    """A task whose handler begins, and goes on when it is let go."""
    begun, go = threading.Semaphore(0), threading.Event()

    @task("x", max_attempts=1)
    def hold(job: Job) -> None:
        begun.release()
        go.wait(20)

    hold.begun, hold.go = begun, go
    yield hold
    go.set()


def test_stopping_gives_back_what_has_not_begun_and_what_does_not_end(queue, work, until):
    go = threading.Event()
    lost = []

    @task("x", max_attempts=1)
    def hold(job: Job) -> None:
        go.wait(20)
        lost.append(job.lost.reason)

    jobs = [hold.enqueue(queue, ACME) for _ in range(6)]
    worker = work(hold, concurrency=2, prefetch=2)
    until(lambda: queue.counts()[JobState.LEASED] == 4)
    assert worker.stop(grace_secs=0) is False
    after = [queue.get(ACME, job.job_id) for job in jobs]
    assert [(job.state, job.attempts, job.crashes) for job in after] == [(JobState.PENDING, 0, 0)] * 6
    assert sorted(job.lease_generation for job in after) == [0, 0, 1, 1, 1, 1]
    go.set()
    until(lambda: lost == ["stopped", "stopped"])


def test_stopping_lets_handlers_end(queue, work, until):
    go = threading.Event()

    @task("x")
    def hold(job: Job) -> None:
        go.wait(20)

    job = hold.enqueue(queue, ACME)
    worker = work(hold)
    until(lambda: queue.counts()[JobState.LEASED] == 1)
    stopping = threading.Thread(target=lambda: worker.stop(grace_secs=20))
    stopping.start()
    go.set()
    stopping.join()
    assert queue.get(ACME, job.job_id).state is JobState.COMPLETED


def test_two_that_stop_it_wait_for_the_same_end(queue, work, held, together):
    held.enqueue(queue, ACME)
    worker = work(held, concurrency=1)
    held.begun.acquire(timeout=20)

    def let_go() -> bool:
        held.go.set()
        return True

    assert together(lambda: worker.stop(20), lambda: worker.stop(20), let_go) == [True] * 3
    assert worker.load()["general"].used == 0
    assert worker.stop() is True


def test_whoever_is_in_a_hurry_waits_for_no_handler(queue, work, held):
    job = held.enqueue(queue, ACME)
    worker = work(held, concurrency=1)
    held.begun.acquire(timeout=20)
    worker.hurry()
    assert worker.stop(grace_secs=600) is False
    assert queue.get(ACME, job.job_id).state is JobState.PENDING


def test_a_worker_that_was_stopped_does_not_start(queue, held):
    from telha_queue.worker import Worker

    worker = Worker(queue, tasks=[held])
    assert worker.stop() is True
    with pytest.raises(ConfigError):
        worker.start()


class Failing:
    """A verb of a queue that fails: always, or for some jobs."""

    def __init__(self, verb, error, is_bad=lambda lease: True):
        self._verb, self._error, self._is_bad = verb, error, is_bad
        self.heals = threading.Event()
        self.calls = 0

    def __call__(self, leases, **how):
        self.calls += 1
        if not self.heals.is_set() and any(map(self._is_bad, leases)):
            raise self._error
        return self._verb(leases, **how)


@pytest.fixture
def quick():
    @task("x")
    def quick(job: Job) -> None: ...

    return quick


def test_an_outcome_that_cannot_be_written_is_written_when_it_can(queue, work, until, quick, monkeypatch):
    failing = Failing(queue.complete_many, StorageError("full", outcome="unknown"))
    monkeypatch.setattr(queue, "complete_many", failing)
    quick.enqueue(queue, ACME)
    worker = work(quick)
    until(lambda: failing.calls > 2)
    failing.heals.set()
    assert worker.wait_idle()
    assert queue.counts()[JobState.COMPLETED] == 1


def test_one_job_that_the_store_refuses_hinders_no_other(queue, work, until, quick, monkeypatch):
    jobs = [quick.enqueue(queue, ACME) for _ in range(20)]
    bad = jobs[7].job_id
    failing = Failing(queue.complete_many, CorruptionError("damaged"), lambda lease: lease.job_id == bad)
    monkeypatch.setattr(queue, "complete_many", failing)
    worker = work(quick, prefetch=20)
    until(lambda: worker.counters.total("completed") == 19)
    until(lambda: worker.counters.total("unwritten") == 1)
    assert worker.stop() is False


def test_a_store_that_fails_until_the_end_is_no_clean_end(queue, work, until, quick, monkeypatch):
    failing = Failing(queue.complete_many, StorageError("full"))
    monkeypatch.setattr(queue, "complete_many", failing)
    quick.enqueue(queue, ACME)
    worker = work(quick)
    until(lambda: failing.calls)
    worker.hurry()
    assert worker.stop(grace_secs=600) is False


def test_a_store_that_lends_nothing_is_told_and_nobody_idles_for_ever(queue, work, until, quick, monkeypatch):
    def fails(*args, **how):
        raise StorageError("broken")

    monkeypatch.setattr(queue, "lease_many", fails)
    worker = work(quick)
    until(lambda: worker.store_error is not None)
    assert not worker.is_ready
    assert worker.wait_idle(timeout_secs=0.2) is False
    monkeypatch.undo()
    until(lambda: worker.is_ready)


def test_a_worker_whose_queue_is_closed_is_not_idle(queue, work, until, quick):
    worker = work(quick, reaper=False)
    queue.close()
    until(lambda: not worker._intake.is_alive)
    assert worker.wait_idle(timeout_secs=5) is False


def test_a_job_that_was_leased_for_a_place_that_is_gone_goes_back_unspent(queue, work, quick, monkeypatch):
    jobs = [quick.enqueue(queue, ACME) for _ in range(10)]
    worker = work(quick, concurrency=1)
    monkeypatch.setattr(worker._roster, "replace", lambda claim, following: False)
    assert worker.wait_idle()
    jobs += [quick.enqueue(queue, ACME) for _ in range(10)]
    assert worker.wait_idle()
    assert worker.load()["general"] == (1, 0, 0)
    after = [queue.get(ACME, job.job_id) for job in jobs]
    assert {(job.state, job.attempts) for job in after} == {(JobState.COMPLETED, 0)}
    assert worker.stop() is True
