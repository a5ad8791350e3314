"""Flush and reopen: on every engine they change nothing that a caller can see, whoever is at work meanwhile."""

from __future__ import annotations

import threading

import pytest

from telha_queue import JobState, Scope
from telha_queue.errors import StoreClosed

ACME = Scope.named("acme")
JOBS = 2000


def test_flush_and_reopen_change_nothing(queue, rows):
    job = queue.enqueue(ACME, "x", b"p" * 5000)
    lease = queue.lease_next(ACME, worker_id="w")
    before = rows(queue)
    queue.flush()
    queue.reopen()
    assert rows(queue) == before
    assert queue.recovered is None
    assert queue.failure is None
    assert lease.payload == job.payload
    assert queue.complete(lease).state is JobState.COMPLETED


def test_a_lease_that_was_reaped_before_a_reopening_stays_lost_and_the_next_comes_in_order(queue):
    first, second = (queue.enqueue(ACME, "x") for _ in range(2))
    queue.lease_next(ACME, worker_id="w")
    queue.reopen()
    assert queue.lease_next(ACME, worker_id="w").job_id == second.job_id
    assert queue.lease_next(ACME, worker_id="w") is None
    assert queue.get(ACME, first.job_id).state is JobState.LEASED


def test_a_closed_queue_is_not_flushed_and_not_opened_again(queue):
    queue.close()
    for call in (queue.flush, queue.reopen):
        with pytest.raises(StoreClosed):
            call()


def test_threads_at_work_notice_nothing_of_a_reopening(queue, together):
    done: list[object] = []
    is_over = threading.Event()

    def produce() -> None:
        for n in range(JOBS):
            queue.enqueue(ACME, "x", idempotency_key=str(n))
            queue.enqueue(ACME, "x", idempotency_key=str(n))

    def work() -> None:
        while len(done) < JOBS:
            lease = queue.lease_next(ACME, worker_id=threading.current_thread().name, wait_secs=0.05)
            if lease is not None:
                queue.complete(lease)
                done.append(lease.job_id)
        is_over.set()

    def disturb() -> None:
        while not is_over.wait(0.005):
            queue.reopen()
            queue.flush()
            assert queue.counts()[JobState.DEAD] == 0

    together(produce, work, work, work, disturb)
    assert len(set(done)) == len(done) == JOBS
    assert queue.counts()[JobState.COMPLETED] == JOBS
