"""Snapshots: a directory that holds all of a store as of one moment, and a queue's directory made of one.

Either is made under another name beside its place, fsynced and renamed, so that it is there as a whole or not at all.
A snapshot has a mark like that of a store, made last, which a restore holds it against. It holds regular files only.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from telha_queue.clock import MAX_TIME_US
from telha_queue.config import QueueConfig
from telha_queue.engines.places import LOCK_NAME, SNAPSHOT_NAME, refuse_inside_another
from telha_queue.engines.rocks import MODE, RocksEngine, checked_path, crc32c, mark_copy, sync
from telha_queue.errors import CorruptionError, InvalidPath, StorageError, path_error
from telha_queue.upkeep import RestoreReport, SnapshotReport

MARK_NAME = "telha.mark"
_LABEL = re.compile(rb"(telha snapshot 1\nseen_us (0|[1-9][0-9]{0,18})\n)crc32c ([0-9a-f]{8})\n")
_LABEL_BYTES = 100
"""More than a sound one has."""
_NOT_TAKEN = (SNAPSHOT_NAME, LOCK_NAME, "LOCK")
_FILE_MODE = 0o600
_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES)


def take_snapshot(store: RocksEngine, directory: str | os.PathLike[str]) -> SnapshotReport:
    """Make a snapshot of an open store, which others may go on using."""
    where = _free_place(directory, os.fsdecode(store.directory()))
    with _staged(where) as staged:
        sequence = store.copy_to(os.fsencode(staged))
        os.chmod(staged, MODE)
        seen_us = store.last_seen_us()  # after the copy was made, so that it knows nothing later
        named = Path(staged, SNAPSHOT_NAME)
        named.touch(_FILE_MODE)
        named.write_bytes(label(seen_us))
        _sync_all(staged)
        mark_copy(os.fsencode(staged), sequence)
    return SnapshotReport(Path(where), seen_us, sum(found.stat().st_size for found in Path(where).iterdir()))


def label(seen_us: int) -> bytes:
    """What a snapshot says of itself."""
    lines = b"telha snapshot 1\nseen_us %d\n" % seen_us
    return b"%scrc32c %08x\n" % (lines, crc32c(lines))


def restore_snapshot(snapshot: str | os.PathLike[str], directory: str | os.PathLike[str], now_us: int) -> RestoreReport:
    """Make a queue's directory of a snapshot, which stays as it is. No lease from before is valid in it."""
    source = checked_path(snapshot)
    files = _files(source)
    seen_us = _seen_us(source)
    where = _free_place(directory, source)
    with _staged(where) as staged:
        os.mkdir(staged, MODE)
        for file in files:
            if file.name not in _NOT_TAKEN:
                _take(file, os.path.join(staged, file.name))
        try:
            report = RestoreReport(Path(where), *_fenced(staged, now_us, seen_us))
        except StorageError as error:  # what is wrong with the copy is wrong with the snapshot
            raise type(error)(str(error).replace(staged, source)) from None
        _sync_all(staged)
    return report


def _fenced(staged: str, now_us: int, seen_us: int) -> tuple[int, int, int, int]:
    """What Store.fence returns, when all of it is on disk."""
    lock = os.path.join(staged, LOCK_NAME)
    store = RocksEngine(os.fsencode(staged), QueueConfig(durability="os"))
    try:
        fenced = store.fence(now_us, seen_us)
        store.reopen()  # which takes the fence from the log to table files: a copy without its log still has it
    finally:
        store.close()
    os.truncate(lock, 0)  # nobody owns it yet
    return fenced


def _free_place(directory: str | os.PathLike[str], source: str) -> str:
    """Where something may be made: nothing is there, its parent is, and it is not inside of what it is made from."""
    where = checked_path(directory)
    try:
        where = os.path.abspath(where)
        parent = os.path.realpath(os.path.dirname(where))
        inside = os.path.realpath(source)
        with suppress(FileNotFoundError):
            os.lstat(where)
            raise InvalidPath(f"{where}: exists already")
        refuse_inside_another(where)
    except OSError as error:  # the working directory may be gone
        raise path_error(where, error.errno) from None
    if not os.path.isdir(parent):
        raise InvalidPath(f"{where}: its parent directory does not exist")
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
            if os.path.lexists(where):
                raise InvalidPath(f"{where}: exists already")
            os.rename(staged, where)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        sync(parent)
    except OSError as error:
        raise path_error(where, error.errno) from error


def _files(source: str) -> list[os.DirEntry[str]]:
    """What a snapshot consists of. Raises InvalidPath for a directory that is none."""
    try:
        with os.scandir(source) as entries:
            files = {entry.name: entry for entry in entries}
        # What a link leads to may be any file at any time, so that a mark there holds for nothing here.
        others = sorted(name for name, entry in files.items() if not entry.is_file(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidPath(f"{source}: is not a snapshot") from None
    except OSError as error:
        raise path_error(source, error.errno) from None
    if SNAPSHOT_NAME not in files:
        raise InvalidPath(f"{source}: is not a snapshot")
    if others:
        raise CorruptionError(f"{source}: {others[0]} is not a regular file")
    if MARK_NAME not in files:
        raise CorruptionError(f"{source}: {MARK_NAME} is missing")
    return list(files.values())


def _seen_us(source: str) -> int:
    """The latest time that a snapshot knows of."""
    try:
        with Path(source, SNAPSHOT_NAME).open("rb") as named:
            text = named.read(_LABEL_BYTES)
    except OSError as error:
        raise path_error(source, error.errno) from None
    found = _LABEL.fullmatch(text)
    if found is None or int(found[3], 16) != crc32c(found[1]) or int(found[2]) > MAX_TIME_US:
        raise CorruptionError(f"{source}: {SNAPSHOT_NAME} is damaged")
    return int(found[2])


def _take(entry: os.DirEntry[str], target: str) -> None:
    """Link a table file, which is never written to again; copy any other."""
    if entry.name.endswith(".sst"):
        try:
            os.link(entry.path, target)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
        else:
            return
    shutil.copyfile(entry.path, target)
    os.chmod(target, _FILE_MODE)


def _sync_all(directory: str) -> None:
    for name in os.listdir(directory):
        sync(os.path.join(directory, name))
    sync(directory)
