"""The embedded engine: the compiled store, behind checks of the path it is given."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from telha_queue._rocks import Store, build_info, crc32c, mark_copy, refuse_in_child
from telha_queue.config import QueueConfig
from telha_queue.engine import Capabilities
from telha_queue.engines.places import LOCK_NAME, SNAPSHOT_NAME, refuse_inside_another
from telha_queue.engines.scope_names import KnownScopes, with_names
from telha_queue.errors import InvalidPath, InvalidType, path_error
from telha_queue.scope import Scope
from telha_queue.upkeep import FsckReport, SnapshotReport

__all__ = ["RocksEngine", "build_info", "crc32c", "mark_copy"]

MAX_PATH_BYTES = 1024
MODE = 0o700
"""Of the directory. Its files are made with 0600, see ext/watched_files.hpp."""
_OF_OTHERS = 0o077


class RocksEngine(Store):
    """A queue in a directory, over RocksDB. The verbs are the compiled ones of `Store`."""

    capabilities = Capabilities(durable=True, single_owner=True, native_keeper=True)

    def __init__(self, path: bytes, config: QueueConfig, recovers: bool = False) -> None:
        super().__init__(path, config, recovers)
        self._scopes = KnownScopes()

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], config: QueueConfig, *, create: bool = True, recovers: bool = False
    ) -> RocksEngine:
        """Open the directory, creating it (mode 0700) when it is missing and `create` is true.

        With `recovers` it is opened with what is left, when something is gone that was on disk.

        Raises InvalidPath before any file is made when the path is not a queue and cannot become one. A new directory
        is on disk, and the file in it that marks it as a queue, before the store makes anything more. From then on the
        store goes by the directory, not by the path.
        """
        refuse_in_child()
        where = checked_path(path)
        _prepare(where, create)
        return cls(os.fsencode(where), config, recovers)

    def name_scope(self, scope: bytes, name: str) -> None:
        """Keep the name of a scope."""
        super().name_scope(scope, name)
        self._scopes.learn(scope, name)

    def scope_of(self, scope: bytes) -> Scope:
        """The scope of a record, with its name."""
        return self._scopes.of(scope, self)

    def fsck(self, repair: bool) -> FsckReport:
        """Check every row, and put right what can be if asked to."""
        return with_names(self, repair, self.check_rows(repair))

    def snapshot(self, directory: str | os.PathLike[str]) -> SnapshotReport:
        """Make a directory that holds all of the store as of one moment."""
        from telha_queue.engines.snapshots import take_snapshot  # few programs need it

        return take_snapshot(self, directory)


def checked_path(path: str | os.PathLike[str]) -> str:
    """A path that a queue may have, as far as its text goes. Raises InvalidPath."""
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidType(f"a queue path is a str or a path, not {type(path).__name__}")
    where = os.fspath(path)
    if not isinstance(where, str) or not where or "\0" in where:
        raise InvalidPath(f"not a usable path: {where!r:.200}")
    try:
        size_bytes = len(os.fsencode(where))
    except UnicodeEncodeError:
        raise InvalidPath(f"not a usable path: {where!r:.200}") from None
    if size_bytes > MAX_PATH_BYTES:
        raise InvalidPath(f"the path is longer than {MAX_PATH_BYTES} bytes: {where!r:.64}...")
    # Without the "/" or "/." at its end, which would have a symbolic link followed before it is seen.
    return os.path.normpath(where) if where.endswith(("/", "/.")) else where


def _prepare(where: str, create: bool) -> None:
    """See that the directory is a queue, or one that may become a queue; make it when it is missing."""
    try:
        if create and not os.path.lexists(os.path.join(where, "CURRENT")):
            refuse_inside_another(where)
        mode = _mode(where, create)
        if stat.S_ISLNK(mode):
            raise InvalidPath(f"{where}: is a symbolic link; give the directory it points to")
        if not stat.S_ISDIR(mode):
            raise InvalidPath(f"{where}: is not a directory")
        names = os.listdir(where)
        # A list that is read while another process makes the queue may have later files and lack the first.
        if names and LOCK_NAME not in names and not os.path.lexists(os.path.join(where, LOCK_NAME)):
            if SNAPSHOT_NAME in names:
                raise InvalidPath(f"{where}: is a snapshot; telha restore makes a queue of it")
            raise InvalidPath(f"{where}: holds files that are not a queue's")
        if "CURRENT" in names:  # RocksDB makes it last
            return
        if not create:
            raise InvalidPath(f"{where}: there is no queue here")
        if not names and mode & _OF_OTHERS:
            os.chmod(where, mode & MODE)  # it was given to us: closed to others, not opened to us
        with suppress(PermissionError):  # a parent that this process cannot read was made by somebody else
            sync(os.path.dirname(os.path.realpath(where)))
    except OSError as error:
        raise path_error(where, error.errno) from None


def _mode(where: str, create: bool) -> int:
    """The mode of what is there. If nothing is, a directory is made."""
    try:
        return os.lstat(where).st_mode
    except FileNotFoundError:
        if not create:
            raise InvalidPath(f"{where}: there is no queue here") from None
    try:
        os.mkdir(where, MODE)
    except FileExistsError:
        pass  # another process was faster; which of the two owns it is decided by the lock
    except FileNotFoundError:
        raise InvalidPath(f"{where}: its parent directory does not exist") from None
    return os.lstat(where).st_mode


def sync(path: str) -> None:
    """Return when a file, or which files a directory has, is on disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
