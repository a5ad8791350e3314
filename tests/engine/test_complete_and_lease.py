"""One job finished and the next of its scope leased in one write; that the first is finished is never lost."""

from __future__ import annotations

import threading

import pytest

from telha_queue.errors import JobNotFound, LeaseConflict, StorageError, StoreClosed
from telha_queue.job import JobSpec, JobState, Lease
from telha_queue.queue import Queue
from telha_queue.scope import Scope

ACME = Scope.named("acme")
OTHER = Scope.named("other")


def test_one_is_finished_and_the_next_leased(queue, clock):
    jobs = queue.enqueue_many(ACME, [JobSpec("x", bytes([n])) for n in range(3)])
    queue.enqueue(OTHER, "x", priority=0)
    lease = queue.lease_next(ACME, worker_id="w")
    for job in jobs[1:]:
        clock.advance(secs=1)
        done, lease = lease, queue.complete_and_lease(lease, lease_ttl_secs=60)
        assert queue.get(ACME, done.job_id).state == JobState.COMPLETED
        assert (lease.job_id, lease.worker_id, lease.lease_generation) == (job.job_id, "w", 1)
        assert lease.lease_deadline == clock() + 60_000_000
        assert queue.get(ACME, lease.job_id).value == lease.value
    assert queue.complete_and_lease(lease) is None
    assert queue.counts(ACME)[JobState.COMPLETED] == 3
    assert queue.counts(OTHER)[JobState.PENDING] == 1


def test_a_lost_lease_takes_nothing(queue, refused):
    queue.enqueue_many(ACME, [JobSpec("lost"), JobSpec("held")])
    lost, held = queue.lease_many(ACME, 2, worker_id="w")
    queue.release(lost)
    queue.lease_next(ACME, worker_id="v")
    queue.enqueue(ACME, "next")
    with refused(queue, LeaseConflict):
        queue.complete_and_lease(lost)
    with refused(queue, JobNotFound):
        queue.complete_and_lease(Lease(OTHER, held.job_id, "w", 1))
    assert queue.lease_next(ACME, worker_id="w").kind == "next"


def test_the_next_is_of_a_wanted_kind(queue):
    queue.enqueue_many(ACME, [JobSpec("a"), JobSpec("b"), JobSpec("a")])
    lease = queue.lease_next(ACME, worker_id="w")
    assert queue.complete_and_lease(lease, "a").kind == "a"
    assert queue.counts(ACME)[JobState.PENDING] == 1


def test_the_next_may_be_waited_for(engine):
    queue = Queue(engine)
    queue.enqueue(ACME, "x")
    lease = queue.lease_next(ACME, worker_id="w")
    timer = threading.Timer(0.05, lambda: queue.enqueue(ACME, "late"))
    timer.start()
    assert queue.complete_and_lease(lease, wait_secs=20).kind == "late"
    timer.join()
    assert queue.get(ACME, lease.job_id).state == JobState.COMPLETED


class Interrupted:
    """An engine to which something happens as a call reaches it."""

    def __init__(self, engine, call, happening):
        self._engine = engine
        self._call = call
        self._happening = happening

    def __getattr__(self, name):
        if name == self._call:
            self._happening()
        return getattr(self._engine, name)


def broken():
    raise StorageError("no disk", outcome="unknown")


@pytest.mark.parametrize("happening", ["close", "break"])
@pytest.mark.parametrize("call", ["ready_ticket", "lease_next", "next_due_us", "wait_ready"])
def test_that_the_first_is_finished_is_told_whatever_becomes_of_the_wait(engines, engine, call, happening):
    queue = Queue(engine)
    queue.enqueue(ACME, "x")
    lease = queue.lease_next(ACME, worker_id="w")
    interrupted = Queue(Interrupted(engine, call, engine.close if happening == "close" else broken))
    assert interrupted.complete_and_lease(lease, wait_secs=20) is None
    with pytest.raises(StorageError):  # the cause is met by the next call
        interrupted.lease_next(ACME, worker_id="w", wait_secs=0.01)
    if engine.capabilities.durable:
        queue = Queue(engines.reopen(engine))
    if engine.capabilities.durable or happening == "break":
        assert queue.get(ACME, lease.job_id).state == JobState.COMPLETED


def test_that_the_first_is_not_finished_is_told_too(engines, engine):
    queue = Queue(engine)
    queue.enqueue(ACME, "x")
    lease = queue.lease_next(ACME, worker_id="w")
    with pytest.raises(StoreClosed):
        Queue(Interrupted(engine, "complete_and_lease", engine.close)).complete_and_lease(lease, wait_secs=20)
    if engine.capabilities.durable:
        assert Queue(engines.reopen(engine)).get(ACME, lease.job_id).state == JobState.LEASED


def test_nobody_is_waited_for_in_vain(queue):
    queue.enqueue(ACME, "x")
    assert queue.complete_and_lease(queue.lease_next(ACME, worker_id="w"), wait_secs=0.01) is None


def test_many_workers_share_the_jobs_out(engine):
    queue = Queue(engine)
    jobs = queue.enqueue_many(ACME, [JobSpec("x")] * 400)
    done: list[object] = []

    def work(name):
        lease = queue.lease_next(ACME, worker_id=name)
        while lease is not None:
            done.append(lease.job_id)
            lease = queue.complete_and_lease(lease)

    threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == sorted(job.job_id for job in jobs)
    assert queue.counts(ACME)[JobState.COMPLETED] == 400
