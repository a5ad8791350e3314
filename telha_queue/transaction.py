"""A transaction: verbs on jobs and rows of the program's own, gathered, and committed as one write or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from telha_queue import arguments as check
from telha_queue._seam import new_job, new_jobs, scope_key, token
from telha_queue.command import Command, Verb
from telha_queue.config import MAX_BATCH_BYTES, MAX_BATCH_JOBS
from telha_queue.data import row_key
from telha_queue.engine import Change, Committed, Group, JobRecords, NewJob, Put
from telha_queue.errors import InvalidArgument, PayloadTooLarge
from telha_queue.job import JobRecord, JobSpec, Lease
from telha_queue.named import NamedTuple
from telha_queue.scope import Scope

if TYPE_CHECKING:
    from typing import Self


class Work(NamedTuple):
    """What is to be done together."""

    changes: list[Change]
    groups: dict[Scope, list[NewJob]]
    puts: list[Put]

    def engine_groups(self) -> list[Group]:
        """The new jobs as an engine takes them."""
        return [Group(scope.key, jobs) for scope, jobs in self.groups.items()]


class Transaction:
    """What is to be done together. Made by `Queue.transaction`, for one thread and one `with` block.

    Each call checks its arguments and gathers; nothing is read or written. Leaving the block commits: all is done in
    one write, or, when one lease is lost or one job is in the wrong state, nothing, and the first such error is raised.
    An exception inside of the block drops all that was gathered. Up to 1,000 verbs on jobs, 1,000 rows, and 16 MiB of
    payloads, checkpoints, keys and values; what does not fit any more raises InvalidArgument.
    """

    def __init__(self, commit: Callable[[Work], Committed], now_us: Callable[[], int], max_payload_bytes: int) -> None:
        """Made by `Queue.transaction`."""
        self._commit = commit
        self._now_us = now_us
        self._max_payload_bytes = max_payload_bytes
        self._work = Work([], {}, [])
        self._order: list[tuple[Scope | None, int]] = []
        """Of each verb on a job: the scope of a new one, or None, and which of those it is."""
        self._size_bytes = 0
        self._is_open = self._is_over = False
        self._jobs: JobRecords | None = None

    @property
    def jobs(self) -> JobRecords:
        """The jobs as they are afterwards, one for each verb on a job, in the order of the calls.

        Raises InvalidArgument while the transaction is not committed.
        """
        if self._jobs is None:
            raise InvalidArgument("the transaction is not committed")
        return self._jobs

    def __enter__(self) -> Self:
        if self._is_open or self._is_over:
            raise InvalidArgument("a transaction is entered once")
        self._is_open = True
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        self._is_open, self._is_over = False, True
        if kind is not None:
            return
        if not self._order and not self._work.puts:
            self._jobs = []
            return
        changed, stored = self._commit(self._work)
        by_scope = dict(zip(self._work.groups, stored, strict=True))
        self._jobs = [(changed if scope is None else by_scope[scope])[number] for scope, number in self._order]

    # Verbs on jobs. Each means what the verb of the queue means.

    def enqueue(self, scope: Scope, kind: str, payload: bytes = b"", **options: Any) -> None:
        """Store a job; options are those of `Queue.enqueue`. A key that is taken yields the job that has it."""
        spec = JobSpec(kind, payload, **options)
        self._add_jobs(scope, [new_job(*spec, self._max_payload_bytes, self._now_us())])

    def enqueue_many(self, scope: Scope, jobs: Iterable[JobSpec]) -> None:
        """Store jobs."""
        self._add_jobs(scope, new_jobs(jobs, self._max_payload_bytes, self._now_us(), True))  # type: ignore[arg-type]

    def complete(self, lease: JobRecord | Lease, *, result: bytes | None = None, late: str = "refuse") -> None:
        """Finish a job, and keep a result with it."""
        kept = None if result is None else check.blob("result", result, self._max_payload_bytes)
        self._add_fenced(lease, Command(Verb.COMPLETE, accept_late=check.late(late)), kept)

    def fail(
        self,
        lease: JobRecord | Lease,
        error: str,
        *,
        retryable: bool = True,
        delay_secs: float | None = None,
        cause: str = "error",
    ) -> None:
        """Count a failed attempt."""
        lost = check.loss(error, retryable, delay_secs, cause)
        self._add_fenced(lease, Command(Verb.FAIL, **lost._asdict()))

    def release(self, lease: JobRecord | Lease, *, delay_secs: float = 0) -> None:
        """Give a job back unspent."""
        self._add_fenced(lease, Command(Verb.RELEASE, delay_us=check.span_us("delay_secs", delay_secs)))

    def checkpoint(
        self,
        lease: JobRecord | Lease,
        continuation: bytes,
        *,
        durable: bool = False,
        lease_ttl_secs: float | None = None,
    ) -> None:
        """Keep a continuation, and extend the lease."""
        kept = check.continuation(continuation, self._max_payload_bytes)
        ttl_us, lasts = check.heartbeat_us(lease_ttl_secs), check.flag("durable", durable)
        self._add_fenced(lease, Command(Verb.CHECKPOINT, continuation=kept, durable=lasts, ttl_us=ttl_us))

    def retry(self, scope: Scope, job_id: UUID) -> None:
        """Put a dead job back to Pending."""
        self._add_change(Change(scope_key(scope), check.uuid_bytes(job_id), Command(Verb.RETRY)))

    def cancel(self, scope: Scope, job_id: UUID, reason: str = "") -> None:
        """End a pending or leased job."""
        why = check.error_text(reason, "reason") or None
        self._add_change(Change(scope_key(scope), check.uuid_bytes(job_id), Command(Verb.CANCEL, detail=why)))

    # Rows of the program's own.

    def put(self, family: str, key: bytes, value: bytes) -> None:
        """Set the value of a key, up to 1 KiB, in a family of rows, named by up to 64 bytes of printable text.

        The value is up to `max_payload_bytes` long. `Queue.data` reads it.
        """
        self._add_put(Put(row_key(family, key), check.blob("value", value, self._max_payload_bytes)))

    def delete(self, family: str, key: bytes) -> None:
        """Remove a key and its value, if they are there."""
        self._add_put(Put(row_key(family, key), None))

    def _add_fenced(self, lease: JobRecord | Lease, command: Command, result: bytes | None = None) -> None:
        held = token(lease)
        fenced = command._replace(worker_id=held.worker_id, lease_generation=held.lease_generation)
        self._add_change(
            Change(held.scope, held.job_id, fenced, result), len(command.continuation) + len(result or b"")
        )

    def _add_change(self, change: Change, size_bytes: int = 0) -> None:
        self._require_room(1)
        self._weigh(size_bytes)
        self._order.append((None, len(self._work.changes)))
        self._work.changes.append(change)

    def _add_jobs(self, scope: Scope, jobs: list[NewJob]) -> None:
        scope_key(scope)
        self._require_room(len(jobs))
        self._weigh(sum(len(job.payload) for job in jobs))
        group = self._work.groups.setdefault(scope, [])
        self._order += [(scope, len(group) + n) for n in range(len(jobs))]
        group += jobs

    def _add_put(self, put: Put) -> None:
        self._require_open()
        if len(self._work.puts) == MAX_BATCH_JOBS:
            raise InvalidArgument(f"a transaction holds at most {MAX_BATCH_JOBS} rows")
        self._weigh(len(put.key) + len(put.value or b""))
        self._work.puts.append(put)

    def _require_room(self, more: int) -> None:
        self._require_open()
        if len(self._order) + more > MAX_BATCH_JOBS:
            raise InvalidArgument(f"a transaction holds at most {MAX_BATCH_JOBS} verbs on jobs")

    def _weigh(self, more_bytes: int) -> None:
        self._require_open()
        if self._size_bytes + more_bytes > MAX_BATCH_BYTES:
            raise PayloadTooLarge(
                "the transaction", size_bytes=self._size_bytes + more_bytes, limit_bytes=MAX_BATCH_BYTES
            )
        self._size_bytes += more_bytes

    def _require_open(self) -> None:
        if not self._is_open:
            raise InvalidArgument("a transaction is used inside of its `with` block")
