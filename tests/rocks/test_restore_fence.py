"""No lease from before a restore is accepted after it: none of the snapshot, of the original, of another restore."""

from __future__ import annotations

import pytest

from telha_queue import JobState, Queue, QueueConfig, Scope, restore
from telha_queue.engines.snapshots import label
from telha_queue.errors import LeaseConflict
from telha_queue.testing import START_US, ManualClock

ACME = Scope.named("acme")
QUICK = QueueConfig(durability="os", backoff_base_secs=0)


@pytest.fixture
def queue(path, clock):
    with Queue.open(path, QUICK, clock) as opened:
        yield opened


def refuses(queue, lease):
    """Every verb on a lease, however the job stands."""
    for call in (
        lambda: queue.complete(lease),
        lambda: queue.complete(lease, late="accept_if_unclaimed"),
        lambda: queue.complete_and_lease(lease),
        lambda: queue.extend(lease),
        lambda: queue.extend_any(lease.job_id, lease.worker_id, lease.lease_generation),
        lambda: queue.checkpoint(lease, b"c"),
        lambda: queue.stats(lease, "d"),
        lambda: queue.fail(lease, "e"),
        lambda: queue.release(lease),
    ):
        with pytest.raises(LeaseConflict):
            call()


def lease_again(queue, times, worker_id="w"):
    """Lease the job so many times, and give it back each time but the last."""
    for _ in range(times - 1):
        queue.release(queue.lease_next(ACME, worker_id=worker_id))
    return queue.lease_next(ACME, worker_id=worker_id)


def test_a_lease_of_the_snapshot_has_ended_and_its_job_is_pending(queue, restored, tmp_path, clock):
    queue.enqueue(ACME, "x", max_attempts=1)
    lease = queue.checkpoint(queue.lease_next(ACME, worker_id="w"), b"page 7")
    queue.snapshot(tmp_path / "snapshot")
    clock.advance(secs=5)
    other = restored()
    job = other.get(ACME, lease.job_id)
    assert (job.state, job.attempts, job.worker_id, job.continuation) == (JobState.PENDING, 0, None, None)
    assert job.lease_generation == lease.lease_generation
    assert job.events[-1][:3] == (clock(), "restored", "w")
    refuses(other, lease)
    again = other.lease_next(ACME, worker_id="w")
    assert again.job_id == lease.job_id
    refuses(other, lease)
    assert other.complete(again).state == JobState.COMPLETED


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize("after", [1, 2, 5])
def test_what_the_original_has_leased_since_the_snapshot_is_refused(queue, restored, tmp_path, before, after):
    queue.enqueue(ACME, "x", max_attempts=100)
    if before:
        queue.release(lease_again(queue, before))
    queue.snapshot(tmp_path / "snapshot")
    lease = lease_again(queue, after)
    assert lease.lease_generation == before + after
    other = restored()
    refuses(other, lease)
    for _ in range(before + after + 1):  # by the same worker, as often as it takes to come by any small number
        held = other.lease_next(ACME, worker_id="w")
        assert held.lease_generation > lease.lease_generation
        refuses(other, lease)
        other.release(held)
    refuses(other, lease)
    assert queue.complete(lease).state == JobState.COMPLETED


def test_a_reaped_lease_of_the_original_is_not_finished_late(queue, restored, tmp_path, clock):
    queue.enqueue(ACME, "pending", max_attempts=9)
    queue.enqueue(ACME, "dead", max_attempts=1)
    leases = queue.lease_many(ACME, 2, worker_id="w", lease_ttl_secs=1)
    clock.advance(secs=2)
    queue.reap_expired()
    queue.snapshot(tmp_path / "snapshot")
    other = restored()
    for lease in leases:
        refuses(other, lease)
    for lease in leases:
        assert queue.complete(lease, late="accept_if_unclaimed").state == JobState.COMPLETED
    held = other.lease_next(ACME, "pending", worker_id="w", lease_ttl_secs=1)
    clock.advance(secs=2)
    assert other.reap_expired().reclaimed == 1
    assert other.complete(held, late="accept_if_unclaimed").state == JobState.COMPLETED  # its own leases may be


def test_two_queues_of_one_snapshot_take_none_of_each_others_leases(queue, restored, tmp_path, clock):
    queue.enqueue(ACME, "x", max_attempts=100)
    queue.snapshot(tmp_path / "snapshot")
    first = restored()
    lease = lease_again(first, 50)
    clock.advance(secs=1)
    second = restored()
    for _ in range(60):
        refuses(second, lease)
        held = second.lease_next(ACME, worker_id="w")
        refuses(second, lease)
        refuses(first, held)
        second.release(held)


def test_a_restored_queue_can_be_snapshotted_and_restored_again(queue, tmp_path, clock):
    queue.enqueue(ACME, "x", max_attempts=100)
    queue.snapshot(tmp_path / "0")
    floors, leases = [], []
    for number in range(1, 5):
        report = restore(tmp_path / f"{number - 1}", tmp_path / f"queue{number}", clock=clock)
        floors.append(report.generation_floor)
        with Queue.open(tmp_path / f"queue{number}", QUICK, clock) as again:
            for lease in leases:
                refuses(again, lease)
            leases.append(again.lease_next(ACME, worker_id="w"))
            assert leases[-1].lease_generation == floors[-1] > clock()
            again.snapshot(tmp_path / f"{number}")
        assert report.leases_ended == (number > 1)
    assert floors == sorted(set(floors))


def test_a_clock_that_stands_still_or_is_behind_makes_two_floors_all_the_same(queue, tmp_path, clock):
    queue.enqueue(ACME, "x")
    queue.snapshot(tmp_path / "snapshot")
    for at in (clock, ManualClock(0), ManualClock(START_US - 1)):
        floors = {restore(tmp_path / "snapshot", tmp_path / f"{at()} {n}", clock=at).generation_floor for n in range(3)}
        assert len(floors) == 3
        assert min(floors) > clock()


def test_a_clock_that_has_lost_its_time_still_makes_a_floor_above_all_that_is_known(queue, restored, tmp_path):
    queue.enqueue(ACME, "x", max_attempts=100)
    lease_again(queue, 20)
    queue.snapshot(tmp_path / "snapshot")
    (tmp_path / "snapshot" / "telha.snapshot").write_bytes(label(0))
    other = restored(ManualClock(0))
    assert other.lease_next(ACME, worker_id="w").lease_generation >= START_US
