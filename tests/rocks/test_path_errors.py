"""Whatever the operating system refuses at a path is one of our errors, and the same one wherever it was met."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from telha_queue import Queue, QueueConfig, Scope, restore
from telha_queue.errors import InvalidPath, StorageError, StorageFull, path_error

ACME = Scope.named("acme")
QUICK = QueueConfig(durability="os")
FULL = {errno.ENOSPC: StorageFull, errno.EDQUOT: StorageFull}
BROKEN = {errno.EIO: StorageError, errno.EROFS: StorageError, errno.EMFILE: StorageError, errno.ENOMEM: StorageError}
NO_PATH = {errno.EACCES: InvalidPath, errno.EPERM: InvalidPath, errno.ENAMETOOLONG: InvalidPath}
ERRORS = FULL | BROKEN | NO_PATH
JOB_ERRORS = (InvalidPath, StorageError)


def refuse(monkeypatch, call, number, below):
    """Have one call of `os` fail for whatever lies below a folder."""
    works = getattr(os, call)

    def fails(path, *more, **named):
        where = os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else os.path.abspath(path)
        if where.startswith(str(below)):
            raise OSError(number, os.strerror(number))
        return works(path, *more, **named)

    monkeypatch.setattr(os, call, fails)


@pytest.fixture
def empty(quick_path) -> Path:
    """A folder of this test, with an empty one in it that others may read."""
    (quick_path / "here" / "given").mkdir(parents=True)
    (quick_path / "here" / "given").chmod(0o755)
    return quick_path / "here"


@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize(
    ("call", "name"), [("lstat", "given"), ("listdir", "given"), ("chmod", "given"), ("mkdir", "new")]
)
def test_opening(empty, monkeypatch, call, name, number):
    refuse(monkeypatch, call, number, empty / name)
    with pytest.raises(JOB_ERRORS) as caught:
        Queue.open(empty / name, QUICK)
    monkeypatch.undo()
    assert type(caught.value) is ERRORS[number]
    assert str(caught.value) == f"{empty / name}: {os.strerror(number)}"
    assert [found.name for found in empty.rglob("*")] == ["given"]
    Queue.open(empty / name, QUICK).close()


@pytest.mark.parametrize("number", FULL | BROKEN, ids=errno.errorcode.get)
def test_a_new_directory_that_cannot_be_taken_to_disk_is_no_queue_yet(empty, monkeypatch, number):
    refuse(monkeypatch, "fsync", number, empty)
    for name in ("given", "new"):
        with pytest.raises(ERRORS[number]) as caught:
            Queue.open(empty / name, QUICK)
        assert type(caught.value) is ERRORS[number]
        assert list((empty / name).iterdir()) == []
    monkeypatch.undo()
    for name in ("given", "new"):
        Queue.open(empty / name, QUICK).close()


@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("call", ["mkdir", "rename", "fsync"])
@pytest.mark.parametrize("verb", ["snapshot", "restore"])
def test_snapshot_and_restore(empty, quick_path, monkeypatch, call, verb, number):
    with Queue.open(quick_path / "queue", QUICK) as queue:
        queue.enqueue(ACME, "x")
        queue.snapshot(quick_path / "made")
        refuse(monkeypatch, call, number, empty)
        with pytest.raises(JOB_ERRORS) as caught:
            queue.snapshot(empty / "s") if verb == "snapshot" else restore(quick_path / "made", empty / "s")
        monkeypatch.undo()
    assert type(caught.value) is ERRORS[number]
    assert str(caught.value) == f"{empty / 's'}: {os.strerror(number)}"
    assert [found.name for found in empty.iterdir()] == ["given"]


@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.get)
def test_a_snapshot_that_cannot_be_read(quick_path, monkeypatch, number):
    with Queue.open(quick_path / "queue", QUICK) as queue:
        queue.snapshot(quick_path / "snapshot")

    def fails(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "open", fails)
    with pytest.raises(JOB_ERRORS) as caught:
        restore(quick_path / "snapshot", quick_path / "restored")
    assert type(caught.value) is ERRORS[number]


def test_a_working_directory_that_is_gone(quick_path, monkeypatch):
    with Queue.open(quick_path / "queue", QUICK) as queue:
        queue.snapshot(quick_path / "snapshot")
        (quick_path / "gone").mkdir()
        monkeypatch.chdir(quick_path / "gone")
        (quick_path / "gone").rmdir()
        for call in (
            lambda: Queue.open("new", QUICK),
            lambda: queue.snapshot("new"),
            lambda: restore(quick_path / "snapshot", "new"),
            lambda: restore("snapshot", quick_path / "new"),
        ):
            with pytest.raises(InvalidPath):
                call()


def test_the_lock(quick_path):
    """It is opened by the compiled core; what keeps it from that is told by the same rule."""
    for name, number in (("directory", errno.EISDIR), ("link", errno.ELOOP)):
        lock = quick_path / name / "telha.lock"
        lock.parent.mkdir()
        lock.mkdir() if name == "directory" else lock.symlink_to(quick_path)
        with pytest.raises(InvalidPath) as caught:
            Queue.open(lock.parent, QUICK)
        assert str(caught.value) == str(path_error(str(lock.parent), number))
