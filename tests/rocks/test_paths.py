"""Paths: what cannot be a queue is refused before any file is made."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from telha_queue.config import QueueConfig
from telha_queue.errors import InvalidPath, InvalidType, StoreLocked
from telha_queue.queue import Queue

QUICK = QueueConfig(durability="os")
NOBODY = 65534


def everything(root: Path) -> list[str]:
    return sorted(f"{file} {file.lstat().st_mode:o}" for file in root.rglob("*"))


@pytest.fixture
def refused(tmp_path):
    """refused(path): opening it raises InvalidPath and makes nothing, nowhere near."""

    def check(path, **more):
        before = everything(tmp_path)
        with pytest.raises(InvalidPath) as caught:
            Queue.open(path, QUICK, **more)
        assert everything(tmp_path) == before
        return str(caught.value)

    return check


def test_empty_and_nul_are_no_paths(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused("")
    refused("queue\0behind")
    refused(str(tmp_path / "queue\0behind"))


def test_text_that_no_file_name_can_be_is_no_path(refused, tmp_path):
    refused(str(tmp_path / "queue\ud800"))


@pytest.mark.parametrize("path", [None, 7, True, b"queue", object()])
def test_a_path_of_another_type_is_refused(path):
    with pytest.raises(InvalidType):
        Queue.open(path, QUICK)


def test_a_file_is_no_queue(refused, tmp_path):
    (tmp_path / "file").write_text("mine")
    assert "not a directory" in refused(tmp_path / "file")
    refused(tmp_path / "file" / "queue")
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("ending", ["", "/", "/."])
def test_a_symbolic_link_is_refused_whatever_it_points_to(refused, tmp_path, ending):
    (tmp_path / "empty").mkdir()
    Queue.open(tmp_path / "queue", QUICK).close()
    for target in ("empty", "queue", "nowhere"):
        link = tmp_path / f"to-{target}"
        link.symlink_to(tmp_path / target)
        refused(f"{link}{ending}")


def test_a_link_in_the_middle_of_a_path_is_none_of_our_business(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    Queue.open(tmp_path / "link" / "queue", QUICK).close()
    assert (tmp_path / "real" / "queue" / "telha.lock").exists()


def test_a_lock_file_that_is_a_link_or_a_directory_is_refused(refused, tmp_path):
    (tmp_path / "mine").write_text("mine")
    for name in ("link", "directory"):
        (tmp_path / name).mkdir()
    (tmp_path / "link" / "telha.lock").symlink_to(tmp_path / "mine")
    (tmp_path / "directory" / "telha.lock").mkdir()
    refused(tmp_path / "link")
    refused(tmp_path / "directory")
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_missing_parent_is_not_made(refused, tmp_path):
    assert "parent" in refused(tmp_path / "missing" / "queue")


def test_names_and_paths_that_are_too_long_are_refused(refused, tmp_path):
    refused(tmp_path / ("n" * 300))
    assert len(refused(str(tmp_path) + "/long" * 1000)) < 300
    refused(tmp_path / ("é" * 140))  # 280 bytes


def test_a_directory_with_files_of_somebody_else_is_refused(refused, tmp_path):
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    for name in (".hidden", "CURRENT"):
        (foreign / name).write_text("mine")
        assert "not a queue's" in refused(foreign)
    assert (foreign / "CURRENT").read_text() == "mine"


def test_create_false_finds_no_queue_where_there_is_none(refused, tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("missing", "empty", "missing/queue"):
        assert "no queue" in refused(tmp_path / name, create=False)


def test_create_false_opens_a_queue_that_is_there(path):
    Queue.open(path, QUICK).close()
    Queue.open(path, QUICK, create=False).close()


def test_create_false_on_a_directory_whose_creator_died_early_says_that_there_is_no_queue(refused, tmp_path):
    (tmp_path / "early").mkdir()
    (tmp_path / "early" / "telha.lock").write_text("1")
    with pytest.raises(InvalidPath, match="no queue"):
        Queue.open(tmp_path / "early", QUICK, create=False)
    Queue.open(tmp_path / "early", QUICK).close()


def test_a_path_that_speaks_of_locks_is_not_mistaken_for_a_lock(tmp_path):
    path = tmp_path / "LOCKS"
    Queue.open(path, QUICK).close()
    (path / "CURRENT").write_text("MANIFEST-999999\n")
    with pytest.raises(Exception, match="LOCKS") as caught:
        Queue.open(path, QUICK)
    assert not isinstance(caught.value, StoreLocked)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_the_directory_is_for_its_owner_alone(path, mask):
    previous = os.umask(mask)
    try:
        Queue.open(path, QUICK).close()
    finally:
        os.umask(previous)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE((path / "telha.lock").stat().st_mode) & 0o077 == 0


def test_names_that_are_legal_but_odd_work(tmp_path):
    for name in (" ", "é☃", "-rf", "a\nb", "%s%d", "n" * 255, os.fsdecode(b"\xff\xfe")):
        Queue.open(tmp_path / name, QUICK).close()
        assert (tmp_path / name / "telha.lock").exists()


DENIED = {
    "parent that cannot be searched": ("{root}/closed/queue", "closed", 0o000),
    "parent that cannot be written": ("{root}/closed/queue", "closed", 0o555),
    "directory that cannot be listed": ("{root}/closed", "closed", 0o311),
    "directory that cannot be written": ("{root}/closed", "closed", 0o555),
}


@pytest.mark.parametrize("case", DENIED)
def test_without_permission_nothing_is_made(ended, tmp_path, case):
    where, name, mode = DENIED[case]
    root = _as_another_user(tmp_path)
    (root / name).mkdir()
    os.chown(root / name, *_owner())
    (root / name).chmod(mode)
    program = f"""
import telha_queue.engines.rocks  # now: the other user may not be able to read this source tree
if os.getuid() == 0:
    os.setgroups([]), os.setgid({NOBODY}), os.setuid({NOBODY})
try:
    Queue.open(PATH, QUICK)
except InvalidPath as refusal:
    say("refused" if "ermission" in str(refusal) else refusal)
"""
    assert ended(program, where=Path(where.format(root=root))) == ["refused"]
    (root / name).chmod(0o700)
    assert not list((root / name).iterdir())


def test_a_queue_of_another_user_is_refused(ended, tmp_path):
    root = _as_another_user(tmp_path)
    Queue.open(root / "queue", QUICK).close()
    (root / "queue").chmod(0o755)
    if os.getuid() != 0:
        pytest.skip("needs a second user")
    program = f"""
import telha_queue.engines.rocks
os.setgroups([]), os.setgid({NOBODY}), os.setuid({NOBODY})
try:
    Queue.open(PATH, QUICK)
except InvalidPath as refusal:
    say("refused")
"""
    assert ended(program, where=root / "queue") == ["refused"]


def _owner() -> tuple[int, int]:
    return (NOBODY, NOBODY) if os.getuid() == 0 else (os.getuid(), os.getgid())


def _as_another_user(tmp_path: Path) -> Path:
    """A directory that another user can reach, and this one too."""
    for directory in (tmp_path, *tmp_path.parents):
        if directory.owner() == tmp_path.owner() and directory != Path("/"):
            directory.chmod(directory.stat().st_mode | 0o055)
        if directory == Path(os.path.realpath("/tmp")):
            break
    return tmp_path


def test_a_queue_that_was_removed_can_be_made_again(path):
    Queue.open(path, QUICK).close()
    shutil.rmtree(path)
    Queue.open(path, QUICK).close()
