"""Time across restarts: order and deadlines are what was stored, whatever the wall clock says when the queue opens."""

from __future__ import annotations

import pytest

from telha_queue.config import QueueConfig
from telha_queue.errors import LeaseConflict
from telha_queue.job import JobState
from telha_queue.queue import Queue
from telha_queue.scope import Scope
from telha_queue.testing import START_US, ManualClock

ACME = Scope.named("acme")
QUICK = QueueConfig(durability="os", backoff_base_secs=0)
HOUR = 3600
DAY = 24 * HOUR


@pytest.mark.parametrize("back_secs", [0, 0.000001, 1, HOUR, DAY, 10 * 365 * DAY])
def test_created_at_grows_across_restarts_though_the_clock_steps_back(path, back_secs):
    clock = ManualClock()
    created, ids = [], []
    for _ in range(4):
        with Queue.open(path, QUICK, clock) as queue:
            jobs = [queue.enqueue(scope, "x") for scope in (ACME, Scope.SYSTEM) * 5]
        created += [job.created_at for job in jobs]
        ids += [job.job_id for job in jobs]
        clock.advance(secs=-back_secs)
    assert created == sorted(set(created))
    assert ids == sorted(set(ids))
    with Queue.open(path, QUICK, clock) as queue:
        assert [queue.lease_next_any(worker_id="w").job_id for _ in ids] == ids


def test_created_at_grows_though_the_process_was_killed_and_the_clock_stepped_back(start, path):
    program = """
from telha_queue.testing import ManualClock
queue = Queue.open(PATH, QUICK, ManualClock(int(sys.argv[2])))
say(*[queue.enqueue(ACME, "x").created_at for _ in range(20)])
os.kill(os.getpid(), signal.SIGKILL)
"""
    created = []
    for step in range(4):
        child = start(program, START_US - step * HOUR * 1_000_000)
        created += map(int, child.stdout.readline().split())
        child.wait()
    assert len(created) == 80
    assert created == sorted(set(created))


def test_a_clock_at_zero_or_at_its_end_is_survived_by_a_restart(path):
    for at_us in (0, 2**63 - 1, START_US, 0):
        clock = ManualClock(at_us)
        with Queue.open(path, QUICK, clock) as queue:
            queue.enqueue(ACME, "x")
            assert queue._now_us() >= at_us
    with Queue.open(path, QUICK, ManualClock()) as queue:
        assert len({job.job_id for job in queue.list()}) == 4


@pytest.mark.parametrize("stepped_back", [False, True])
def test_after_a_restart_each_lease_is_due_at_its_stored_deadline(path, stepped_back):
    clock = ManualClock()
    with Queue.open(path, QUICK, clock) as queue:
        for _ in range(5):
            queue.enqueue(ACME, "x")
        leases = [queue.lease_next(ACME, worker_id="w", lease_ttl_secs=10 * n) for n in range(1, 6)]
    opened_us = clock.advance(secs=-HOUR) if stepped_back else clock()
    for lease in leases:
        clock.set_us(lease.lease_deadline - 1)
        with Queue.open(path, QUICK, clock) as queue:
            assert queue.get(ACME, lease.job_id).lease_deadline == lease.lease_deadline > opened_us
            assert queue.reap_expired().reclaimed == 0
            clock.set_us(lease.lease_deadline)
            assert queue.reap_expired().reclaimed == 1
            assert queue.get(ACME, lease.job_id).state == JobState.PENDING
            with pytest.raises(LeaseConflict):
                queue.complete(lease)


def test_time_does_not_go_back_below_what_a_clean_close_has_seen(path):
    clock = ManualClock()
    with Queue.open(path, QUICK, clock) as queue:
        queue.enqueue(ACME, "x")
        lease = queue.lease_next(ACME, worker_id="w", lease_ttl_secs=60)
        clock.advance(secs=HOUR)
        assert queue.counts()[JobState.LEASED] == 1
        queue.stats(queue.lease_next(ACME, worker_id="v") or lease, "seen an hour later")
    clock.advance(secs=-2 * HOUR)
    with Queue.open(path, QUICK, clock) as queue:
        assert queue.reap_expired().reclaimed == 1  # it had run out by then, and has not un-expired


def test_a_gate_opens_at_its_stored_time_after_a_restart(path):
    clock = ManualClock()
    with Queue.open(path, QUICK, clock) as queue:
        gated = queue.enqueue(ACME, "x", delay_secs=HOUR)
    for offset_us, opens in ((-1, False), (0, True)):
        clock.set_us(gated.not_before + offset_us)
        with Queue.open(path, QUICK, clock) as queue:
            assert (queue.lease_next(ACME, worker_id="w") is not None) == opens


def test_a_generation_goes_on_from_where_it_was_after_each_restart(path):
    clock = ManualClock()
    with Queue.open(path, QUICK, clock) as queue:
        queue.enqueue(ACME, "x", max_attempts=100)
    stale = []
    for generation in range(1, 11):
        with Queue.open(path, QUICK, clock) as queue:
            for lease in stale:
                with pytest.raises(LeaseConflict):
                    queue.complete(lease)
            lease = queue.lease_next(ACME, worker_id="w", lease_ttl_secs=1)
            assert lease.lease_generation == generation
            stale.append(lease)
            clock.advance(secs=2)
            assert queue.reap_expired().reclaimed == 1
