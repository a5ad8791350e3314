"""The seam: what a queue asks of whatever stores its jobs.

An engine offers queue verbs, not storage primitives. Each verb is one atomic transition or one bounded read, and means
the same on every engine: tests/engine/ is the definition, and a new engine lands by adding a fixture there.

Conventions, so that an engine need check nothing that the face (`queue.py`) has checked already:
- a scope is its 32-byte key, a job id its 16 bytes, a kind filter a tuple of (text, is_exact), None meaning all kinds;
- times are integer microseconds; `now_us` is always an argument, because an engine owns no clock;
- an optional time or ceiling that is absent is None;
- fenced verbs take a scope of None when the caller knows only the id (`extend_any`).

The seam is internal: it may change in any release.
"""

from __future__ import annotations

from collections.abc import Sequence

from telha_queue._seam import NewJob, Token
from telha_queue.errors import JobError
from telha_queue.job import Cause, JobRecord, JobState, ReapReport, Recovered
from telha_queue.named import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Protocol

    from telha_queue._keeper import Renewer
    from telha_queue.command import Command
    from telha_queue.upkeep import FsckReport, SnapshotReport
else:
    Protocol = object  # structure is a type checker's affair; see named.py for why typing is not imported

__all__ = [
    "Capabilities",
    "Change",
    "Committed",
    "Engine",
    "Group",
    "JobRecords",
    "Kinds",
    "Loss",
    "NewJob",
    "Outcomes",
    "Put",
    "ScopeNames",
    "Token",
]

JobRecords = list[JobRecord]  # the verb `list` hides the class inside Engine and Queue
Outcomes = list[JobRecord | JobError]
"""What verbs on many jobs return."""
Committed = tuple[JobRecords, list[JobRecords]]
"""What a transaction returns: the changed jobs, and those of each group."""
ScopeNames = list[tuple[bytes, str | None]]

Kinds = tuple[tuple[str, bool], ...] | None


class Capabilities(NamedTuple):
    """What an engine can do beyond the verbs; the suite skips by these, never by an engine's name."""

    durable: bool
    """Jobs survive the process."""
    single_owner: bool
    """One process at a time; a second opener is refused."""
    native_keeper: bool = False
    """It has `renewer`, by which a thread that needs no interpreter renews leases, on the system's clock."""


class Loss(NamedTuple):
    """How an attempt was lost: the arguments of `Queue.fail`, checked."""

    detail: str
    """The error, for the trail."""
    retryable: bool
    delay_us: int | None
    """In place of the backoff."""
    cause: Cause


class Change(NamedTuple):
    """A verb on a job that there is, as part of a transaction."""

    scope: bytes | None
    job_id: bytes
    command: Command
    result: bytes | None = None
    """Of a completion."""


class Group(NamedTuple):
    """New jobs of one scope, as part of a transaction."""

    scope: bytes
    jobs: list[NewJob]


class Put(NamedTuple):
    """A row of the program's own, as part of a transaction; a value of None deletes it."""

    key: bytes
    value: bytes | None


