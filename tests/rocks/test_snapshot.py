"""A snapshot is all of a queue as of one moment, whoever is at work on it, and is there as a whole or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from telha_queue import JobSpec, JobState, Queue, QueueConfig, Scope, restore
from telha_queue.engines import snapshots
from telha_queue.errors import (
    InvalidArgument,
    InvalidPath,
    StorageError,
    StorageFull,
    StoreClosed,
    StoreLocked,
    UnsupportedByEngine,
)
from telha_queue.testing import memory_queue

ACME = Scope.named("acme")
QUICK = QueueConfig(durability="os")
LARGE = b"y" * 5000


@pytest.fixture
def queue(path, clock):
    with Queue.open(path, QUICK, clock) as opened:
        yield opened


def entries(folder: Path) -> set[str]:
    return {str(found.relative_to(folder)) for found in folder.rglob("*")}


def everything(queue):
    return [(job.key, job.value, job.payload) for job in queue.list(limit=1000)]


def test_it_holds_every_job_in_every_state_and_what_belongs_to_it(queue, tmp_path):
    for number in range(8):
        queue.enqueue(ACME, "x", LARGE if number % 2 else b"p", idempotency_key=f"k{number}")
    queue.enqueue(Scope.SYSTEM, "x")
    held = queue.lease_many(ACME, 4, worker_id="w")
    queue.complete(held[0])
    queue.fail(held[1], "boom", retryable=False)
    queue.release(held[2])
    queue.fail(held[3], "boom")
    before = everything(queue)
    report = queue.snapshot(tmp_path / "snapshot")
    queue.complete_many(queue.lease_many(ACME, 9, worker_id="w"))
    assert restore(tmp_path / "snapshot", tmp_path / "restored").jobs == 9
    with Queue.open(tmp_path / "restored", QUICK) as restored:
        assert everything(restored) == before
        assert [scope.name for scope in restored.scopes()] == [None, "acme"]
        assert [restored.enqueue(ACME, "x", idempotency_key=f"k{n}").created_at for n in range(8)] == sorted(
            job.created_at for job in restored.list(ACME)
        )
        assert restored.fsck().is_clean
    assert report.directory == tmp_path / "snapshot"
    assert report.size_bytes > 0


def test_beside_workers_it_holds_all_that_was_acknowledged_before_and_a_prefix_of_the_rest(path, tmp_path, together):
    done = threading.Event()
    acknowledged = [0, 0, 0]

    def work(number):
        for i in range(400):
            job = queue.enqueue(ACME, f"w{number}", LARGE if i % 9 == 0 else b"", idempotency_key=f"{number} {i}")
            acknowledged[number] = i + 1
            lease = queue.lease_next(ACME, worker_id=f"w{number}")
            queue.complete(lease) if i % 2 else queue.release(lease)
            assert job.idempotency_key == f"{number} {i}"

    def snap():
        taken = []
        while not done.is_set() and len(taken) < 12:
            before = list(acknowledged)
            queue.snapshot(tmp_path / f"snapshot{len(taken)}")
            taken.append(before)
        return taken

    with Queue.open(path, QUICK) as queue:
        *_, taken = together(*(lambda n=n: work(n) for n in range(3)), snap)
        done.set()
    assert len(taken) > 1
    for number, before in enumerate(taken):
        restored = tmp_path / f"restored{number}"
        report = restore(tmp_path / f"snapshot{number}", restored)
        with Queue.open(restored, QUICK) as queue:
            found = queue.list(limit=1000) + queue.list(limit=1000, after=queue.list(limit=1000)[-1:][0])
            assert (len(found), report.corrupt) == (report.jobs, 0)
            assert queue.counts()[JobState.LEASED] == 0
            assert queue.fsck().is_clean
            for worker in range(3):
                mine = sorted(job.created_at for job in found if job.kind == f"w{worker}")
                keys = {job.idempotency_key for job in found if job.kind == f"w{worker}"}
                assert len(mine) >= before[worker]
                assert keys == {f"{worker} {i}" for i in range(len(mine))}


def test_the_directory_is_closed_to_others_and_is_no_queue(queue, tmp_path):
    os.umask(os.umask(0o022))
    queue.enqueue(ACME, "x")
    queue.snapshot(tmp_path / "snapshot")
    assert (tmp_path / "snapshot").stat().st_mode & 0o777 == 0o700
    with pytest.raises(InvalidPath):
        Queue.open(tmp_path / "snapshot", QUICK)


def test_the_owner_still_owns_its_directory_after_a_snapshot(queue, path, tmp_path, start):
    queue.snapshot(tmp_path / "snapshot")
    child = start("try:\n    Queue.open(PATH)\nexcept StoreLocked as error:\n    say(error.pid)\n", where=path)
    assert child.stdout.readline() == f"{os.getpid()}\n"
    with pytest.raises(StoreLocked):
        Queue.open(path)


def test_what_is_there_already_is_left_alone(queue, path, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    before = entries(tmp_path)
    for place in ("full", "empty", "link", "full/file", "none/snapshot", "queue", "queue/snapshot", "queue/../queue/s"):
        with pytest.raises(InvalidPath):
            queue.snapshot(tmp_path / place)
    with pytest.raises(InvalidPath):
        queue.snapshot(tmp_path / ("x" * 300))
    for place in ("", "a\0b", b"bytes", None, 7, "x" * 2000):
        with pytest.raises(InvalidArgument):
            queue.snapshot(place)
    (tmp_path / "inside").symlink_to(path)
    with pytest.raises(InvalidPath):
        queue.snapshot(tmp_path / "inside" / "snapshot")
    (tmp_path / "inside").unlink()
    assert entries(tmp_path) == before


def fail_with(error):
    def fail(*_):
        raise error

    return fail


@pytest.mark.parametrize("step", ["copy_to", "_sync_all", "rename"])
@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (OSError(28, "No space left"), StorageFull),
        (OSError(5, "I/O error"), StorageError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_a_failure_leaves_nothing_behind(queue, tmp_path, monkeypatch, step, error, raised):
    queue.enqueue_many(ACME, [JobSpec("x")] * 10)
    before = entries(tmp_path) - {str(found.relative_to(tmp_path)) for found in (tmp_path / "queue").rglob("*")}
    target = {"copy_to": queue._engine, "_sync_all": snapshots, "rename": os}[step]
    monkeypatch.setattr(target, step, fail_with(error), raising=False)
    with pytest.raises(raised):
        queue.snapshot(tmp_path / "snapshot")
    monkeypatch.undo()
    assert {found for found in entries(tmp_path) if not found.startswith("queue/")} == before
    queue.snapshot(tmp_path / "snapshot")


def test_two_at_once_to_one_place_make_one(queue, tmp_path, together):
    queue.enqueue_many(ACME, [JobSpec("x")] * 10)

    def snap():
        try:
            return queue.snapshot(tmp_path / "snapshot")
        except (InvalidPath, StorageError) as error:
            return error

    made = [outcome for outcome in together(snap, snap, snap) if not isinstance(outcome, Exception)]
    assert len(made) == 1
    assert [name for name in os.listdir(tmp_path) if name.startswith(".")] == []
    assert restore(tmp_path / "snapshot", tmp_path / "restored").jobs == 10


def test_a_closed_queue_and_one_in_memory_have_none(path, tmp_path):
    queue = Queue.open(path, QUICK)
    queue.close()
    with pytest.raises(StoreClosed):
        queue.snapshot(tmp_path / "snapshot")
    assert not (tmp_path / "snapshot").exists()
    with memory_queue() as volatile, pytest.raises(UnsupportedByEngine):
        volatile.snapshot(tmp_path / "snapshot")
