"""The rows of the memory engine: what the column families `jobs` and `ids` are on disk, as a sorted list of keys.

It knows where a job stands, and in which order; it knows nothing of verbs, of time or of threads.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from heapq import merge

from telha_queue._codec import encode_key
from telha_queue.job import JobState
from telha_queue.record import KEY_BYTES, RecordFields
from telha_queue.scope import SCOPE_BYTES

_BEHIND_STATE = SCOPE_BYTES + 1
"""Where (priority, created_at, job_id) starts in a key: the order of leasing over all scopes."""


class SortedRows:
    """Job records by their 58-byte key. Do not put or move a row while going through an iterator of keys."""

    def __init__(self) -> None:
        self._keys: list[bytes] = []
        self._fields: dict[bytes, RecordFields] = {}
        self._key_of: dict[bytes, bytes] = {}

    def __getitem__(self, key: bytes) -> RecordFields:
        return self._fields[key]

    def put(self, scope: bytes, fields: RecordFields) -> bytes:
        """Add the row of a new job; returns its key."""
        key = encode_key(scope, fields.state, fields.priority, fields.created_at, fields.job_id)
        insort(self._keys, key)
        self._fields[key] = fields
        self._key_of[fields.job_id] = key
        return key

    def move(self, key: bytes, fields: RecordFields) -> bytes:
        """Delete a row and put the job's new one; returns its key."""
        del self._fields[key]
        del self._keys[bisect_left(self._keys, key)]
        return self.put(key[:SCOPE_BYTES], fields)

    def find(self, job_id: bytes) -> bytes | None:
        """The key of a job at present."""
        return self._key_of.get(job_id)

    def keys(self, scope: bytes | None, state: JobState | None, after: bytes = b"") -> Iterator[bytes]:
        """Keys of one scope or all, in one state or any, behind a key; in key order."""
        for prefix in self._prefixes(scope, state):
            first, end = self._span(prefix)
            for index in range(max(first, bisect_right(self._keys, after)), end):
                yield self._keys[index]

    def pending(self, scope: bytes | None) -> Iterator[bytes]:
        """Keys of Pending jobs in the order in which they are leased."""
        scopes = self.scopes() if scope is None else [scope]
        return merge(*(self.keys(key, JobState.PENDING) for key in scopes), key=lambda key: key[_BEHIND_STATE:])

    def count(self, scope: bytes | None, state: JobState) -> int:
        """Number of jobs in a state."""
        spans = map(self._span, self._prefixes(scope, state))
        return sum(end - first for first, end in spans)

    def scopes(self) -> list[bytes]:
        """Scopes that have a job, in key order."""
        found = []
        index = 0
        while index < len(self._keys):
            scope = self._keys[index][:SCOPE_BYTES]
            found.append(scope)
            index = self._span(scope)[1]
        return found

    def clear(self) -> None:
        """Forget every row."""
        self._keys.clear()
        self._fields.clear()
        self._key_of.clear()

    def _prefixes(self, scope: bytes | None, state: JobState | None) -> list[bytes]:
        scopes = self.scopes() if scope is None else [scope]
        return scopes if state is None else [key + bytes([state]) for key in scopes]

    def _span(self, prefix: bytes) -> tuple[int, int]:
        """First index and end of the keys that start with a prefix."""
        first = bisect_left(self._keys, prefix)
        return first, bisect_right(self._keys, prefix.ljust(KEY_BYTES, b"\xff"), first)
