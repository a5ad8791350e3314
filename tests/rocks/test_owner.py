"""One owner: a second opener is refused, whatever else happens to the files; a closed queue holds nothing."""

from __future__ import annotations

import os
import shutil

import pytest

from telha_queue.config import QueueConfig
from telha_queue.errors import StoreLocked
from telha_queue.job import JobState
from telha_queue.queue import Queue
from telha_queue.scope import Scope

ACME = Scope.named("acme")
QUICK = QueueConfig(durability="os")

OWNER = """
queue = Queue.open(PATH, QUICK)
queue.enqueue(ACME, "x")
say("open")
signal.pause()
"""
INTRUDER = """
try:
    Queue.open(PATH, QUICK)
    say("opened")
except StoreLocked as refusal:
    say(refusal.pid, refusal.path == PATH, f"process {refusal.pid}" in str(refusal))
"""


@pytest.fixture
def owner(start):
    """Another process that has the queue open."""
    child = start(OWNER)
    assert child.stdout.readline() == "open\n"
    return child


def test_a_second_opener_in_another_process_is_refused_with_the_owners_pid(ended, path):
    with Queue.open(path, QUICK) as queue:
        assert ended(INTRUDER) == [f"{os.getpid()} True True"]
        queue.enqueue(ACME, "x")
    assert ended(INTRUDER) == ["opened"]


def test_a_second_opener_in_the_same_process_is_refused_with_its_own_pid(path):
    with Queue.open(path, QUICK) as queue:
        for _ in range(3):
            with pytest.raises(StoreLocked, match=f"process {os.getpid()}") as refusal:
                Queue.open(path, QUICK)
            assert (refusal.value.pid, refusal.value.path) == (os.getpid(), str(path))
        queue.enqueue(ACME, "x")
        assert queue.counts()[JobState.PENDING] == 1


def test_another_spelling_of_the_path_is_the_same_directory(path, monkeypatch):
    with Queue.open(path, QUICK):
        monkeypatch.chdir(path)
        for spelling in (".", f"{path}/", f"{path}/../{path.name}", f"{path}//."):
            with pytest.raises(StoreLocked):
                Queue.open(spelling, QUICK)


def test_a_killed_owner_leaves_the_directory_free(owner, path):
    with pytest.raises(StoreLocked) as refusal:
        Queue.open(path, QUICK)
    assert refusal.value.pid == owner.pid
    owner.kill()
    owner.wait()
    with Queue.open(path, QUICK) as queue:
        assert queue.counts()[JobState.PENDING] == 1


def test_a_refused_opener_leaves_every_file_as_it_was(owner, path):
    before = {file.name: (file.stat().st_size, file.stat().st_mtime_ns) for file in path.iterdir()}
    with pytest.raises(StoreLocked):
        Queue.open(path, QUICK)
    assert {file.name: (file.stat().st_size, file.stat().st_mtime_ns) for file in path.iterdir()} == before
    assert (path / "telha.lock").read_text() == str(owner.pid)


@pytest.mark.parametrize("name", ["LOCK", "telha.lock"])
@pytest.mark.parametrize("mode", ["rb", "r+b", "ab"])
def test_opening_and_closing_a_lock_file_in_the_owner_does_not_drop_the_ownership(ended, path, name, mode):
    with Queue.open(path, QUICK) as queue:
        for _ in range(3):
            with (path / name).open(mode) as file:
                file.read() if mode == "rb" else None
        assert ended(INTRUDER) == [f"{os.getpid()} True True"]
        queue.enqueue(ACME, "x")
        assert queue.counts()[JobState.PENDING] == 1


def test_copying_the_live_directory_keeps_the_ownership_and_the_copy_is_a_queue_of_its_own(ended, path):  # D1
    copy = path.with_name("copy")
    with Queue.open(path, QUICK) as queue:
        ids = [queue.enqueue(ACME, "x", b"y" * 5000).job_id for _ in range(20)]
        shutil.copytree(path, copy)
        assert ended(INTRUDER) == [f"{os.getpid()} True True"]
        with Queue.open(copy, QUICK) as other:
            assert [job.job_id for job in other.list()] == ids
            assert all(job.payload == b"y" * 5000 for job in other.list())
            other.lease_many(ACME, 20, worker_id="w")
        assert queue.counts()[JobState.PENDING] == 20
        assert ended(INTRUDER, where=copy) == ["opened"]


def test_a_lock_file_that_was_removed_does_not_let_a_second_owner_in(ended, path):
    with Queue.open(path, QUICK) as queue:
        queue.enqueue(ACME, "x")
        (path / "telha.lock").unlink()
        told = ended(
            "try:\n    Queue.open(PATH, QUICK)\n    say('opened')\nexcept JobError as e:\n    say(type(e).__name__)"
        )
        assert told != ["opened"]
        queue.enqueue(ACME, "y")
        assert queue.counts()[JobState.PENDING] == 2


def test_a_lock_file_full_of_nonsense_is_no_obstacle_and_no_owner(path):
    Queue.open(path, QUICK).close()
    (path / "telha.lock").write_bytes(b"\xff nonsense\n" * 1000)
    with Queue.open(path, QUICK):
        assert (path / "telha.lock").read_text() == str(os.getpid())
        (path / "telha.lock").write_bytes(b"nonsense")
        with pytest.raises(StoreLocked) as refusal:
            Queue.open(path, QUICK)
        assert refusal.value.pid is None


def test_a_refused_opener_is_let_in_once_the_owner_has_closed(path):
    for _ in range(10):
        with Queue.open(path, QUICK), pytest.raises(StoreLocked):
            Queue.open(path, QUICK)
    Queue.open(path, QUICK).close()


@pytest.mark.parametrize("durability", ["sync", "group", "os"])
def test_a_closed_queue_holds_no_descriptor(ended, durability):
    program = """
def descriptors():
    return len(os.listdir("/proc/self/fd"))
before = descriptors()
queue = Queue.open(PATH, QueueConfig(durability=sys.argv[2], memtable_bytes=65536))
for n in range(20):
    queue.enqueue(ACME, "x", bytes(100_000))
queue.reopen()
queue.enqueue(ACME, "x")
assert descriptors() > before
queue.close()
assert descriptors() == before
"""
    ended(program, durability)
