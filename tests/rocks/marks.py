"""The file telha.mark, read as docs/format.md has it: for tests of what is demanded at open."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

SLOT = 4096


class Mark(NamedTuple):
    """What is known to be on disk: rows up to a sequence number, and bytes by name of file."""

    generation: int
    sequence: int
    files: dict[str, int]


def read_mark(path: Path) -> Mark:
    """The newer of the two slots."""
    data = (path / "telha.mark").read_bytes()
    assert len(data) == 2 * SLOT
    return max(_slot(data[:SLOT]), _slot(data[SLOT:]))


def _slot(data: bytes) -> Mark:
    magic, crc, count, generation, sequence = struct.unpack(">8sIIQQ", data[:32])
    assert magic == b"telhamk1"
    assert crc == crc32c(data[12:])
    files = {}
    for at in range(32, 32 + 17 * count, 17):
        kind, number, size = struct.unpack(">BQQ", data[at : at + 17])
        files[f"MANIFEST-{number:06}" if kind == 0 else f"{number:06}.log"] = size
    return Mark(generation, sequence, files)


def crc32c(data: bytes) -> int:
    """The slow, plain form."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF
