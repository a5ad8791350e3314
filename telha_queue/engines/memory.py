"""The memory engine: for the tests of programs that use a queue, and the oracle of the compiled engine.

Written to be obviously right, not fast: the rows are what docs/format.md says, the plain scan over them is the order in
which jobs are leased, and every move goes through `transitions.step`. One lock around every verb makes it atomic. It
knows no clock and nothing of disks; all is gone with the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from secrets import randbits
from uuid import UUID

from telha_queue._codec import make_job_id
from telha_queue.backoff import policy_for
from telha_queue.clock import MAX_TIME_US
from telha_queue.command import Command, Refusal, Verb
from telha_queue.config import QueueConfig
from telha_queue.engine import (
    Capabilities,
    Change,
    Committed,
    Group,
    JobRecords,
    Kinds,
    Loss,
    NewJob,
    Outcomes,
    Put,
    Token,
)
from telha_queue.engines.diskless import Diskless
from telha_queue.engines.stored_jobs import StoredJobs, is_wanted
from telha_queue.errors import InvalidTransition, JobError, JobNotFound, LeaseConflict
from telha_queue.job import DeadJob, JobEvent, JobRecord, JobState, ReapReport
from telha_queue.record import RecordFields
from telha_queue.scope import SCOPE_BYTES, Scope
from telha_queue.transitions import is_expired, step

Undone = list[RecordFields]  # the verb `list` hides the class inside the engine
ASIDE_BYTES = 4096
"""A payload or a result longer than this is kept beside its record, as on disk."""


class MemoryEngine(StoredJobs, Diskless):
    """Stores jobs in this process's memory; `engine.Engine` says what each verb means.

    `id_bits(62)` gives the random bits of a job id; a test that wants to know ids beforehand brings its own.
    """

    capabilities = Capabilities(durable=False, single_owner=False)

    def __init__(self, config: QueueConfig | None = None, *, id_bits: Callable[[int], int] = randbits) -> None:
        super().__init__()
        self._config = QueueConfig() if config is None else config
        self._id_bits = id_bits

    # Verbs that store, in the order of the seam.

    def name_scope(self, scope: bytes, name: str) -> None:
        with self._locked():
            self._names[scope] = name

    def enqueue(self, scope: bytes, job: NewJob, now_us: int) -> JobRecord:
        with self._locked():
            return self._enqueue(scope, job, now_us)

    def enqueue_many(self, scope: bytes, jobs: Sequence[NewJob], atomic: bool, now_us: int) -> Outcomes:
        with self._locked():
            return [self._enqueue(scope, job, now_us) for job in jobs]

    def lease_next(
        self, scope: bytes | None, kinds: Kinds, worker_id: str, ttl_us: int, now_us: int
    ) -> JobRecord | None:
        leased = self.lease_many(scope, 1, 0, kinds, worker_id, ttl_us, now_us)
        return leased[0] if leased else None

    def lease_many(
        self, scope: bytes | None, n: int, max_bytes: int, kinds: Kinds, worker_id: str, ttl_us: int, now_us: int
    ) -> JobRecords:
        """The plain scan that defines the order."""
        command = Command(Verb.LEASE, worker_id=worker_id, ttl_us=ttl_us)
        with self._locked():
            moves: list[tuple[bytes, RecordFields]] = []
            for key in self._rows.pending(scope):
                if len(moves) >= n:
                    break
                record = self._rows[key]
                if not is_wanted(record.kind, kinds):
                    continue
                moved = step(record, command, now_us, policy_for(self._config, record.kind))
                if isinstance(moved, RecordFields):
                    max_bytes -= record.payload_bytes
                    if moves and max_bytes < 0:
                        break
                    moves.append((key, moved))
            return [self._move(key, moved, now_us) for key, moved in moves]

    def extend(self, token: Token, ttl_us: int, now_us: int) -> JobRecord:
        return self._fenced(token, Command(Verb.EXTEND, ttl_us=ttl_us), now_us)

    def extend_many(self, tokens: Sequence[Token], ttl_us: int, atomic: bool, now_us: int) -> Outcomes:
        return self._fenced_many(tokens, [Command(Verb.EXTEND, ttl_us=ttl_us)] * len(tokens), atomic, now_us)

    def complete_and_lease(self, token: Token, kinds: Kinds, ttl_us: int, now_us: int) -> JobRecord | None:
        with self._locked():
            done = self.complete(token, False, None, now_us)
            return self.lease_next(done.scope.key, kinds, token.worker_id, ttl_us, now_us)

    def checkpoint(self, token: Token, continuation: bytes, durable: bool, ttl_us: int, now_us: int) -> JobRecord:
        command = Command(Verb.CHECKPOINT, continuation=continuation, durable=durable, ttl_us=ttl_us)
        return self._fenced(token, command, now_us)

    def progress(self, token: Token, millionths: int, text: str | None, ttl_us: int, now_us: int) -> JobRecord:
        return self._fenced(token, Command(Verb.PROGRESS, progress=millionths, detail=text, ttl_us=ttl_us), now_us)

    def stats(self, token: Token, detail: str, now_us: int) -> JobRecord:
        return self._fenced(token, Command(Verb.STATS, detail=detail), now_us)

    def complete(self, token: Token, accept_late: bool, result: bytes | None, now_us: int) -> JobRecord:
        command = with_result(Command(Verb.COMPLETE, accept_late=accept_late), result)
        with self._locked():
            done = self._fenced(token, command, now_us)
            self._keep_aside(token.job_id, result)
            return done

    def complete_many(self, tokens: Sequence[Token], accept_late: bool, atomic: bool, now_us: int) -> Outcomes:
        commands = [Command(Verb.COMPLETE, accept_late=accept_late)] * len(tokens)
        return self._fenced_many(tokens, commands, atomic, now_us)

    def fail(self, token: Token, loss: Loss, now_us: int) -> JobRecord:
        return self._fenced(token, Command(Verb.FAIL, **loss._asdict()), now_us)

    def fail_many(self, tokens: Sequence[Token], losses: list[Loss], atomic: bool, now_us: int) -> Outcomes:
        commands = [Command(Verb.FAIL, **loss._asdict()) for loss in losses]
        return self._fenced_many(tokens, commands, atomic, now_us)

    def release(self, token: Token, delay_us: int, now_us: int) -> JobRecord:
        return self._fenced(token, Command(Verb.RELEASE, delay_us=delay_us), now_us)

    def transact(
        self, changes: Sequence[Change], groups: Sequence[Group], puts: Sequence[Put], now_us: int
    ) -> Committed:
        moved: JobRecords = []
        with self._locked(), self._all_or_nothing() as before:
            for change in changes:
                key = self._find(change.scope, change.job_id)
                before.append(self._rows[key])
                moved.append(self._apply(key, with_result(change.command, change.result), now_us))
            stored = [[self._enqueue(scope, job, now_us) for job in jobs] for scope, jobs in groups]
            self._put(puts)
            for change in changes:
                self._keep_aside(change.job_id, change.result)
        return moved, stored

    def retry(self, scope: bytes, job_id: bytes, now_us: int) -> JobRecord:
        with self._locked():
            return self._apply(self._find(scope, job_id), Command(Verb.RETRY), now_us)

    def cancel(self, scope: bytes, job_id: bytes, reason: str | None, now_us: int) -> JobRecord:
        with self._locked():
            return self._apply(self._find(scope, job_id), Command(Verb.CANCEL, detail=reason), now_us)

    def reschedule(
        self, scope: bytes, job_id: bytes, priority: int | None, not_before: int | None, detail: str, now_us: int
    ) -> JobRecord:
        command = Command(Verb.RESCHEDULE, detail=detail, priority=priority, not_before=not_before)
        with self._locked():
            return self._apply(self._find(scope, job_id), command, now_us)

    def reap_expired(self, now_us: int) -> ReapReport:
        reclaimed = 0
        dead: list[DeadJob] = []
        with self._locked():
            for key in tuple(self._rows.keys(None, JobState.LEASED)):
                held = self._rows[key]
                moved = step(held, Command(Verb.REAP), now_us, policy_for(self._config, held.kind))
                if isinstance(moved, Refusal):
                    continue
                self._move(key, moved, now_us)
                if moved.state == JobState.DEAD:
                    dead.append(_dead_job(self.scope_of(key[:SCOPE_BYTES]), held, moved))
                else:
                    reclaimed += 1
            expired = [key for key in self._rows.keys(None, JobState.PENDING) if is_expired(self._rows[key], now_us)]
            for key in expired:
                self._apply(key, Command(Verb.EXPIRE), now_us)
        return ReapReport(reclaimed, len(dead), tuple(dead), expired=len(expired))

    # Called with the lock held.

    def _enqueue(self, scope: bytes, job: NewJob, now_us: int) -> JobRecord:
        known = job.idempotency_key and self._by_idempotency.get((scope, job.idempotency_key))
        if known:
            return self._record(self._find(scope, known))
        created_at = min(max(self._last_created_us + 1, now_us), MAX_TIME_US)
        aside = len(job.payload) > ASIDE_BYTES
        fields = RecordFields(
            job_id=make_job_id(created_at, self._id_bits(62)),
            kind=job.kind,
            payload=None if aside else job.payload,
            priority=job.priority,
            created_at=created_at,
            state=JobState.PENDING,
            not_before=job.not_before,
            idempotency_key=job.idempotency_key,
            max_attempts=job.max_attempts,
            events=(JobEvent(now_us, "enqueued"),),
            payload_bytes=len(job.payload),
            headers=job.headers,
            expires_at=job.expires_at,
        )
        self._last_created_us = created_at
        if aside:
            self._payloads[fields.job_id] = job.payload
        if job.idempotency_key is not None:
            self._by_idempotency[scope, job.idempotency_key] = fields.job_id
        return self._stored(self._rows.put(scope, fields), created_at)

    def _fenced(self, token: Token, command: Command, now_us: int) -> JobRecord:
        held = command._replace(worker_id=token.worker_id, lease_generation=token.lease_generation)
        with self._locked():
            return self._apply(self._find(token.scope, token.job_id), held, now_us)

    def _fenced_many(self, tokens: Sequence[Token], commands: Sequence[Command], atomic: bool, now_us: int) -> Outcomes:
        """Each token judged after those before it; `atomic` takes those back when one is refused."""
        outcomes: Outcomes = []
        with self._locked(), self._all_or_nothing() as before:
            for token, command in zip(tokens, commands, strict=True):
                try:
                    held = self._rows[self._find(token.scope, token.job_id)]
                    outcomes.append(self._fenced(token, command, now_us))
                    before.append(held)
                except (JobNotFound, LeaseConflict) as refusal:
                    if atomic:
                        raise
                    outcomes.append(refusal)
        return outcomes

    @contextmanager
    def _all_or_nothing(self) -> Iterator[Undone]:
        """Takes jobs as they were before they were moved; they are so again when the block raises."""
        before: Undone = []
        try:
            yield before
        except JobError:
            for fields in reversed(before):
                self._rows.move(self._find(None, fields.job_id), fields)
            raise

    def _apply(self, key: bytes, command: Command, now_us: int) -> JobRecord:
        """Move one job, or raise the refusal."""
        record = self._rows[key]
        moved = step(record, command, now_us, policy_for(self._config, record.kind))
        if isinstance(moved, RecordFields):
            return self._move(key, moved, now_us)
        job_id = UUID(bytes=record.job_id)
        if moved is Refusal.LEASE_CONFLICT:
            raise LeaseConflict(
                job_id, held=record.lease_generation, presented=command.lease_generation, state=record.state
            )
        raise InvalidTransition(job_id, verb=command.verb.name.lower(), state=record.state)

    def _keep_aside(self, job_id: bytes, result: bytes | None) -> None:
        if result is not None and len(result) > ASIDE_BYTES:
            self._results[job_id] = result

    def _move(self, key: bytes, moved: RecordFields, now_us: int) -> JobRecord:
        return self._stored(self._rows.move(key, moved), now_us)

    def _stored(self, key: bytes, at_us: int) -> JobRecord:
        self._last_seen_us = max(self._last_seen_us, at_us)
        state = self._rows[key].state
        if state == JobState.PENDING:
            self._grow_ticket()
        elif state != JobState.LEASED:
            self._tell_end()
        return self._record(key)


def with_result(command: Command, result: bytes | None) -> Command:
    """The completion that leaves a result, in the record unless it is long."""
    if result is None:
        return command
    return command._replace(result=None if len(result) > ASIDE_BYTES else result, result_bytes=len(result))


def _dead_job(scope: Scope, held: RecordFields, moved: RecordFields) -> DeadJob:
    told = moved.kind, moved.attempts, held.worker_id or "", moved.dead_reason or ""
    return DeadJob(scope, UUID(bytes=moved.job_id), *told)
