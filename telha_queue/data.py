"""Rows of a program's own beside its jobs: named families of keys and values, written in transactions.

Knows how a row's key is made of family and key; knows nothing of jobs.
"""

from __future__ import annotations

from telha_queue import arguments as check
from telha_queue.config import MAX_BATCH_BYTES
from telha_queue.engine import Engine
from telha_queue.errors import InvalidArgument

MAX_FAMILY_BYTES = 64
MAX_KEY_BYTES = 1024
MAX_SCAN = 1000

Rows = list[tuple[bytes, bytes]]


def family_prefix(name: str) -> bytes:
    """What the stored keys of a family begin with: no other family's do."""
    encoded = check.name("the family's name", name, MAX_FAMILY_BYTES).encode()
    return bytes([len(encoded)]) + encoded


def row_key(name: str, key: bytes) -> bytes:
    """The stored key of a row."""
    checked = check.blob("key", key, MAX_KEY_BYTES)
    if not checked:
        raise InvalidArgument("key is empty")
    return family_prefix(name) + checked


class Data:
    """One family of a program's own rows, to be read. Safe to use from many threads.

    They are written by `Transaction.put` and `delete` only. Reads see what was committed.
    """

    def __init__(self, name: str, engine: Engine) -> None:
        """Made by `Queue.data`."""
        self._name = name
        self._prefix = family_prefix(name)
        self._engine = engine

    @property
    def name(self) -> str:
        """The family's name."""
        return self._name

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, or None. Raises StoreClosed after the queue is closed."""
        return self._engine.data_get(row_key(self._name, key))

    def scan(self, prefix: bytes = b"", *, after: bytes | None = None, limit: int = 100) -> Rows:
        """Up to `limit` (1 to 1,000) keys that begin with a prefix, with their values, in the order of the keys.

        Pass the last key of one page as `after` to get the next. A page ends early before it comes to more than
        16 MiB, but not before it has one row: only an empty one is the last.
        """
        within = self._prefix + check.blob("prefix", prefix, MAX_KEY_BYTES)
        behind = within[:-1] if after is None else self._prefix + check.blob("after", after, MAX_KEY_BYTES)
        at_most = check.whole("limit", limit, 1, MAX_SCAN)
        rows = self._engine.data_scan(within, behind, at_most, MAX_BATCH_BYTES)
        return [(key[len(self._prefix) :], value) for key, value in rows]
