"""A restored queue goes on where the snapshot ended, and no lease from before is ever accepted by it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from telha_queue import JobState, Queue, QueueConfig, Scope, restore
from telha_queue.errors import InvalidPath
from telha_queue.record import decode, encode
from telha_queue.testing import START_US, ManualClock
from telha_queue.upkeep import FindingKind

ACME = Scope.named("acme")
QUICK = QueueConfig(durability="os", backoff_base_secs=0)


@pytest.fixture
def queue(path, clock):
    with Queue.open(path, QUICK, clock) as opened:
        yield opened


@pytest.mark.parametrize("at_us", [2**63 - 1, 2**63 - 2**33])
def test_at_the_end_of_time_a_job_can_still_be_leased(path, tmp_path, at_us):
    clock = ManualClock(at_us)
    with Queue.open(path, QUICK, clock) as queue:
        queue.enqueue(ACME, "x")
        queue.snapshot(tmp_path / "snapshot")
    floor = restore(tmp_path / "snapshot", tmp_path / "restored", clock=clock).generation_floor
    assert floor < 2**63
    with Queue.open(tmp_path / "restored", QUICK, clock) as queue:
        assert queue.lease_next(ACME, worker_id="w").lease_generation == floor


def test_ids_and_created_at_go_on_behind_what_the_snapshot_knew(queue, restored, tmp_path, clock):
    jobs = [queue.enqueue(ACME, "x") for _ in range(3)]
    clock.advance(secs=3600)
    queue.stats(queue.lease_next(ACME, worker_id="w"), "an hour later")
    queue.snapshot(tmp_path / "snapshot")
    known_us = clock()
    other = restored(ManualClock(START_US - 10**12))
    new = other.enqueue(ACME, "x")
    assert new.created_at >= known_us
    assert new.job_id > max(job.job_id for job in jobs)


def test_it_says_what_it_did_and_leaves_the_snapshot_as_it_is(queue, tmp_path, clock):
    for _ in range(700):
        queue.enqueue(ACME, "x")
    queue.enqueue(Scope.SYSTEM, "x")
    queue.lease_many(None, 600, worker_id="w")
    queue.snapshot(tmp_path / "snapshot")
    before = {found.name: found.read_bytes() for found in (tmp_path / "snapshot").iterdir()}
    for name in ("a", "b"):
        clock.advance(secs=1)
        report = restore(tmp_path / "snapshot", tmp_path / name, clock=clock)
        assert report == (tmp_path / name, 701, 600, 0, clock())
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o700
        with Queue.open(tmp_path / name, QUICK, clock, create=False) as other:
            assert other.counts()[JobState.PENDING] == 701
            assert other.fsck().is_clean
            other.complete_many(other.lease_many(None, 500, worker_id="w"))
    assert {found.name: found.read_bytes() for found in (tmp_path / "snapshot").iterdir()} == before
    assert [name for name in os.listdir(tmp_path) if name.startswith(".")] == []


def test_a_row_that_does_not_decode_is_counted_and_left_as_it_is(path, tmp_path, clock, ldb):
    with Queue.open(path, QUICK, clock) as queue:
        jobs = [queue.enqueue(ACME, "x") for _ in range(3)]
        held = queue.lease_many(ACME, 2, worker_id="w")
    ldb.put("jobs", held[0].key, held[0].value[:-1])
    with Queue.open(path, QUICK, clock) as queue:
        queue.snapshot(tmp_path / "snapshot")
    report = restore(tmp_path / "snapshot", tmp_path / "restored", clock=clock)
    assert (report.jobs, report.leases_ended, report.corrupt) == (2, 1, 1)
    ldb.path = tmp_path / "restored"
    assert ldb.rows("jobs")[held[0].key] == held[0].value[:-1]
    assert ldb.rows("default")[b"floor"] == report.generation_floor.to_bytes(8, "big")
    assert len(jobs) == 3


@pytest.mark.parametrize("row", [b"", b"short", bytes(8), b"\xff" * 8])
def test_a_damaged_floor_counts_as_the_latest_time_and_is_repaired(path, tmp_path, clock, ldb, row):
    with Queue.open(path, QUICK, clock) as queue:
        queue.enqueue(ACME, "x")
        queue.snapshot(tmp_path / "snapshot")
    floor = restore(tmp_path / "snapshot", tmp_path / "restored", clock=clock).generation_floor
    ldb.path = tmp_path / "restored"
    ldb.put("default", b"floor", row)
    clock.advance(secs=1)
    for found in ({FindingKind.FLOOR_WRONG: 1}, {}):
        with Queue.open(tmp_path / "restored", QUICK, clock) as queue:
            assert queue.fsck(repair=True).found == found
            lease = queue.lease_next(ACME, worker_id="w")
            assert lease.lease_generation >= floor
            queue.release(lease)


def test_what_is_no_snapshot_and_what_is_there_already_is_refused(queue, path, tmp_path):
    queue.enqueue(ACME, "x")
    queue.snapshot(tmp_path / "snapshot")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    before = {str(found) for found in tmp_path.rglob("*")}
    for source in ("none", "empty", "file", "queue"):
        with pytest.raises(InvalidPath):
            restore(tmp_path / source, tmp_path / "restored")
    for place in ("empty", "queue", "snapshot", "snapshot/inside", "none/restored"):
        with pytest.raises(InvalidPath):
            restore(tmp_path / "snapshot", tmp_path / place)
    assert {str(found) for found in tmp_path.rglob("*")} == before


@pytest.mark.parametrize("kind", ["queue", "snapshot"])
@pytest.mark.parametrize("name", ["000099.log", "made"])
def test_nothing_is_made_among_the_files_of_another_queue_or_snapshot(queue, tmp_path, kind, name):
    queue.enqueue(ACME, "x")
    queue.snapshot(tmp_path / "given")
    Queue.open(tmp_path / "other-queue", QUICK).close()
    queue.snapshot(tmp_path / "other-snapshot")
    other = tmp_path / f"other-{kind}"
    (tmp_path / "link").symlink_to(other)
    (other / "empty").mkdir()
    before = {str(found) for found in tmp_path.rglob("*")}
    for place in (other / name, tmp_path / "link" / name, other / ".." / other.name / name):
        for make in (
            lambda place: restore(tmp_path / "given", place),
            queue.snapshot,
            Queue.open,
            lambda _: Queue.open(other / "empty"),
        ):
            with pytest.raises(InvalidPath, match=f"is inside of .*, which is a {kind}"):
                make(place)
    assert {str(found) for found in tmp_path.rglob("*")} == before
    (other / "empty").rmdir()
    with Queue.open(tmp_path / "other-queue", QUICK) as sound:
        sound.snapshot(tmp_path / "later")
    assert restore(tmp_path / "other-snapshot", tmp_path / "restored").jobs == 1


def test_a_queue_that_was_made_inside_of_another_is_still_opened(queue, path, tmp_path):
    Queue.open(tmp_path / "moved", QUICK).close()
    (tmp_path / "moved").rename(path / "moved")
    Queue.open(path / "moved", QUICK).close()


def test_files_are_copied_where_they_cannot_be_linked(queue, restored, tmp_path, monkeypatch):
    queue.enqueue(ACME, "x", b"y" * 5000)
    queue.snapshot(tmp_path / "snapshot")

    def no_links(*_: Path) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", no_links)
    other = restored()
    shutil.rmtree(tmp_path / "snapshot")
    assert other.lease_next(ACME, worker_id="w").payload == b"y" * 5000


def test_the_record_of_a_restored_job_is_what_the_readable_machine_says(queue, restored, tmp_path, clock):
    queue.enqueue(ACME, "x")
    lease = queue.lease_next(ACME, worker_id="w")
    queue.snapshot(tmp_path / "snapshot")
    job = restored().get(ACME, lease.job_id)
    assert encode(decode(job.value)) == job.value
