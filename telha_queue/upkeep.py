"""What maintenance tells: findings of a check of a store, and the reports of check, snapshot and restore."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from uuid import UUID

from telha_queue.named import NamedTuple

__all__ = ["Finding", "FindingKind", "FsckReport", "RestoreReport", "SnapshotReport"]


class FindingKind(StrEnum):
    """What can be wrong, each the breach of one invariant of docs/format.md. In the order of `ext/findings.hpp`."""

    JOB_KEY = "job_key"
    """A row of the jobs family stands under a key that no job can have."""
    JOB_RECORD = "job_record"
    """A job's row does not decode, or its record and its key disagree."""
    JOB_VERSION = "job_version"
    """A job's row was written in a format of a newer release."""
    JOB_TWICE = "job_twice"
    """A job has more than one row."""
    JOB_TIME = "job_time"
    """A job's id is not made of its created_at."""
    ID_MISSING = "id_missing"
    """A job has no row in the ids family."""
    ID_WRONG = "id_wrong"
    """A job's row in the ids family leads elsewhere, where no job is."""
    ID_ORPHAN = "id_orphan"
    """A row of the ids family belongs to no job."""
    KEY_MISSING = "key_missing"
    """A job's idempotency key has no row."""
    KEY_WRONG = "key_wrong"
    """The row of a job's idempotency key leads to no job that has it."""
    KEY_SHARED = "key_shared"
    """Two jobs of a scope have one idempotency key; the row leads to the other."""
    KEY_ORPHAN = "key_orphan"
    """A row of the idempotency family belongs to no job."""
    PAYLOAD_MISSING = "payload_missing"
    """A job's payload is neither in its record nor in a row."""
    PAYLOAD_WRONG = "payload_wrong"
    """A job's payload row has another length than the record says."""
    PAYLOAD_ORPHAN = "payload_orphan"
    """A payload row belongs to no job, or to one whose payload is in its record."""
    EXPIRY_MISSING = "expiry_missing"
    """A pending or leased job that expires has no row in the expiries family."""
    EXPIRY_ORPHAN = "expiry_orphan"
    """A row of the expiries family belongs to no job that expires then."""
    RESULT_MISSING = "result_missing"
    """A job's result is neither in its record nor in a row."""
    RESULT_WRONG = "result_wrong"
    """A job's result row has another length than the record says."""
    RESULT_ORPHAN = "result_orphan"
    """A result row belongs to no job, or to one whose record does not say that its result stands there."""
    NAME_WRONG = "name_wrong"
    """A scope's name is not the one that the scope is made of."""
    CLOCK_WRONG = "clock_wrong"
    """The clock row is no time."""
    FLOOR_WRONG = "floor_wrong"
    """The row of the generation floor is no generation."""


class Finding(NamedTuple):
    """One row that is wrong, missing or too many."""

    kind: FindingKind
    scope: bytes | None
    """The key of its scope, where that is known."""
    job_id: UUID | None
    """The job concerned, where there is one."""
    row: bytes
    """The key of the row, in the column family that the kind is about."""
    detail: str = ""
    """Why, where the kind alone does not say."""


class FsckReport(NamedTuple):
    """What a check has read, found and put right. Kinds of which nothing was found are left out."""

    jobs: int
    """Jobs that were checked, damaged ones included."""
    found: dict[FindingKind, int]
    """How many findings of each kind; exact."""
    repaired: dict[FindingKind, int]
    """How many of them were put right."""
    findings: tuple[Finding, ...] = ()
    """The findings one by one, the first 1,000 of each kind."""
    is_partial: bool = False
    """More was wrong than can be told apart, so orphans were not looked for: repair, and check again."""

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong that was not put right."""
        return self.found == self.repaired and not self.is_partial


class SnapshotReport(NamedTuple):
    """What a snapshot holds."""

    directory: Path
    seen_us: int
    """The latest time that it knows of: the clock of whatever is restored from it starts there."""
    size_bytes: int
    """What its files take, those that it shares with the store included."""


class RestoreReport(NamedTuple):
    """What a restore has made of a snapshot."""

    directory: Path
    jobs: int
    leases_ended: int
    """Jobs that were leased in the snapshot and are pending again."""
    corrupt: int
    """Rows that do not decode; they were left as they are."""
    generation_floor: int
    """The least lease generation that the restored store gives out, greater than any that was given out before."""
