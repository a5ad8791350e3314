"""The rows by which the reaper finds jobs that expire: when they come, when they go, and what is in nobody's way."""

from __future__ import annotations

import pytest
from fsck_cases import ACME, QUICK, STRANGER, expiry_row

from telha_queue.job import JobSpec
from telha_queue.queue import Queue
from telha_queue.upkeep import FsckReport


@pytest.fixture
def opened(path, clock):
    """opened(): the queue of this test."""
    return lambda: Queue.open(path, QUICK, clock)


def test_a_job_that_expires_has_a_row_and_others_have_none(opened, ldb):
    with opened() as queue:
        job = queue.enqueue(ACME, "x", expires_secs=10)
        queue.enqueue(ACME, "x")
        many = queue.enqueue_many(ACME, [JobSpec("x", expires_secs=10), JobSpec("x")])
    assert ldb.rows("expiries") == {expiry_row(job): b"", expiry_row(many[0]): b""}


def test_it_goes_with_the_job_that_is_buried_and_stays_for_one_that_is_leased(opened, ldb, clock):
    with opened() as queue:
        held, *_ = [queue.enqueue(ACME, "x", expires_secs=10) for _ in range(3)]
        queue.lease_next(ACME, worker_id="w", lease_ttl_secs=3600)
        later = queue.enqueue(ACME, "x", expires_secs=11)
        clock.advance(secs=10)
        assert queue.reap_expired().expired == 2
        assert queue.fsck() == FsckReport(4, {}, {})
    assert ldb.rows("expiries") == {expiry_row(held): b"", expiry_row(later): b""}


def test_the_row_of_a_job_that_has_ended_goes_when_its_time_has_come(opened, ldb, clock):
    with opened() as queue:
        queue.enqueue(ACME, "x", expires_secs=10)
        done = queue.complete(queue.lease_next(ACME, worker_id="w"))
        dead = queue.cancel(ACME, queue.enqueue(ACME, "x", expires_secs=10).job_id)
        queue.reap_expired()
        assert queue.fsck() == FsckReport(2, {}, {})
    assert ldb.rows("expiries").keys() == {expiry_row(done), expiry_row(dead)}
    clock.advance(secs=10)
    with opened() as queue:
        assert queue.reap_expired().expired == 0
        assert queue.fsck() == FsckReport(2, {}, {})
    assert ldb.rows("expiries") == {}


def test_a_retry_brings_its_row_back_or_takes_it_away(opened, ldb, clock):
    with opened() as queue:
        job = queue.cancel(ACME, queue.enqueue(ACME, "x", expires_secs=10).job_id)
    ldb.delete("expiries", expiry_row(job))  # as the reaper does, were its clock ahead of that of the retry
    with opened() as queue:
        queue.cancel(ACME, queue.retry(ACME, job.job_id).job_id)
        assert queue.fsck() == FsckReport(1, {}, {})
    assert ldb.rows("expiries") == {expiry_row(job): b""}
    clock.advance(secs=10)
    with opened() as queue:
        assert queue.retry(ACME, job.job_id).expires_at is None
        assert queue.fsck() == FsckReport(1, {}, {})
    assert ldb.rows("expiries") == {}


def test_rows_that_belong_to_nobody_are_removed_when_their_time_has_come(opened, ldb, clock):
    with opened() as queue:
        job, other = queue.enqueue(ACME, "x"), queue.enqueue(ACME, "x", expires_secs=10)
    now, later = clock().to_bytes(8, "big"), (clock() + 10**9).to_bytes(8, "big")
    for row in (now + STRANGER, now + job.job_id.bytes, now + other.job_id.bytes, later + STRANGER, b"x"):
        ldb.put("expiries", row, b"")
    with opened() as queue:
        assert queue.reap_expired().expired == 0
        assert (queue.get(ACME, job.job_id), queue.get(ACME, other.job_id)) == (job, other)
    assert ldb.rows("expiries").keys() == {expiry_row(other), later + STRANGER, b"x"}


@pytest.mark.parametrize("damaged", ["jobs", "ids"])
def test_a_damaged_job_keeps_its_row_and_hinders_no_other(opened, ldb, clock, damaged):
    with opened() as queue:
        broken, sound = (queue.enqueue(ACME, "x", expires_secs=10) for _ in range(2))
    ldb.put(damaged, broken.key if damaged == "jobs" else broken.job_id.bytes, b"?")
    clock.advance(secs=10)
    with opened() as queue:
        assert [queue.reap_expired().expired for _ in range(2)] == [1, 0]
        assert queue.find(sound.job_id).dead_reason == "expired"
    assert ldb.rows("expiries") == {expiry_row(broken): b""}


def test_more_leased_jobs_than_a_write_takes_stand_in_nobodys_way(opened, clock):
    with opened() as queue:
        queue.enqueue_many(ACME, [JobSpec("x", expires_secs=1)] * 700)
        queue.lease_many(ACME, 600, worker_id="w", lease_ttl_secs=3600)
        queue.enqueue_many(ACME, [JobSpec("x", expires_secs=2)] * 300)
        clock.advance(secs=2)
        assert queue.reap_expired().expired == 400
        assert queue.reap_expired().expired == 0


def test_the_plain_scan_passes_expired_jobs_by(opened, clock):
    with opened() as queue:
        queue.enqueue(ACME, "x", expires_secs=10)
        kept = queue.enqueue(ACME, "x")
        clock.advance(secs=10)
        assert queue._engine.next_by_scan(ACME.key, None, clock()).job_id == kept.job_id
        assert queue._engine.next_by_scan(ACME.key, None, clock() - 1).job_id != kept.job_id


def test_a_leased_job_that_a_restore_puts_back_too_late_is_buried(opened, tmp_path, clock, restored):
    with opened() as queue:
        job = queue.enqueue(ACME, "x", expires_secs=10)
        queue.lease_next(ACME, worker_id="w", lease_ttl_secs=3600)
        clock.advance(secs=20)
        queue.reap_expired()
        queue.snapshot(tmp_path / "snapshot")
    queue = restored()
    assert queue.lease_next(ACME, worker_id="w") is None
    assert queue.reap_expired().expired == 1
    assert queue.find(job.job_id).dead_reason == "expired"