class Engine(Protocol):
    """Stores jobs. Safe to call from many threads; after close() every verb raises StoreClosed.

    Fenced verbs raise LeaseConflict unless the token is the lease in force, and then change not one byte. Every verb
    that names a job raises JobNotFound when the scope has no such job.
    """

    capabilities: Capabilities

    def name_scope(self, scope: bytes, name: str) -> None:
        """Keep the name of a scope, which is what its key is made of, for `scopes`. Writes nothing when it is kept."""

    def enqueue(self, scope: bytes, job: NewJob, now_us: int) -> JobRecord:
        """Store one Pending job, or return the job that already has its idempotency key in this scope."""

    def enqueue_many(self, scope: bytes, jobs: Sequence[NewJob], atomic: bool, now_us: int) -> Outcomes:
        """Store many in one write, in order; a key that repeats, here or in the store, yields the first job.

        The outcome of one whose key leads to a row that does not decode is that error; `atomic` raises it.
        """

    def lease_next(
        self, scope: bytes | None, kinds: Kinds, worker_id: str, ttl_us: int, now_us: int
    ) -> JobRecord | None:
        """Lease the first job in order that is due, not expired and of a wanted kind; None when there is none.

        Order is (priority, created_at, job_id) within a scope; over all scopes (None) it is the same three.
        """

    def lease_many(
        self, scope: bytes | None, n: int, max_bytes: int, kinds: Kinds, worker_id: str, ttl_us: int, now_us: int
    ) -> JobRecords:
        """Lease up to n jobs as n calls of lease_next would, in one write.

        The payloads of all but the first come to `max_bytes` at most.
        """

    def complete_and_lease(self, token: Token, kinds: Kinds, ttl_us: int, now_us: int) -> JobRecord | None:
        """Finish a job, and lease the next of its scope for the same worker, in one write if there is one.

        Raises if the job was not finished, or that is unknown; not for what became of the next alone.
        """

    def extend(self, token: Token, ttl_us: int, now_us: int) -> JobRecord:
        """Move the deadline to now + ttl, never earlier than it is; a ttl of 0 is the one of the lease."""

    def extend_many(self, tokens: Sequence[Token], ttl_us: int, atomic: bool, now_us: int) -> Outcomes:
        """Heartbeats for many in one write.

        This and the other fenced verbs on many: one outcome per token, in order, each judged after those before it,
        and a refused one harms no other; `atomic` raises the first refusal and leaves everything as it is.
        """

    def checkpoint(self, token: Token, continuation: bytes, durable: bool, ttl_us: int, now_us: int) -> JobRecord:
        """Keep a continuation for as long as this lease lasts, and extend it in the same write.

        A `durable` one is kept beside it, until the job is completed.
        """

    def progress(self, token: Token, millionths: int, text: str | None, ttl_us: int, now_us: int) -> JobRecord:
        """Say how much of the work is done, until the next lease, and extend this one in the same write."""

    def stats(self, token: Token, detail: str, now_us: int) -> JobRecord:
        """Add a line to the job's trail."""

    def complete(self, token: Token, accept_late: bool, result: bytes | None, now_us: int) -> JobRecord:
        """Finish the job. `accept_late` also accepts it after a reap, while nobody has leased the job since.

        A result is kept with it for good, in the same write.
        """

    def complete_many(self, tokens: Sequence[Token], accept_late: bool, atomic: bool, now_us: int) -> Outcomes:
        """Finish many in one write."""

    def fail(self, token: Token, loss: Loss, now_us: int) -> JobRecord:
        """Count an attempt; back to Pending behind a gate, or Dead when it is not retryable or out of attempts."""

    def fail_many(self, tokens: Sequence[Token], losses: list[Loss], atomic: bool, now_us: int) -> Outcomes:
        """Count an attempt of many in one write; one loss per token."""

    def release(self, token: Token, delay_us: int, now_us: int) -> JobRecord:
        """Give the job back unspent: no attempt counted, due after the delay."""

    def retry(self, scope: bytes, job_id: bytes, now_us: int) -> JobRecord:
        """Put a Dead job back to Pending with its attempts at 0; InvalidTransition for any other state."""

    def transact(
        self, changes: Sequence[Change], groups: Sequence[Group], puts: Sequence[Put], now_us: int
    ) -> Committed:
        """Do all of it in one write: the changed jobs, then the jobs of each group, as they are afterwards.

        Changes of one job are judged one after the other. The first that is refused is raised, and nothing is done.
        A new job whose idempotency key is taken yields the job that has it.
        """

    def data_get(self, key: bytes) -> bytes | None:
        """The value of a row of the program's own, or None."""

    def data_scan(self, prefix: bytes, after: bytes, limit: int, max_bytes: int) -> list[tuple[bytes, bytes]]:
        """Up to `limit` of these rows, in key order: those that begin with a prefix and stand behind a key.

        Stops before they come to more than `max_bytes`, but not before it has one.
        """

    def cancel(self, scope: bytes, job_id: bytes, reason: str | None, now_us: int) -> JobRecord:
        """End a Pending or Leased job: Dead, and its lease refused from then on; InvalidTransition for other states."""

    def reschedule(
        self, scope: bytes, job_id: bytes, priority: int | None, not_before: int | None, detail: str, now_us: int
    ) -> JobRecord:
        """Give a Pending job another priority or due time; InvalidTransition for any other state.

        None keeps what there is; a `not_before` of 0 is due now; `detail` says for the trail what changes. It stands at
        its priority by its created_at, as if it had been enqueued with that priority.
        """

    def get(self, scope: bytes, job_id: bytes) -> JobRecord:
        """The job of that id in that scope."""

    def find(self, job_id: bytes) -> JobRecord:
        """The job of that id in whatever scope."""

    def list(
        self,
        scope: bytes | None,
        state: JobState | None,
        kinds: Kinds,
        limit: int,
        after: bytes | None,
    ) -> JobRecords:
        """Jobs in key order (scope, state, priority, created_at, id), those behind the 58-byte key `after`.

        Rows that do not decode are left out; `corrupt_rows` counts them.
        """

    def counts(self, scope: bytes | None) -> dict[JobState, int]:
        """Exact number of jobs per state, every state present."""

    def scopes(self) -> ScopeNames:
        """The scopes that have at least one job, in key order, and their names as they are stored: maybe damaged."""

    def reap_expired(self, now_us: int) -> ReapReport:
        """Take back every lease whose deadline, grace included, has passed; then bury Pending jobs that have expired.

        Reads no row of a job that is neither leased nor expired.
        """

    def ready_ticket(self, scope: bytes | None) -> int:
        """A number that grows whenever a job of the scope may have become ready to lease; for wait_ready."""

    def next_due_us(self, scope: bytes | None, kinds: Kinds, now_us: int) -> int | None:
        """When the next job of a wanted kind that was gated at `now_us` is due; None when none was.

        It may be due by now: a gate that opened since is not forgotten, whoever saw it open.
        """

    def wait_ready(self, scope: bytes | None, kinds: Kinds, ticket: int, timeout_us: int) -> None:
        """Sleep until a wanted job may have become ready since the ticket was taken, or the time is over.

        Returns at once when that has happened already, so nothing can slip in between. May return early, as it does
        when the engine is closed meanwhile; lets KeyboardInterrupt through within 50 ms.
        """

    def ended_ticket(self, job_id: bytes) -> int:
        """A number that grows whenever that job is completed or dead; for wait_ended. It may grow for others too."""

    def wait_ended(self, job_id: bytes, ticket: int, timeout_us: int) -> None:
        """Sleep until that job may have been completed or dead since the ticket was taken, or the time is over.

        As wait_ready: nothing can slip in between, and it may return early.
        """

    def renewer(self) -> Renewer:
        """How a native keeper reaches it; for engines that have one."""

    def wake(self) -> None:
        """Make every waiter look again: for clocks that are moved by hand."""

    def last_seen_us(self) -> int:
        """The latest time the stored jobs bear witness to (0 for an empty store): the clock starts from it."""

    @property
    def recovered(self) -> Recovered | None:
        """What was missing when it was opened, if it was to be opened nevertheless."""

    @property
    def failure(self) -> str | None:
        """Why it takes no writes now: the first that failed, or the latest reopening; None while it takes them."""

    def flush(self) -> None:
        """Take to disk what was acknowledged so far."""

    def reopen(self) -> None:
        """Close the store beneath and open it again, while calls wait; the directory is owned all the time."""

    def fsck(self, repair: bool) -> FsckReport:
        """Check every row against those that belong to it, as of one moment; put right what can be, if asked to.

        A job's row is never changed and never removed. Callers are not held up.
        """

    def snapshot(self, directory: str | os.PathLike[str]) -> SnapshotReport:
        """Make a directory that holds all of the store as of one moment. UnsupportedByEngine without a disk."""

    def close(self) -> None:
        """Wait for calls under way, wake waiters, release everything. Calling it again does nothing."""
