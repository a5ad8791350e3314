"""Snapshots and restores that are cut short: the queue is none the worse, and what is half made is nobody's."""

from __future__ import annotations

import os

import pytest

from telha_queue import JobSpec, JobState, Queue, QueueConfig, Scope, restore
from telha_queue.config import DURABILITIES
from telha_queue.errors import InvalidPath

ACME = Scope.named("acme")
QUICK = QueueConfig(durability="os")


@pytest.mark.parametrize("durability", DURABILITIES)
def test_every_durability_has_snapshots_of_all_that_was_acknowledged(path, tmp_path, durability):
    with Queue.open(path, QueueConfig(durability=durability)) as queue:
        for number in range(5):
            queue.enqueue(ACME, "x")
            queue.snapshot(tmp_path / f"{number}")
            assert restore(tmp_path / f"{number}", tmp_path / f"restored{number}").jobs == number + 1


@pytest.mark.parametrize("step", ["snapshot", "restore"])
def test_a_process_that_is_killed_meanwhile_leaves_a_whole_one_or_none(start, path, tmp_path, step):
    with Queue.open(path, QUICK) as queue:
        queue.enqueue_many(ACME, [JobSpec("x", b"p" * 4000)] * 500)
        queue.snapshot(tmp_path / "given")
    program = """
from telha_queue import restore
say("ready")
for number in range(10_000):
    if sys.argv[2] == "restore":
        restore(f"{PATH}/../given", f"{PATH}/../made{number}")
        continue
    with Queue.open(PATH, QUICK) as queue:
        queue.enqueue(ACME, "x")
        queue.snapshot(f"{PATH}/../made{number}")
        say(number)
"""
    made = 0
    for kill_after in range(3):
        child = start(program, step)
        assert child.stdout.readline() == "ready\n"
        while len([name for name in os.listdir(tmp_path) if name.startswith("made")]) < kill_after:
            assert child.poll() is None
        child.kill()
        child.wait()
        for name in [name for name in os.listdir(tmp_path) if name.startswith("made")]:
            made += 1
            whole = tmp_path / f"checked{made}"
            if step == "snapshot":
                restore(tmp_path / name, whole)
            else:
                (tmp_path / name).rename(whole)
            with Queue.open(whole, QUICK, create=False) as queue:
                assert queue.counts()[JobState.PENDING] >= 500
                assert queue.fsck().is_clean
            if step == "snapshot":
                (tmp_path / name).rename(tmp_path / f"done{made}")
        left = {name for name in os.listdir(tmp_path) if name.startswith(".") and name.endswith(".tmp")}
        others = set(os.listdir(tmp_path)) - left
        assert all(name.startswith(("checked", "done", "given", "queue")) for name in others)
        assert len(left) <= kill_after + 1
    assert made
    with Queue.open(path, QUICK) as queue:
        assert queue.fsck().is_clean


def test_after_a_failed_write_there_is_no_snapshot_and_no_crash(ended, path):
    ended("""
import resource
queue = Queue.open(PATH, QueueConfig(durability="os", memtable_bytes=65536))
resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 3, 4096))
try:
    while True:
        queue.enqueue(ACME, "x", b"p" * 400)
except StorageError:
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
for _ in range(3):
    try:
        queue.snapshot(f"{PATH}/../made")
    except StorageError as error:
        assert "an earlier write failed" in str(error), error
    else:
        raise AssertionError("it was made")
    assert sorted(os.listdir(f"{PATH}/..")) == ["queue"]
try:
    queue.fsck()
except StorageError:
    pass
try:
    queue.close()
except StorageError:
    pass
with Queue.open(PATH) as queue:
    queue.snapshot(f"{PATH}/../made")
""")


def test_a_snapshot_that_finds_no_descriptor_fails_and_can_be_made_later(ended, path):
    ended("""
import resource
queue = Queue.open(PATH, QUICK)
queue.enqueue_many(ACME, [JobSpec("x", b"p" * 400)] * 100)
used = len(os.listdir("/proc/self/fd"))
for more in range(1, 12):
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + more, 4096))
    try:
        queue.snapshot(f"{PATH}/../made{more}")
    except StorageError as error:
        resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
        assert sorted(os.listdir(f"{PATH}/..")) == ["queue"]
        continue
    break
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
try:
    queue.close()
except StorageError:
    pass
with Queue.open(PATH) as queue:
    assert queue.counts()[JobState.PENDING] == 100
    queue.snapshot(f"{PATH}/../last")
""")


def test_a_snapshot_is_no_queue_and_says_what_makes_one_of_it(path):
    with Queue.open(path) as queue:
        queue.snapshot(path.with_name("snapshot"))
    with pytest.raises(InvalidPath, match="is a snapshot; telha restore makes a queue of it"):
        Queue.open(path.with_name("snapshot"))
