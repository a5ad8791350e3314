"""Snapshots: a directory that holds all of a store as of one moment, and a queue's directory made of one.

Either is made under another name beside its place, fsynced and renamed, so that it is there as a whole or not at all.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from telha_queue.clock import MAX_TIME_US
from telha_queue.config import QueueConfig
from telha_queue.engines.rocks import LOCK_NAME, MODE, RocksEngine, checked_path
from telha_queue.errors import InvalidPath, JobError, StorageError, StorageFull
from telha_queue.upkeep import RestoreReport, SnapshotReport

MARK_NAME = "telha.snapshot"
"""Marks a directory as a snapshot, and holds the latest time that it knows of. See docs/format.md."""
_MARK = "telha snapshot 1\nseen_us "
_NOT_TAKEN = (MARK_NAME, LOCK_NAME, "LOCK", "telha.mark")
_FILE_MODE = 0o600
_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES)
_PATH_ERRORS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ENOTEMPTY, errno.ENOTDIR)


def take_snapshot(store: RocksEngine, directory: str | os.PathLike[str]) -> SnapshotReport:
    """Make a snapshot of an open store, which others may go on using."""
    where = _free_place(directory, store.where)
    with _staged(where) as staged:
        store.copy_to(os.fsencode(staged))
        os.chmod(staged, MODE)
        seen_us = store.last_seen_us()  # after the copy was made, so that it knows nothing later
        mark = Path(staged, MARK_NAME)
        mark.touch(_FILE_MODE)
        mark.write_text(f"{_MARK}{seen_us}\n")
    return SnapshotReport(Path(where), seen_us, sum(entry.stat().st_size for entry in os.scandir(where)))


def restore_snapshot(snapshot: str | os.PathLike[str], directory: str | os.PathLike[str], now_us: int) -> RestoreReport:
    """Make a queue's directory of a snapshot, which stays as it is. No lease from before is valid in it."""
    source = checked_path(snapshot)
    seen_us = _read_mark(source)
    where = _free_place(directory, source)
    with _staged(where) as staged:
        os.mkdir(staged, MODE)
        _copy(source, staged)
        lock = os.path.join(staged, LOCK_NAME)
        # Closing it fsyncs what is written, whatever the durability.
        store = RocksEngine(os.fsencode(staged), os.fsencode(lock), QueueConfig(durability="os"))
        try:
            jobs, leases_ended, corrupt, floor = store.fence(now_us, seen_us)
        finally:
            store.close()
        os.truncate(lock, 0)  # nobody owns it yet
    return RestoreReport(Path(where), jobs, leases_ended, corrupt, floor)


def _free_place(directory: str | os.PathLike[str], source: str) -> str:
    """Where something may be made: nothing is there, its parent is, and it is not inside of what it is made from."""
    where = os.path.abspath(checked_path(directory))
    parent = os.path.realpath(os.path.dirname(where))
    try:
        os.lstat(where)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise InvalidPath(f"{where}: {error.strerror}") from None
    else:
        raise InvalidPath(f"{where}: exists already")
    if not os.path.isdir(parent):
        raise InvalidPath(f"{where}: its parent directory does not exist")
    inside = os.path.realpath(source)
    if os.path.commonpath([inside, parent]) == inside:
        raise InvalidPath(f"{where}: is inside of {inside}")
    return where


@contextmanager
def _staged(where: str) -> Iterator[str]:
    """A path to make a directory at, which then comes to stand at `where`; gone if the block raises."""
    parent = os.path.dirname(where)
    staging = os.path.join(parent, f".telha.{os.urandom(8).hex()}.tmp")
    staged = os.path.join(staging, "made")
    try:
        os.mkdir(staging, MODE)
        try:
            yield staged
            _sync_all(staged)
            if os.path.lexists(where):
                raise InvalidPath(f"{where}: exists already")
            os.rename(staged, where)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        _sync(parent)
    except OSError as error:
        raise _kind_of(error)(f"{where}: {error.strerror}") from error


def _kind_of(error: OSError) -> type[JobError]:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull
    return InvalidPath if error.errno in _PATH_ERRORS else StorageError


def _read_mark(source: str) -> int:
    """The latest time that a snapshot knows of. Raises InvalidPath for a directory that is none."""
    try:
        text = Path(source, MARK_NAME).read_bytes().decode()
        if not text.startswith(_MARK):
            raise ValueError(text)
        seen_us = int(text.removeprefix(_MARK))
    except (OSError, ValueError):
        raise InvalidPath(f"{source}: is not a snapshot") from None
    return min(max(seen_us, 0), MAX_TIME_US)


def _copy(source: str, staged: str) -> None:
    """Link the table files, which are never written to again, and copy all others."""
    for entry in os.scandir(source):
        if entry.name in _NOT_TAKEN or not entry.is_file(follow_symlinks=False):
            continue
        target = os.path.join(staged, entry.name)
        if entry.name.endswith(".sst"):
            try:
                os.link(entry.path, target)
                continue
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
        shutil.copyfile(entry.path, target)
        os.chmod(target, _FILE_MODE)


def _sync_all(directory: str) -> None:
    for entry in os.scandir(directory):
        _sync(entry.path)
    _sync(directory)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
