"""Faults that windows, and the tables beside them, once had; each by the shortest way to it."""

from __future__ import annotations

import threading
from uuid import UUID

import pytest

from telha_queue import Exact, JobSpec, JobState, Queue, QueueConfig, Scope
from telha_queue.errors import LeaseConflict

ACME = Scope.named("acme")
OS = QueueConfig(durability="os")
SMALL = OS.replace(window_jobs=16)


def drained(queue, lease) -> int:
    count = 0
    while (job := lease()) is not None:
        queue.complete(job)
        count += 1
    return count


@pytest.mark.parametrize(("config", "jobs"), [(SMALL, 40), (OS, 1000)])
def test_a_job_that_ended_a_stretch_and_is_gated_again_is_not_forgotten(path, clock, config, jobs):
    with Queue.open(path, config, clock) as queue:
        queue.enqueue_many(ACME, [JobSpec("k") for _ in range(jobs)])
        while (job := queue.lease_next(ACME, worker_id="w")) is not None:
            queue.fail(job, "error")
        clock.advance(secs=100)
        assert drained(queue, lambda: queue.lease_next(ACME, worker_id="w")) == jobs


def test_a_gate_in_the_middle_of_many_opens_on_time(path, clock):
    with Queue.open(path, OS, clock) as queue:
        for start in range(0, 20_001, 1000):
            specs = [
                JobSpec("k", delay_secs=10 if n == 19_999 else 1000) for n in range(start, min(start + 1000, 20_001))
            ]
            queue.enqueue_many(ACME, specs)
        assert queue.lease_next(ACME, worker_id="w") is None
        clock.advance(secs=11)
        assert queue.lease_next(ACME, worker_id="w") is not None


@pytest.mark.parametrize(("config", "each"), [(SMALL, 2), (OS, 512)])
def test_a_window_over_many_scopes_overflows_without_missing_a_later_one(path, config, each):
    with Queue.open(path, config) as queue:
        scopes = [Scope.tenant(UUID(int=n + 1)) for n in range(12)]
        for scope in scopes[:-1]:
            queue.enqueue_many(scope, [JobSpec("k") for _ in range(each)])
        first = queue.enqueue(scopes[-1], "k", priority=0)
        leased = queue.lease_next_any(worker_id="w")
        assert leased.job_id == first.job_id
        queue.complete(leased)
        assert drained(queue, lambda: queue.lease_next_any(worker_id="w")) == 11 * each


@pytest.mark.parametrize("exact", [False, True])
def test_no_scope_is_mistaken_for_a_filter_over_all_scopes(path, exact):
    text = "embed:" + "x" * 24
    evil = Scope(bytes([30]) + (b"=" if exact else b"^") + text.encode())
    kind = Exact(text) if exact else text
    with Queue.open(path, OS) as queue:
        job = queue.enqueue(ACME, text, b"secret")
        assert queue.lease_next(evil, worker_id="evil") is None
        assert queue.lease_next_any(kind, worker_id="w").job_id == job.job_id
        queue.enqueue(ACME, text, b"secret")
        assert queue.lease_next(evil, worker_id="evil") is None


def test_an_enqueue_that_finds_its_job_does_not_bring_an_old_lease_back(path):
    with Queue.open(path, OS) as queue:
        job = queue.enqueue(ACME, "k", idempotency_key="a")
        over = threading.Event()

        def repeat():
            while not over.is_set():
                queue.enqueue(ACME, "k", idempotency_key="a")

        threads = [threading.Thread(target=repeat) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(1500):
                lease = queue.lease_next(ACME, worker_id="w")
                queue.release(lease)
                with pytest.raises(LeaseConflict):
                    queue.complete(lease)
        finally:
            over.set()
            for thread in threads:
                thread.join()
        assert queue.counts()[JobState.PENDING] == 1
        assert sum(queue.counts().values()) == 1
        assert queue.get(ACME, job.job_id).lease_generation == 1500


def test_passes_of_the_reaper_at_once_reap_each_lease_once(path, clock):
    with Queue.open(path, OS, clock) as queue:
        queue.enqueue_many(ACME, [JobSpec("k") for _ in range(1000)])
        queue.lease_many(ACME, 1000, worker_id="w")
    with Queue.open(path, OS, clock) as queue:
        clock.advance(secs=301)
        reports = []
        threads = [threading.Thread(target=lambda: reports.append(queue.reap_expired())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(report.reclaimed for report in reports) == 1000
        assert queue.reap_expired().reclaimed == 0
