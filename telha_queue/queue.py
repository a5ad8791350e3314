"""The queue as its users see it: check the arguments, fill in defaults, read the clock, call one engine verb.

Every call reaches the jobs through `self._engine` and nothing else: that attribute is the one place where metrics or
tracing wrap themselves around the verbs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from telha_queue import arguments as check
from telha_queue._seam import new_job, new_jobs, scope_key, token, tokens, worker
from telha_queue.blocking import Wanted, lease_within
from telha_queue.chaining import ChainingQueue
from telha_queue.config import MAX_BATCH_JOBS
from telha_queue.engine import JobRecords, Outcomes, Token
from telha_queue.errors import StorageError
from telha_queue.job import JobRecord, JobSpec, Lease, ReapReport
from telha_queue.many import Failures, enqueue_the_good, failures_of
from telha_queue.progress import told
from telha_queue.reading import KindArgument
from telha_queue.scope import Scope

MAX_LEASE_BYTES = 2**40
"""More than a batch can have: no bound."""

Leases = Iterable[JobRecord | Lease]


class Queue(ChainingQueue):
    """A durable queue in one directory. Safe to use from many threads; one process owns a directory at a time.

    Times are microseconds since the Unix epoch, spans are seconds. Verbs that change a job return it as it is after
    the change, and are on disk, as `QueueConfig.durability` says, when they return. All raise InvalidArgument for an
    argument outside its range, StoreClosed after close() and StorageError when the disk fails. A StorageError with
    outcome "unknown" leaves it open whether the change was made.

    Verbs on many jobs take up to 1,000, write once, and return one outcome each, in order: the JobRecord, or the error
    that this one met, which is returned and not raised, and harms no other. With `atomic=True` the first such error is
    raised and nothing is changed.

    `durability="sync"`, where a verb has it, has this call on disk when it returns, on a queue in mode "group" or "os"
    too. A StorageError has outcome "unknown" then: the change may have been made and not be on disk.
    """

    def enqueue(
        self,
        scope: Scope,
        kind: str,
        payload: bytes = b"",
        *,
        priority: int = 128,
        not_before: int | None = None,
        delay_secs: float | None = None,
        idempotency_key: str | None = None,
        max_attempts: int | None = None,
        headers: Mapping[str, str] | None = None,
        expires_at: int | None = None,
        expires_secs: float | None = None,
        durability: str | None = None,
    ) -> JobRecord:
        """Store a job. Lower priority numbers are leased first; jobs of one priority in the order they came.

        With an idempotency key that a job of this scope already has, that job is returned and nothing is stored.
        `not_before` (µs) or `delay_secs` keeps the job from being leased earlier, `expires_at` (µs, later than now) or
        `expires_secs` from being leased at that time or later. `max_attempts` is its own ceiling.
        `headers` travel with the job, such as a trace context: up to 16, of 1 KiB in all, printable text.
        """
        to_disk = durability is not None and check.stronger(durability)
        key = scope_key(scope)
        now_us = self._now_us()
        limit = self._max_payload_bytes
        job = new_job(kind, payload, priority, not_before, delay_secs, idempotency_key, max_attempts, headers,
                      expires_at, expires_secs, limit, now_us)  # fmt: skip
        if key not in self._named and scope.name is not None:
            self._keep_name(key, scope.name)
        record = self._engine.enqueue(key, job, now_us)
        if to_disk:
            self._take_to_disk()
        return record

    def enqueue_many(
        self, scope: Scope, jobs: Iterable[JobSpec], *, atomic: bool = False, durability: str | None = None
    ) -> Outcomes:
        """Store up to 1,000 jobs, and 16 MiB of payload, in one write; a JobRecord or an InvalidArgument for each.

        Look at the outcomes, or give `atomic=True`: a job that was refused is not stored, and only its outcome says so.
        A job whose idempotency key is taken, in the store or earlier in the list, yields the job that has it.
        """
        to_disk = durability is not None and check.stronger(durability)
        key = scope_key(scope)
        now_us = self._now_us()
        checked = new_jobs(jobs, self._max_payload_bytes, now_us, check.flag("atomic", atomic))
        if checked and key not in self._named and scope.name is not None:
            self._keep_name(key, scope.name)
        outcomes = enqueue_the_good(self._engine, key, checked, atomic, now_us)
        if to_disk:
            self._take_to_disk()
        return outcomes

    # Lease

    def lease_next(
        self,
        scope: Scope,
        kinds: KindArgument = None,
        *,
        worker_id: str,
        lease_ttl_secs: float | None = None,
        wait_secs: float = 0,
    ) -> JobRecord | None:
        """Lease the first job that is due and of a wanted kind; None when there is none.

        A plain string in `kinds` is a prefix, `Exact("embed")` a whole kind. With `wait_secs`, sleeps until there is
        such a job or the time is over; Ctrl-C ends the wait within 50 ms. The returned record is the lease: pass it
        to `extend`, `checkpoint`, `complete` and `fail`.
        """
        return self._lease_one(scope_key(scope), kinds, worker_id, lease_ttl_secs, wait_secs)

    def lease_next_any(
        self,
        kinds: KindArgument = None,
        *,
        worker_id: str,
        lease_ttl_secs: float | None = None,
        wait_secs: float = 0,
    ) -> JobRecord | None:
        """Like `lease_next`, over all scopes: the lowest priority number first, then the job that came first."""
        return self._lease_one(None, kinds, worker_id, lease_ttl_secs, wait_secs)

    def lease_many(
        self,
        scope: Scope | None,
        n: int,
        kinds: KindArgument = None,
        *,
        worker_id: str,
        lease_ttl_secs: float | None = None,
        wait_secs: float = 0,
        max_bytes: int | None = None,
    ) -> JobRecords:
        """Lease up to `n` jobs (1 to 1,000) in one write, in order; a scope of None is any scope.

        Stops before the payloads come to more than `max_bytes` together, but not before it has one job. Waits, if
        asked to, for the first one only.
        """
        check.whole("n", n, 1, MAX_BATCH_JOBS)
        most = MAX_LEASE_BYTES if max_bytes is None else check.whole("max_bytes", max_bytes, 0, MAX_LEASE_BYTES)
        key = None if scope is None else scope_key(scope)
        return self._lease(key, n, most, kinds, worker_id, lease_ttl_secs, wait_secs)

    def complete_and_lease(
        self,
        lease: JobRecord | Lease,
        kinds: KindArgument = None,
        *,
        lease_ttl_secs: float | None = None,
        wait_secs: float = 0,
    ) -> JobRecord | None:
        """Finish a job and lease the next of its scope for the same worker, in one write; for worker loops.

        Raises LeaseConflict when the lease is lost; nothing is leased then. If no job is ready the first is finished,
        and with `wait_secs` the next is waited for as `lease_next` does. Once the first is finished no StorageError is
        raised: the wait ends, if the queue is closed or the disk fails, as if nothing were ready.
        """
        held, wanted, ttl_us = token(lease), check.kind_filter(kinds), self._ttl_us(lease_ttl_secs)
        wait_us = check.span_us("wait_secs", wait_secs)
        record = self._engine.complete_and_lease(held, wanted, ttl_us, self._now_us())
        if record is not None or wait_us == 0:
            return record
        following = Wanted(held.scope, 1, MAX_LEASE_BYTES, wanted, held.worker_id, ttl_us)
        try:
            leased = lease_within(wait_us, following, self._engine, self._now_us)
        except StorageError:  # the caller must learn that the first is finished; the next call meets the cause
            return None
        return leased[0] if leased else None

    def extend(self, lease: JobRecord | Lease, *, lease_ttl_secs: float | None = None) -> JobRecord:
        """Heartbeat: move the deadline to now + ttl, never earlier than it is. Raises LeaseConflict when lost.

        Without a ttl of its own it extends by the one that the lease was taken for.
        """
        return self._engine.extend(token(lease), check.heartbeat_us(lease_ttl_secs), self._now_us())

    def extend_any(
        self, job_id: UUID, worker_id: str, lease_generation: int, *, lease_ttl_secs: float | None = None
    ) -> JobRecord:
        """Heartbeat for a holder that knows the job's id but not its scope."""
        held = Token(None, *check.holder(job_id, worker_id, lease_generation))
        return self._engine.extend(held, check.heartbeat_us(lease_ttl_secs), self._now_us())

    def extend_many(self, leases: Leases, *, lease_ttl_secs: float | None = None, atomic: bool = False) -> Outcomes:
        """Heartbeat for up to 1,000 leases in one write; a JobRecord, LeaseConflict or JobNotFound for each."""
        check.flag("atomic", atomic)
        held, ttl_us = tokens(leases), check.heartbeat_us(lease_ttl_secs)
        return self._engine.extend_many(held, ttl_us, atomic, self._now_us()) if held else []

    def checkpoint(
        self,
        lease: JobRecord | Lease,
        continuation: bytes,
        *,
        durable: bool = False,
        lease_ttl_secs: float | None = None,
    ) -> JobRecord:
        """Keep a continuation for as long as this lease lasts, and extend the lease in the same write.

        A `durable` one has a place of its own, `durable_continuation`, and is there for every later lease, however
        this one ends, until the job is completed.
        """
        kept = check.continuation(continuation, self._max_payload_bytes)
        is_durable, ttl_us = check.flag("durable", durable), check.heartbeat_us(lease_ttl_secs)
        return self._engine.checkpoint(token(lease), kept, is_durable, ttl_us, self._now_us())

    def progress(
        self,
        lease: JobRecord | Lease,
        fraction: float,
        text: str | None = None,
        *,
        lease_ttl_secs: float | None = None,
    ) -> JobRecord:
        """Say how much of the work is done, from 0 to 1, and in at most 4 KiB of text; also a heartbeat.

        Kept to the millionth until the job is leased again, and in place of what was said before.
        """
        millionths, line = told(fraction, text)
        ttl_us = check.heartbeat_us(lease_ttl_secs)
        return self._engine.progress(token(lease), millionths, line, ttl_us, self._now_us())

    def stats(self, lease: JobRecord | Lease, detail: str) -> JobRecord:
        """Add a line, at most 4 KiB, to the job's trail."""
        return self._engine.stats(token(lease), check.detail(detail), self._now_us())

    def complete(
        self,
        lease: JobRecord | Lease,
        *,
        result: bytes | None = None,
        late: str = "refuse",
        then: Iterable[JobSpec] = (),
        durability: str | None = None,
    ) -> JobRecord:
        """Finish the job. Raises LeaseConflict when the lease is lost.

        A `result`, as long as a payload may be, is kept with the job. `late="accept_if_unclaimed"` also accepts all
        this after the reaper ended the lease, while nobody has leased the job since. The jobs of `then`, up to 999, are
        stored in its scope by the same write: they are there if and only if this one is completed.
        """
        if then:
            return self._chain(lease, result, late, then, durability)[0]
        to_disk = durability is not None and check.stronger(durability)
        kept = None if result is None else check.blob("result", result, self._max_payload_bytes)
        record = self._engine.complete(token(lease), late != "refuse" and check.late(late), kept, self._now_us())
        if to_disk:
            self._take_to_disk()
        return record

    def complete_many(
        self, leases: Leases, *, late: str = "refuse", atomic: bool = False, durability: str | None = None
    ) -> Outcomes:
        """Finish up to 1,000 jobs in one write; a JobRecord, LeaseConflict or JobNotFound for each."""
        to_disk = durability is not None and check.stronger(durability)
        check.flag("atomic", atomic)
        held, accept_late = tokens(leases), check.late(late)
        outcomes = self._engine.complete_many(held, accept_late, atomic, self._now_us()) if held else []
        if to_disk:
            self._take_to_disk()
        return outcomes

    def fail(
        self,
        lease: JobRecord | Lease,
        error: str,
        *,
        retryable: bool = True,
        delay_secs: float | None = None,
        cause: str = "error",
    ) -> JobRecord:
        """Count a failed attempt. The job waits out its backoff, or is dead: look at the returned state.

        It is dead when it is not retryable or when its attempts are used up. `error` is kept in the trail, cut to
        4 KiB. `delay_secs` takes the place of the backoff; 0 is due at once. A `cause` of "timeout" is the dead_reason
        of a job that is dead by this; one of "crash" counts a crash too, as if the reaper had ended the lease.
        """
        lost = check.loss(error, retryable, delay_secs, cause)
        return self._engine.fail(token(lease), lost, self._now_us())

    def fail_many(self, failures: Failures, *, retryable: bool = True, atomic: bool = False) -> Outcomes:
        """Count a failed attempt of up to 1,000 jobs, each a `Failure` or a pair of lease and error, in one write.

        `retryable` is for the pairs. A JobRecord, LeaseConflict or JobNotFound for each.
        """
        check.flag("retryable", retryable)
        check.flag("atomic", atomic)
        held, losses = failures_of(failures, retryable)
        return self._engine.fail_many(held, losses, atomic, self._now_us()) if held else []

    def release(self, lease: JobRecord | Lease, *, delay_secs: float = 0) -> JobRecord:
        """Give the job back unspent, to snooze it: no attempt is counted, and it is due after the delay."""
        return self._engine.release(token(lease), check.span_us("delay_secs", delay_secs), self._now_us())

    def reap_expired(self, now_us: int | None = None) -> ReapReport:
        """Take back every lease whose deadline, `lease_grace_secs` included, has passed; one pass of the reaper.

        Then bury the pending jobs that have expired: `expired` of the report counts them.

        A `now_us` later than the queue's clock moves that clock on, for good: no job is ever given an earlier time
        again. It is at most ten years ahead. An earlier one counts as now.
        """
        at_us = self._now_us()
        if now_us is not None:
            at_us = self._now_us.advance_to(check.moment_us("now_us", now_us, at_us))
        return self._engine.reap_expired(at_us)

    def _lease_one(
        self, scope: bytes | None, kinds: KindArgument, worker_id: str, ttl_secs: float | None, wait_secs: float
    ) -> JobRecord | None:
        if type(wait_secs) is int and wait_secs == 0:  # the most used of all calls, so the straight way
            wanted = None if kinds is None else check.kind_filter(kinds)
            ttl_us = self._lease_ttl_us if ttl_secs is None else check.ttl_us(ttl_secs)
            return self._engine.lease_next(scope, wanted, worker(worker_id), ttl_us, self._now_us())
        leased = self._lease(scope, 1, MAX_LEASE_BYTES, kinds, worker_id, ttl_secs, wait_secs)
        return leased[0] if leased else None

    def _lease(
        self,
        scope: bytes | None,
        n: int,
        max_bytes: int,
        kinds: KindArgument,
        worker_id: str,
        ttl_secs: float | None,
        wait_secs: float,
    ) -> JobRecords:
        wanted = Wanted(scope, n, max_bytes, check.kind_filter(kinds), worker(worker_id), self._ttl_us(ttl_secs))
        wait_us = check.span_us("wait_secs", wait_secs)
        return lease_within(wait_us, wanted, self._engine, self._now_us)

    def _ttl_us(self, lease_ttl_secs: float | None) -> int:
        return self._lease_ttl_us if lease_ttl_secs is None else check.ttl_us(lease_ttl_secs)
