"""Many threads on one queue: every job once, and the exact numbers afterwards."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter

import pytest

from telha_queue.errors import LeaseConflict
from telha_queue.job import JobSpec, JobState
from telha_queue.scope import Scope

ACME = Scope.named("acme")
OTHER = Scope.named("other")
THREADS = 8


@pytest.fixture(autouse=True)
def restless():
    """Let threads change places as often as possible."""
    interval_secs = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval_secs)


def fill(queue, count, scope=ACME, kind="embed"):
    for start in range(0, count, 1000):
        queue.enqueue_many(scope, [JobSpec(kind)] * min(1000, count - start))


def test_eight_threads_lease_each_of_4000_jobs_exactly_once(queue, together):
    fill(queue, 4000)

    def work(name):
        leased = []
        while lease := queue.lease_next(ACME, worker_id=name):
            leased.append(lease.job_id)
            queue.complete(lease)
        return leased

    parts = together(*[lambda name=f"w{n}": work(name) for n in range(THREADS)])
    leased = Counter(job_id for part in parts for job_id in part)
    assert len(leased) == 4000
    assert set(leased.values()) == {1}
    assert queue.counts()[JobState.COMPLETED] == 4000
    assert sum(queue.counts().values()) == 4000


def test_each_thread_sees_the_jobs_in_order(queue, together):
    fill(queue, 2000)

    def work(name):
        created = []
        while leases := queue.lease_many(ACME, 7, worker_id=name):
            created += [lease.created_at for lease in leases]
        return created

    parts = together(*[lambda name=f"w{n}": work(name) for n in range(THREADS)])
    for created in parts:
        assert created == sorted(created)
    assert len({at for created in parts for at in created}) == 2000


def test_producers_and_consumers_of_three_scopes_lose_nothing(queue, together):
    scopes = (ACME, OTHER, Scope.SYSTEM)

    def produce(scope):
        return [queue.enqueue(scope, f"kind:{n % 4}").job_id for n in range(300)]

    def consume(scope):
        done = []
        for n in range(300):
            lease = queue.lease_next(scope, f"kind:{n % 4}", worker_id="w", wait_secs=60)
            done.append(queue.complete(lease).job_id)
        return done

    calls = [lambda scope=scope, call=call: call(scope) for call in (produce, consume) for scope in scopes]
    results = together(*calls)
    for made, done in zip(results[:3], results[3:], strict=True):
        assert made == sorted(made)
        assert sorted(done) == made


def test_enqueueing_from_many_threads_gives_every_job_its_own_time(queue, together):
    def produce():
        return [queue.enqueue(ACME, "embed").created_at for _ in range(250)]

    parts = together(*[produce] * THREADS)
    for created in parts:
        assert created == sorted(created)
    assert len({at for created in parts for at in created}) == 2000
    listed = queue.list(ACME, limit=1000)
    assert [job.job_id for job in listed] == sorted(job.job_id for job in listed)


def test_only_one_of_many_completions_of_one_lease_wins(queue, together):
    for _ in range(30):
        queue.enqueue(ACME, "embed")
        lease = queue.lease_next(ACME, worker_id="w")

        def complete(lease=lease):
            try:
                return queue.complete(lease)
            except LeaseConflict:
                return None

        assert sum(done is not None for done in together(*[complete] * 4)) == 1


def test_a_worker_presumed_dead_cannot_submit_while_others_go_on(queue, clock, together, refused):
    fill(queue, 400)
    abandoned = queue.lease_many(ACME, 400, worker_id="dead", lease_ttl_secs=1)
    clock.advance(secs=1)
    assert queue.reap_expired().reclaimed == 400
    clock.advance(secs=10)

    def submit_stale():
        refusals = queue.complete_many(abandoned)
        return sum(isinstance(refusal, LeaseConflict) for refusal in refusals)

    def work():
        done = 0
        while lease := queue.lease_next(ACME, worker_id="alive"):
            assert lease.lease_generation == 2
            queue.complete(lease)
            done += 1
        return done

    *stale, first, second = together(submit_stale, submit_stale, work, work)
    assert stale == [400, 400]
    assert first + second == 400
    with refused(queue, LeaseConflict):
        queue.complete(abandoned[0])


def test_no_waiter_misses_a_job_that_comes_as_it_falls_asleep(queue, together):
    def produce():
        return [queue.enqueue(ACME, f"kind:{n % 3}").job_id for n in range(600)]

    def consume(kind):
        return [queue.lease_next(ACME, kind, worker_id="w", wait_secs=60).job_id for _ in range(100)]

    consumers = [lambda kind=f"kind:{n % 3}": consume(kind) for n in range(6)]
    jobs, *leased = together(produce, *consumers)
    assert sorted(job_id for part in leased for job_id in part) == sorted(jobs)


@pytest.mark.parametrize("wait_secs", [0, 10])
def test_a_submit_that_is_refused_hides_no_job_from_others(queue, together, wait_secs):
    first, _ = queue.enqueue_many(ACME, [JobSpec("embed")] * 2)
    stale = queue.lease_next(ACME, worker_id="dead")
    queue.release(stale)
    is_over = threading.Event()

    def submit_stale():
        while not is_over.is_set():
            assert all(isinstance(refusal, LeaseConflict) for refusal in queue.complete_many([stale] * 20))

    def work():
        started = time.monotonic()
        try:
            for _ in range(300):
                lease = queue.lease_next(ACME, worker_id="alive", wait_secs=wait_secs)
                assert lease.job_id == first.job_id
                queue.release(lease)
        finally:
            is_over.set()
        return time.monotonic() - started

    assert together(work, submit_stale)[0] < 10


def test_everything_at_once_leaves_exact_numbers(queue, clock, together):
    fill(queue, 900)

    def work(turn):
        conflicts = 0
        while lease := queue.lease_next(ACME, worker_id=f"w{turn}", lease_ttl_secs=1):
            try:
                queue.extend(lease, lease_ttl_secs=1)
                if lease.job_id.int % 3 == turn % 3:
                    queue.fail(lease, "error", retryable=False)
                else:
                    queue.complete(lease)
            except LeaseConflict:
                conflicts += 1
        return conflicts

    def reap():
        reclaimed = 0
        for _ in range(40):
            clock.advance(secs=0.2)
            reclaimed += queue.reap_expired().reclaimed
        return reclaimed

    *conflicts, reclaimed = together(*[lambda turn=turn: work(turn) for turn in range(6)], reap)
    assert sum(conflicts) <= reclaimed
    counts = queue.counts()
    assert sum(counts.values()) == 900
    assert counts[JobState.LEASED] == 0
    for state, count in counts.items():
        assert len(queue.list(state=state, limit=1000)) == count
