"""An open queue is its directory, not its path: whatever the path comes to mean, nothing is made or removed there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from telha_queue import Queue, QueueConfig, Scope, restore
from telha_queue.errors import InvalidPath, StorageError, StoreLocked

ACME = Scope.named("acme")
SMALL = QueueConfig(durability="os", memtable_bytes=65536)

USE = """
import subprocess
def opened(path):
    queue = Queue.open(path, QueueConfig(durability=sys.argv[2], memtable_bytes=65536))
    for n in range(30):
        queue.enqueue(ACME, f"early{n}")
    return queue
def use(queue):  # so much that it begins new logs, writes table files and removes old logs
    for n in range(300):
        queue.enqueue(ACME, f"late{n}", os.urandom(1000))
    queue.flush()
    queue.reopen()
    queue.enqueue(ACME, "last")
    queue.snapshot(os.path.join(PATH, "snapshot"))
    assert sum(queue.counts(ACME).values()) == 331
"""


@pytest.fixture(params=["sync", "group", "os"])
def durability(request):
    return request.param


@pytest.fixture
def root(tmp_path) -> Path:
    """With the folders `one` and `two`, and a closed queue `two/jobs`."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    fill(tmp_path / "two" / "jobs")
    return tmp_path


def fill(path: Path) -> None:
    with Queue.open(path, SMALL) as queue:
        for n in range(50):
            queue.enqueue(ACME, f"other{n}", os.urandom(100))


def write_on(queue: Queue) -> None:
    """So much that it needs another file."""
    for _ in range(1000):
        queue.enqueue(ACME, "x", bytes(1000))


def files(path: Path) -> dict[str, bytes]:
    """What is in a directory, but for who owned it last."""
    return {found.name: found.read_bytes() for found in path.iterdir() if found.name != "telha.lock"}


def kinds(path: Path) -> list[str]:
    """Of all jobs of a queue that is sound."""
    with Queue.open(path, SMALL, create=False) as queue:
        assert queue.fsck().found == {}
        return [job.kind for job in queue.list(limit=1000)]


LATER = [f"early{n}" for n in range(30)] + [f"late{n}" for n in range(300)] + ["last"]
OTHER = [f"other{n}" for n in range(50)]


def test_a_relative_path_works_on_when_the_process_changes_its_directory(ended, tmp_path, durability):
    ended(USE + "os.chdir(PATH)\nqueue = opened('jobs')\nos.chdir('/')\nuse(queue)", durability, where=tmp_path)
    assert kinds(tmp_path / "jobs") == LATER
    restore(tmp_path / "snapshot", tmp_path / "restored")
    assert kinds(tmp_path / "restored") == LATER


@pytest.mark.parametrize("way", ["the process changes its directory", "a link in its path is turned"])
def test_another_queue_that_its_path_comes_to_mean_is_left_alone(ended, root, durability, way):
    before = files(root / "two" / "jobs")
    turn = "os.unlink('current'), os.symlink('two', 'current')"
    ended(
        USE + "os.chdir(PATH)\nos.symlink('one', 'current')\n"
        f"queue = opened(PATH + '/current/jobs')\n{turn}\nuse(queue)"
        if way.startswith("a link")
        else USE + "os.chdir(PATH + '/one')\nqueue = opened('jobs')\nos.chdir(PATH + '/two')\nuse(queue)",
        durability,
        where=root,
    )
    assert files(root / "two" / "jobs") == before
    assert kinds(root / "one" / "jobs") == LATER
    assert kinds(root / "two" / "jobs") == OTHER


def test_another_owner_at_its_path_and_a_queue_elsewhere_do_not_meet(ended, root, durability):
    ended(
        USE
        + """
os.chdir(PATH + "/two")
other = Queue.open("jobs", QUICK)
os.chdir(PATH + "/one")
queue = opened("jobs")
os.chdir(PATH + "/two")
use(queue)
other.reopen()
other.enqueue(ACME, "more")
os.kill(os.getpid(), signal.SIGKILL)
""",
        durability,
        where=root,
        code=-9,
    )
    assert kinds(root / "one" / "jobs") == LATER
    assert kinds(root / "two" / "jobs") == [*OTHER, "more"]


def test_a_queue_that_is_moved_away_goes_on_where_it_is_and_another_may_take_its_place(ended, root, durability):
    queue, bad = root / "jobs", root / "jobs.bad"
    with Queue.open(root / "two" / "jobs", SMALL) as other:
        other.snapshot(root / "saved")
    ended(
        USE
        + """
from telha_queue import restore
jobs = os.path.join(PATH, "jobs")
queue = opened(jobs)
os.rename(jobs, jobs + ".bad")
restore(os.path.join(PATH, "saved"), jobs)
with Queue.open(jobs) as other:
    use(queue)
    other.enqueue(ACME, "more")
try:
    Queue.open(jobs + ".bad")
except StoreLocked as refusal:
    say(refusal.pid == os.getpid())
os.kill(os.getpid(), signal.SIGKILL)
""",
        durability,
        where=root,
        code=-9,
    )
    assert kinds(queue) == [*OTHER, "more"]
    assert kinds(bad) == LATER


def test_a_queue_that_was_removed_makes_nothing_and_fails_when_it_needs_another_file(tmp_path):
    path = tmp_path / "jobs"
    queue = Queue.open(path, SMALL)
    shutil.rmtree(path)
    fill(path)
    before = files(path)
    with pytest.raises(StorageError, match=r"jobs \(deleted\)"):
        write_on(queue)
    with pytest.raises(StorageError):
        queue.reopen()
    with pytest.raises(StorageError):
        queue.snapshot(tmp_path / "snapshot")
    queue.close()
    assert files(path) == before
    assert kinds(path) == OTHER


def test_it_stays_owned_and_refuses_a_snapshot_inside_of_it_where_it_was_moved_to(tmp_path):
    with Queue.open(tmp_path / "jobs", SMALL) as queue:
        (tmp_path / "jobs").rename(tmp_path / "moved")
        with pytest.raises(StoreLocked, match="moved"):
            Queue.open(tmp_path / "moved", SMALL)
        with pytest.raises(InvalidPath, match="moved"):
            queue.snapshot(tmp_path / "moved" / "snapshot")
        assert Queue.open(tmp_path / "jobs", SMALL).close() is None


def test_an_error_names_the_directory_that_it_is_about(tmp_path):
    with Queue.open(tmp_path / "jobs", SMALL) as queue:
        (tmp_path / "jobs").rename(tmp_path / "moved")
        (tmp_path / "moved" / "CURRENT").write_text("nonsense")
        with pytest.raises(StorageError) as caught:
            queue.reopen()
        assert "/proc" not in str(caught.value)
    (tmp_path / "moved" / "CURRENT").unlink()
    (tmp_path / "moved" / "CURRENT").mkdir()
    with pytest.raises(StorageError, match=f"^{tmp_path}/moved: ") as caught:
        Queue.open(tmp_path / "moved", SMALL)
    assert "/proc" not in str(caught.value)
