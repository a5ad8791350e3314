"""The jobs that a memory engine stores: what they are, and the verbs that only read them. Moves none."""

from __future__ import annotations

from itertools import islice
from uuid import UUID

from telha_queue._codec import encode_record
from telha_queue.engine import JobRecords, Kinds, ScopeNames
from telha_queue.engines.own_rows import OwnRows
from telha_queue.engines.sorted_rows import SortedRows
from telha_queue.errors import JobNotFound
from telha_queue.job import JobRecord, JobState
from telha_queue.scope import SCOPE_BYTES, Scope, scope_as_stored
from telha_queue.transitions import is_expired


class StoredJobs(OwnRows):
    """Every job, and what stands beside it; `engine.Engine` says what each verb means."""

    def __init__(self) -> None:
        super().__init__()
        self._rows = SortedRows()
        self._payloads: dict[bytes, bytes] = {}
        self._results: dict[bytes, bytes] = {}
        self._names: dict[bytes, str] = {}
        self._by_idempotency: dict[tuple[bytes, str], bytes] = {}
        self._last_created_us = 0
        self._last_seen_us = 0

    def get(self, scope: bytes, job_id: bytes) -> JobRecord:
        with self._locked():
            return self._record(self._find(scope, job_id))

    def find(self, job_id: bytes) -> JobRecord:
        with self._locked():
            return self._record(self._find(None, job_id))

    def list(
        self, scope: bytes | None, state: JobState | None, kinds: Kinds, limit: int, after: bytes | None
    ) -> JobRecords:
        with self._locked():
            keys = self._rows.keys(scope, state, after or b"")
            wanted = (key for key in keys if is_wanted(self._rows[key].kind, kinds))
            return [self._record(key) for key in islice(wanted, limit)]

    def counts(self, scope: bytes | None) -> dict[JobState, int]:
        with self._locked():
            return {state: self._rows.count(scope, state) for state in JobState}

    def scopes(self) -> ScopeNames:
        with self._locked():
            return [(scope, self._names.get(scope)) for scope in self._rows.scopes()]

    def last_seen_us(self) -> int:
        """The latest time at which a job was stored or moved."""
        with self._locked():
            return self._last_seen_us

    # Waiting.

    def next_due_us(self, scope: bytes | None, kinds: Kinds, now_us: int) -> int | None:
        """When the first gate before a job of a wanted kind opens.

        It may have opened already, since the caller looked: leaving it out would let the caller sleep beside a job.
        """
        with self._locked():
            rows = (self._rows[key] for key in self._rows.pending(scope))
            wanted = (row for row in rows if is_wanted(row.kind, kinds) and not is_expired(row, now_us))
            return min((row.not_before for row in wanted if row.not_before), default=None)

    def close(self) -> None:
        """Wake waiters and forget every job."""
        with self._ending():
            self._rows.clear()
            self._payloads.clear()
            self._results.clear()
            self._data.clear()
            self._names.clear()
            self._by_idempotency.clear()

    def load_payload(self, job_id: bytes) -> bytes:
        """Read a payload that is kept aside."""
        with self._locked():
            return self._payloads[job_id]

    def load_result(self, job_id: bytes) -> bytes:
        """Read a result that is kept aside."""
        with self._locked():
            return self._results[job_id]

    def scope_of(self, scope: bytes) -> Scope:
        """The scope of a record, with its name."""
        return scope_as_stored(scope, self._names.get(scope))

    # Called with the lock held.

    def _find(self, scope: bytes | None, job_id: bytes) -> bytes:
        """The key of that job. A job of another scope is not found, like one that does not exist."""
        key = self._rows.find(job_id)
        if key is None or scope not in (None, key[:SCOPE_BYTES]):
            raise JobNotFound(UUID(bytes=job_id))
        return key

    def _record(self, key: bytes) -> JobRecord:
        return JobRecord(key, encode_record(self._rows[key]), self)


def is_wanted(kind: str, kinds: Kinds) -> bool:
    """Whether a filter lets a kind through."""
    return kinds is None or any(kind == text if is_exact else kind.startswith(text) for text, is_exact in kinds)
