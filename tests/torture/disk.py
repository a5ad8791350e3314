"""What a disk may hold after a power cut, from the calls of a trace.

Certain is what was synced: the bytes of a file up to its newest fsync, the entries of a folder up to its newest fsync,
and the entry that a file was made with once it was synced itself, as ext4, xfs and btrfs do it. All else may be there,
or in part, or not at all; which of it is a choice of the image. Files lose their tails, and entries come and go,
independently of each other: POSIX orders nothing here, though a file system may.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

from tests.torture.trace import Call

PAGE = 4096
TAILS = ("dropped", "cut", "zeroed", "kept", "mixed")
"""Of bytes not synced: none is there; those up to a random one; pages at random, the others read as zeros; all; each
file in its own way."""
ENTRIES = ("none", "first", "any", "all")
"""Of entries not synced (files made, renamed, removed): none; those up to a random one; each or not; all."""


class File:
    """A file's bytes as the process sees them and as the disk certainly has them."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self.synced = bytearray()
        self._dirty: list[tuple[int, int]] = []
        self._is_cut = False

    def write(self, at: int, data: bytes) -> None:
        if at > len(self.bytes):
            self.bytes.extend(bytes(at - len(self.bytes)))
        self.bytes[at : at + len(data)] = data
        self._dirty.append((at, at + len(data)))

    def resize(self, size: int) -> None:
        self._is_cut |= size < len(self.bytes)
        del self.bytes[size:]
        self.bytes.extend(bytes(size - len(self.bytes)))
        self._dirty.append((0, 0))

    @property
    def is_synced(self) -> bool:
        return not self._dirty

    def sync(self) -> None:
        if self._is_cut:
            self.synced = bytearray(self.bytes)
        else:
            self.synced.extend(bytes(len(self.bytes) - len(self.synced)))
            for begin, end in self._dirty:
                self.synced[begin:end] = self.bytes[begin:end]
        self._dirty.clear()
        self._is_cut = False

    def after_cut(self, tail: str, chance: Random) -> bytes:
        """What may be there."""
        if tail == "mixed":
            tail = chance.choice(TAILS[:-1])
        if tail == "kept" or not self._dirty:
            return bytes(self.bytes)
        if tail == "dropped" or self._is_cut:
            return bytes(self.synced)
        if tail == "cut":
            size = chance.randint(len(self.synced), max(len(self.synced), len(self.bytes)))
            return bytes(self.synced + self.bytes[len(self.synced) : size])
        found = bytearray(self.synced.ljust(len(self.bytes), b"\0"))
        for page in range(0, len(found), PAGE):
            if chance.random() < 0.5:
                found[page : page + PAGE] = self.bytes[page : page + PAGE]
        return bytes(found)


class Disk:
    """Every file and folder under one root, while the calls of a trace are carried out one by one."""

    def __init__(self) -> None:
        self.names: dict[str, File] = {}
        self.synced_names: dict[str, File] = {}
        self.folders: set[str] = set()
        self.synced_folders: set[str] = set()
        """Folders whose own entry is synced: somebody has synced the folder they are in."""
        self._pending: list[tuple[str, str, File | None]] = []
        """Changes of entries not synced: (path that goes or "", path that comes or "", file)."""
        self._open: dict[int, File | str] = {}

    def carry_out(self, call: Call) -> None:
        """Take in the next call."""
        kind, held = call.kind, self._open.get(call.fd)
        if kind == b"O":
            self._opened(call)
        elif kind == b"C":
            self._open.pop(call.fd, None)
        elif kind == b"W" and isinstance(held, File):
            held.write(call.a, call.data)
        elif kind == b"T" and isinstance(held, File):
            held.resize(call.a)
        elif kind == b"L" and isinstance(held, File):
            if call.a == 0 and call.b > len(held.bytes):  # mode 0 makes it longer; RocksDB keeps the size
                held.resize(call.b)
        elif kind == b"S":
            if isinstance(held, File):
                held.sync()
                self._sync_own_entry(held)
            else:
                self._sync_folder(str(held))
        elif kind == b"M":
            self.folders.add(call.path)
        elif kind == b"R":
            self._move(call.path, call.data.decode(), self.names.pop(call.path))
        elif kind == b"H":
            self._move("", call.data.decode(), self.names[call.path])
        elif kind == b"U":
            self._move(call.path, "", self.names.pop(call.path, None))

    def is_certain(self, path: str) -> bool:
        """Whether a file would be there whole."""
        return path in self.synced_names and self.synced_names[path].is_synced

    def after_cut(self, tail: str, entries: str, chance: Random) -> dict[str, bytes]:
        """One thing that may be on the disk if the power went now: the bytes of each file, by path."""
        names = dict(self.synced_names)
        first = chance.randint(0, len(self._pending))
        for n, (gone, came, file) in enumerate(self._pending):
            happened = {"none": False, "first": n < first, "any": chance.random() < 0.5, "all": True}[entries]
            if not happened:
                continue
            names.pop(gone, None)
            if came and file is not None:
                names[came] = file
        return {path: file.after_cut(tail, chance) for path, file in names.items()}

    def _opened(self, call: Call) -> None:
        if call.fd < 0:
            return
        if (
            call.a & os.O_DIRECTORY
            or call.path in self.folders
            or (call.path not in self.names and not _writes(call.a))
        ):
            self._open[call.fd] = call.path
            return
        if call.path not in self.names:
            self._move("", call.path, File())
        if call.a & os.O_TRUNC and self.names[call.path].bytes:
            self.names[call.path].resize(0)
        self._open[call.fd] = self.names[call.path]

    def _move(self, gone: str, came: str, file: File | None) -> None:
        if came and file is not None:
            self.names[came] = file
        self._pending.append((gone, came, file))

    def _sync_own_entry(self, file: File) -> None:
        for n, (gone, path, made) in enumerate(self._pending):
            if made is file and path and not gone:
                self.synced_names[path] = file
                # What came of that name before is over: it must not be undone or done once more.
                earlier = [(_but(gone, path), _but(came, path), made) for gone, came, made in self._pending[:n]]
                self._pending[: n + 1] = [change for change in earlier if change[0] or change[1]]
                return

    def _sync_folder(self, folder: str) -> None:
        self.synced_folders |= {path for path in self.folders if os.path.dirname(path) == folder}
        kept = []
        for gone, came, file in self._pending:
            if os.path.dirname(came or gone) != folder:
                kept.append((gone, came, file))
                continue
            self.synced_names.pop(gone, None)
            if came and file is not None:
                self.synced_names[came] = file
        self._pending = kept


def lay_out(files: dict[str, bytes], was: Path, folder: Path) -> None:
    """Write an image, made of files under `was`, to another folder."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path, data in files.items():
        (folder / Path(path).relative_to(was)).write_bytes(data)


def _but(name: str, other: str) -> str:
    return "" if name == other else name


def _writes(flags: int) -> bool:
    return bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
