"""The rows of a program's own, as the memory engine keeps them. Knows keys and values; knows nothing of jobs."""

from __future__ import annotations

from collections.abc import Sequence

from telha_queue.engine import Put
from telha_queue.engines.locked import Locked


class OwnRows(Locked):
    """What the column family `data` is on disk."""

    def __init__(self) -> None:
        super().__init__()
        self._data: dict[bytes, bytes] = {}

    def data_get(self, key: bytes) -> bytes | None:
        """The value of a row, or None."""
        with self._locked():
            return self._data.get(key)

    def data_scan(self, prefix: bytes, after: bytes, limit: int, max_bytes: int) -> list[tuple[bytes, bytes]]:
        """Rows in key order."""
        found: list[tuple[bytes, bytes]] = []
        with self._locked():
            for key in sorted(key for key in self._data if key.startswith(prefix) and key > after)[:limit]:
                max_bytes -= len(key) + len(self._data[key])
                if found and max_bytes < 0:
                    break
                found.append((key, self._data[key]))
        return found

    def _put(self, puts: Sequence[Put]) -> None:
        """Called with the lock held."""
        for key, value in puts:
            self._data.pop(key, None)
            if value is not None:
                self._data[key] = value
