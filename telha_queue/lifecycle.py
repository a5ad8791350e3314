"""A queue's life: what it is built of, how it is opened and closed, and what runs beside it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable

from telha_queue import arguments as check
from telha_queue.clock import Clock, ForkedClock, GuardedClock
from telha_queue.config import QueueConfig
from telha_queue.engine import Engine
from telha_queue.errors import StorageError, StoreClosed
from telha_queue.process import unwatch, watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from telha_queue.engine import Outcomes
    from telha_queue.job import JobRecord, Lease, ReapReport, Recovered
    from telha_queue.keeper import LeaseKeeper
    from telha_queue.reaper import Reaper


class OpenQueue:
    """What a `Queue` is besides its verbs."""

    if TYPE_CHECKING:

        def reap_expired(self, now_us: int | None = None) -> ReapReport:
            """One of the verbs: what the reaper runs."""

        def extend_many(self, leases: Iterable[JobRecord | Lease]) -> Outcomes:
            """Another: what a keeper without a native thread calls."""

    def __init__(self, engine: Engine, config: QueueConfig | None = None, clock: Clock | None = None) -> None:
        """Wrap an engine that is already open; most programs use `Queue.open`."""
        check.wiring(engine, config, clock)
        self._engine = engine
        self._config = config if config is not None else QueueConfig()
        self._now_us = GuardedClock(clock, start_us=engine.last_seen_us())
        self._max_payload_bytes = self._config.max_payload_bytes
        self._lease_ttl_us = round(self._config.lease_ttl_secs * 1_000_000)
        self._named: set[bytes] = set()
        self._reaper: Reaper | None = None
        self._reaper_lock = threading.RLock()  # a signal handler may close the queue while its thread is at it
        self._keepers: set[LeaseKeeper] = set()
        self._clock = clock
        self._is_closed = False
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
        recover: str | None = None,
    ) -> Self:
        """Open the queue in a directory, creating both when they are missing and `create` is true.

        Without a config, defaults and TELHA_JOBS_* variables apply. Raises StoreLocked when another owner has the
        directory open, InvalidPath when it cannot be a queue, ConfigError, and CorruptionError when something is gone
        that was on disk. `recover="point_in_time"` opens it nevertheless, with what is left, and `recovered` tells.
        """
        from telha_queue.engines.rocks import RocksEngine  # the import that loads RocksDB

        check.wiring(None, config, clock)  # before a directory is made and owned
        recovers = check.recover(recover)
        settings = QueueConfig.from_env() if config is None else config
        return cls(RocksEngine.open(path, settings, create=create, recovers=recovers), settings, clock)

    @property
    def config(self) -> QueueConfig:
        """The settings this queue was opened with."""
        return self._config

    @property
    def recovered(self) -> Recovered | None:
        """What was missing when this queue was opened with `recover`; None when nothing was."""
        return self._engine.recovered

    @property
    def failure(self) -> str | None:
        """Why this queue takes no writes now, as every `StorageError` of a write says; None while it takes them.

        That is the first write that failed, or the latest `reopen` that did. It is None again once the store is opened
        anew, by `reopen` or by the queue itself at a later write.
        """
        return self._engine.failure

    def flush(self) -> None:
        """Return when everything acknowledged so far is on disk: at once with durability "sync"."""
        self._engine.flush()

    def reopen(self) -> None:
        """Open the store beneath again, when writes have failed and the cause is gone.

        The directory stays owned; other calls wait meanwhile. The queue tries this by itself, at most once a second,
        when something is to be written. Raises StorageError when the store still takes no writes; reads go on then.
        """
        self._engine.reopen()

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

    def keeper(self) -> LeaseKeeper:
        """Make what renews leases by itself while their holders work: see `LeaseKeeper`. Closed with the queue.

        Each call makes another one, with a thread of its own; a program needs one. On disk and with the system's clock
        that is a native thread: a handler that keeps the interpreter to itself does not keep it from its work.
        """
        from telha_queue.keeper import LeaseKeeper, renewals_of  # few programs need it

        self._now_us()  # says it when this is a forked child
        with self._reaper_lock:
            if self._is_closed:
                raise StoreClosed
            renewals = renewals_of(self._engine, self._clock, self._now_us, self.extend_many, self._lease_ttl_us)
            keeper = LeaseKeeper(renewals, self._keepers.discard)
            self._keepers.add(keeper)
            return keeper

    def close(self) -> None:
        """Wake waiters, wait for calls under way, stop reaper and keepers, release the directory.

        Again: does nothing.
        """
        with self._reaper_lock:
            reaper, self._reaper = self._reaper, None
            keepers, self._is_closed = tuple(self._keepers), True
        for keeper in keepers:
            keeper.close()
        if reaper is not None:
            reaper.stop()
        self._engine.close()
        unwatch(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        try:
            self.close()
        except StorageError:
            if kind is None:  # else the block's own error is the one that tells what went wrong
                raise

    def _take_to_disk(self) -> None:
        """What a call that wants it does after its write; with durability "sync" the write was on disk already."""
        if self._config.durability == "sync":
            return
        try:
            self._engine.flush()
        except StorageError as error:
            error.outcome = "unknown"  # the write was made; whether it stays is not known
            raise

    def _keep_name(self, key: bytes, name: str) -> None:
        """Have the store know a name before the first job that this queue enqueues with it."""
        self._engine.name_scope(key, name)
        self._named.add(key)

    def _abandon(self) -> None:
        """In a forked child: refuse every call, and touch no lock that a thread of the parent may hold."""
        self._now_us = ForkedClock()
        self._reaper_lock = threading.RLock()
        self._reaper = None
        for keeper in tuple(self._keepers):
            keeper.abandon()
