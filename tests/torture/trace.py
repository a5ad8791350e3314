"""Reads what shim.c wrote down: every call that reached the file system and every line that was told, in one order."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HEAD = struct.Struct("<ciqqII")
NOT_NUMBERED = (b"A", b"C")
"""Lines and closes have no number: neither is made to fail."""
WORDS = {b"O": "open", b"W": "write", b"S": "sync", b"R": "rename", b"U": "unlink", b"M": "mkdir", b"T": "truncate"}
WORDS |= {b"r": "read", b"L": "allocate", b"k": "lock", b"o": "opendir", b"H": "link"}


class Call(NamedTuple):
    """One call. What the fields mean for each kind stands in disk.py, which carries them out."""

    kind: bytes
    fd: int
    a: int
    b: int
    path: str
    data: bytes


def read(path: Path) -> Iterator[Call]:
    """All calls in order. A record that a kill cut short ends it."""
    text = path.read_bytes()
    at = 0
    while at + HEAD.size <= len(text):
        kind, fd, a, b, path_bytes, data_bytes = HEAD.unpack_from(text, at)
        middle = at + HEAD.size + path_bytes
        if middle + data_bytes > len(text):
            return
        yield Call(kind, fd, a, b, text[at + HEAD.size : middle].decode(), text[middle : middle + data_bytes])
        at = middle + data_bytes


def kinds(path: Path) -> list[str]:
    """What each numbered call does, in words: number N, of which TELHA_SHIM_AT may speak, is the Nth."""
    return [WORDS.get(call.kind, "other") for call in read(path) if call.kind not in NOT_NUMBERED]
