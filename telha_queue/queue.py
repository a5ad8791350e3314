"""The queue as its users see it: check the arguments, fill in defaults, read the clock, call one engine verb.

Every call reaches the jobs through `self._engine` and nothing else: that attribute is the one place where metrics or
tracing wrap themselves around the verbs.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from uuid import UUID

from telha_queue import arguments as check
from telha_queue.blocking import Wanted, lease_within
from telha_queue.clock import Clock, ForkedClock, GuardedClock
from telha_queue.config import MAX_BATCH_JOBS, QueueConfig
from telha_queue.engine import Engine, JobRecords, Outcomes, Token
from telha_queue.errors import StorageError
from telha_queue.job import JobRecord, JobSpec, JobState, Lease, ReapReport
from telha_queue.process import unwatch, watch
from telha_queue.scope import Scope, scope_as_stored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from telha_queue.reaper import Reaper

MAX_LIST = 1000

KindArgument = str | Iterable[str] | None
Scopes = list[Scope]  # the verb `list` hides the class inside Queue


class Queue:
    """A durable queue in one directory. Safe to use from many threads; one process owns a directory at a time.

    Times are microseconds since the Unix epoch, spans are seconds. Verbs that change a job return it as it is after
    the change, and are on disk, as `QueueConfig.durability` says, when they return. All raise InvalidArgument for an
    argument outside its range, StoreClosed after close() and StorageError when the disk fails. A StorageError with
    outcome "unknown" leaves it open whether the change was made.
    """

    def __init__(self, engine: Engine, config: QueueConfig | None = None, clock: Clock | None = None) -> None:
        """Wrap an engine that is already open; most programs use `Queue.open`."""
        check.wiring(engine, config, clock)
        self._engine = engine
        self._config = config if config is not None else QueueConfig()
        self._now_us = GuardedClock(clock, start_us=engine.last_seen_us())
        self._lease_ttl_us = round(self._config.lease_ttl_secs * 1_000_000)
        self._named: set[bytes] = set()
        self._reaper: Reaper | None = None
        self._reaper_lock = threading.RLock()  # a signal handler may close the queue while its thread is at it
        subscribe = getattr(clock, "subscribe", None)
        if subscribe is not None:
            subscribe(engine.wake)
        watch(self)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        config: QueueConfig | None = None,
        clock: Clock | None = None,
        *,
        create: bool = True,
    ) -> Queue:
        """Open the queue in a directory, creating both when they are missing and `create` is true.

        Without a config, defaults and TELHA_JOBS_* variables apply. Raises StoreLocked when another owner has the
        directory open, InvalidPath when it cannot be a queue, ConfigError, CorruptionError.
        """
        from telha_queue.engines.rocks import RocksEngine  # the import that loads RocksDB

        check.wiring(None, config, clock)  # before a directory is made and owned
        settings = QueueConfig.from_env() if config is None else config
        return cls(RocksEngine.open(path, settings, create=create), settings, clock)

    @property
    def config(self) -> QueueConfig:
        """The settings this queue was opened with."""
        return self._config

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
    ) -> JobRecord:
        """Store a job. Lower priority numbers are leased first; jobs of one priority in the order they came.

        With an idempotency key that a job of this scope already has, that job is returned and nothing is stored.
        `not_before` (µs) or `delay_secs` keeps the job from being leased earlier. `max_attempts` is its own ceiling.
        """
        key = check.scope_key(scope)
        now_us = self._now_us()
        limits = (self._config.max_payload_bytes, now_us)
        job = check.new_job(limits, kind, payload, priority, not_before, delay_secs, idempotency_key, max_attempts)
        if scope.name is not None:
            self._keep_name(key, scope.name)
        return self._engine.enqueue(key, job, now_us)

    def enqueue_many(self, scope: Scope, jobs: Iterable[JobSpec]) -> JobRecords:
        """Store up to 1,000 jobs in one write, all or nothing, and return them in order.

        A job whose idempotency key is taken, in the store or earlier in the list, yields the job that has it.
        """
        key = check.scope_key(scope)
        now_us = self._now_us()
        checked = check.new_jobs(jobs, self._config.max_payload_bytes, now_us)
        if checked and scope.name is not None:
            self._keep_name(key, scope.name)
        return self._engine.enqueue_many(key, checked, now_us) if checked else []

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
        return self._lease_one(check.scope_key(scope), kinds, worker_id, lease_ttl_secs, wait_secs)

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
    ) -> JobRecords:
        """Lease up to `n` jobs (1 to 1,000) in one write, in order; a scope of None is any scope.

        Waits, if asked to, for the first one only.
        """
        check.whole("n", n, 1, MAX_BATCH_JOBS)
        key = None if scope is None else check.scope_key(scope)
        return self._lease(key, n, kinds, worker_id, lease_ttl_secs, wait_secs)

    def extend(self, lease: JobRecord | Lease, *, lease_ttl_secs: float | None = None) -> JobRecord:
        """Heartbeat: move the deadline to now + ttl, never earlier than it is. Raises LeaseConflict when lost.

        Without a ttl of its own it extends by the one that the lease was taken for.
        """
        return self._engine.extend(check.token(lease), check.heartbeat_us(lease_ttl_secs), self._now_us())

    def extend_any(
        self, job_id: UUID, worker_id: str, lease_generation: int, *, lease_ttl_secs: float | None = None
    ) -> JobRecord:
        """Heartbeat for a holder that knows the job's id but not its scope."""
        token = Token(None, *check.holder(job_id, worker_id, lease_generation))
        return self._engine.extend(token, check.heartbeat_us(lease_ttl_secs), self._now_us())

    def checkpoint(
        self, lease: JobRecord | Lease, continuation: bytes, *, lease_ttl_secs: float | None = None
    ) -> JobRecord:
        """Keep a continuation for as long as this lease lasts, and extend the lease in the same write."""
        kept = check.continuation(continuation, self._config.max_payload_bytes)
        return self._engine.checkpoint(check.token(lease), kept, check.heartbeat_us(lease_ttl_secs), self._now_us())

    def stats(self, lease: JobRecord | Lease, detail: str) -> JobRecord:
        """Add a line, at most 4 KiB, to the job's trail."""
        return self._engine.stats(check.token(lease), check.detail(detail), self._now_us())

    def complete(self, lease: JobRecord | Lease, *, late: str = "refuse") -> JobRecord:
        """Finish the job. Raises LeaseConflict when the lease is lost.

        `late="accept_if_unclaimed"` also accepts it after the reaper ended the lease, while nobody has leased the
        job since.
        """
        return self._engine.complete(check.token(lease), check.late(late), self._now_us())

    def complete_many(self, leases: Iterable[JobRecord | Lease], *, late: str = "refuse") -> Outcomes:
        """Finish up to 1,000 jobs in one write.

        Returns one outcome per lease, in order: the finished job, or the LeaseConflict or JobNotFound that this one
        met, returned and not raised, so that it harms no other.
        """
        tokens = check.tokens(leases)
        accept_late = check.late(late)
        return self._engine.complete_many(tokens, accept_late, self._now_us()) if tokens else []

    def fail(self, lease: JobRecord | Lease, error: str, *, retryable: bool = True) -> JobRecord:
        """Count a failed attempt. The job waits out its backoff, or is dead: look at the returned state.

        It is dead when it is not retryable or when its attempts are used up. `error` is kept in the trail, cut to
        4 KiB.
        """
        check.flag("retryable", retryable)
        return self._engine.fail(check.token(lease), check.error_text(error), retryable, self._now_us())

    def release(self, lease: JobRecord | Lease, *, delay_secs: float = 0) -> JobRecord:
        """Give the job back unspent: no attempt is counted, and it is due after the delay."""
        return self._engine.release(check.token(lease), check.span_us("delay_secs", delay_secs), self._now_us())

    def retry(self, scope: Scope, job_id: UUID) -> JobRecord:
        """Put a dead job back to Pending, its attempts at 0. Raises InvalidTransition for any other state."""
        return self._engine.retry(check.scope_key(scope), check.uuid_bytes(job_id), self._now_us())

    def get(self, scope: Scope, job_id: UUID) -> JobRecord:
        """The job of that id in that scope; JobNotFound for an unknown id and for one of another scope alike."""
        return self._engine.get(check.scope_key(scope), check.uuid_bytes(job_id))

    def find(self, job_id: UUID) -> JobRecord:
        """The job of that id in whatever scope. For operators: a tenant's request goes through `get`."""
        return self._engine.find(check.uuid_bytes(job_id))

    def find_leased_any(self, job_id: UUID) -> JobRecord | None:
        """The job of that id in whatever scope if it is leased now, else None."""
        record = self._engine.find(check.uuid_bytes(job_id))
        return record if record.state == JobState.LEASED else None

    def list(
        self,
        scope: Scope | None = None,
        *,
        state: JobState | None = None,
        kinds: KindArgument = None,
        limit: int = 100,
        after: JobRecord | None = None,
    ) -> JobRecords:
        """Up to `limit` (1 to 1,000) jobs in the order scope, state, priority, created_at.

        Pass the last record of one page as `after` to get the next. A job that changes state between two pages may
        be seen twice or not at all.
        """
        return self._engine.list(
            None if scope is None else check.scope_key(scope),
            check.state(state),
            check.kind_filter(kinds),
            check.whole("limit", limit, 1, MAX_LIST),
            check.page_key(after),
        )

    def counts(self, scope: Scope | None = None) -> dict[JobState, int]:
        """Exact number of jobs in each state, in one scope or in all, at one moment. Reads every key: not for loops."""
        return self._engine.counts(None if scope is None else check.scope_key(scope))

    def scopes(self) -> Scopes:
        """The scopes that have jobs, the system first; each with its name, if a job was enqueued to it by name."""
        return [scope_as_stored(key, name) for key, name in self._engine.scopes()]

    def reap_expired(self, now_us: int | None = None) -> ReapReport:
        """Take back every lease whose deadline, `lease_grace_secs` included, has passed; one pass of the reaper.

        A `now_us` later than the queue's clock moves that clock on, for good: no job is ever given an earlier time
        again. It is at most ten years ahead. An earlier one counts as now.
        """
        at_us = self._now_us()
        if now_us is not None:
            at_us = self._now_us.advance_to(check.moment_us("now_us", now_us, at_us))
        return self._engine.reap_expired(at_us)

    def start_reaper(self) -> Reaper:
        """Run `reap_expired` every `reaper_interval_secs` in a thread until the queue is closed.

        Calling it again returns the reaper that runs.
        """
        from telha_queue.reaper import Reaper  # and with it logging, which takes long to import

        started = Reaper(self, self._config.reaper_interval_secs)
        with self._reaper_lock:
            if self._reaper is not None:
                return self._reaper
            self._reaper = started
            try:
                started.start()
            except BaseException:  # there may be no room for another thread
                self._reaper = None
                raise
            return started

    def close(self) -> None:
        """Wake waiters, wait for calls under way, stop the reaper, release the directory. Again: does nothing."""
        with self._reaper_lock:
            reaper, self._reaper = self._reaper, None
        if reaper is not None:
            reaper.stop()
        self._engine.close()
        unwatch(self)

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        try:
            self.close()
        except StorageError:
            if kind is None:  # else the block's own error is the one that tells what went wrong
                raise

    def _keep_name(self, key: bytes, name: str) -> None:
        """Have the store know a name before the first job that this queue enqueues with it."""
        if key not in self._named:
            self._engine.name_scope(key, name)
            self._named.add(key)

    def _lease_one(
        self, scope: bytes | None, kinds: KindArgument, worker_id: str, ttl_secs: float | None, wait_secs: float
    ) -> JobRecord | None:
        if type(wait_secs) is int and wait_secs == 0:  # the most used of all calls, so the straight way
            wanted, worker = check.kind_filter(kinds), check.worker(worker_id)
            return self._engine.lease_next(scope, wanted, worker, self._ttl_us(ttl_secs), self._now_us())
        leased = self._lease(scope, 1, kinds, worker_id, ttl_secs, wait_secs)
        return leased[0] if leased else None

    def _lease(
        self, scope: bytes | None, n: int, kinds: KindArgument, worker_id: str, ttl_secs: float | None, wait_secs: float
    ) -> JobRecords:
        wanted = Wanted(scope, n, check.kind_filter(kinds), check.worker(worker_id), self._ttl_us(ttl_secs))
        wait_us = check.span_us("wait_secs", wait_secs)
        return lease_within(wait_us, wanted, self._engine, self._now_us)

    def _ttl_us(self, lease_ttl_secs: float | None) -> int:
        return self._lease_ttl_us if lease_ttl_secs is None else check.ttl_us(lease_ttl_secs)

    def abandon(self) -> None:
        """In a forked child: refuse every call, and touch no lock that a thread of the parent may hold. Internal."""
        self._now_us = ForkedClock()
        self._reaper_lock = threading.RLock()
        self._reaper = None
