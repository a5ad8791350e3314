"""What a handler is given: the job, and what it may do while it holds its lease. Knows no worker.

In a task's own process the same class talks to the worker through a pipe; a handler sees no difference.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from telha_queue.errors import InvalidArgument, JobError
from telha_queue.progress import told

if TYPE_CHECKING:
    from telha_queue.job import JobRecord
    from telha_queue.queue import Queue
    from telha_queue.scope import Scope
    from telha_queue.transaction import Transaction

_waiters_lock = threading.Lock()


class Link(Protocol):
    """How a job reaches the queue that it is of."""

    def checkpoint(self, continuation: bytes, durable: bool) -> None: ...

    def stats(self, detail: str) -> None: ...

    def progress(self, said: tuple[float, str | None] | None) -> None: ...

    def end_progress(self) -> None: ...

    @property
    def queue(self) -> Queue: ...


class Lost:
    """Whether a handler still works for somebody. True, and awaitable, once its lease is over.

    `reason` is then "cancelled" (by `Queue.cancel`), "lost" (the store gave the job to others, or somebody ended it),
    "timeout" or "stalled" (its time was up), or "stopped" (the worker is going away). Its result will not be taken.
    Safe to use from many threads.
    """

    __slots__ = ("_waiters", "reason")

    def __init__(self) -> None:
        self.reason: str | None = None
        self._waiters: list[Callable[[], object]] = []

    def __bool__(self) -> bool:
        return self.reason is not None

    def wait(self, timeout_secs: float | None = None) -> bool:
        """Sleep until it is lost, or the time is over; whether it is."""
        event = threading.Event()
        self.on_set(event.set)
        event.wait(timeout_secs)
        self._forget(event.set)
        return self.reason is not None

    def __await__(self) -> Generator[object, None, None]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        tell = partial(loop.call_soon_threadsafe, _wake, future)
        self.on_set(tell)
        future.add_done_callback(lambda _: self._forget(tell))
        return future.__await__()

    def set(self, reason: str) -> None:
        """Tell it; the first reason counts. For the worker."""
        with _waiters_lock:
            if self.reason is not None:
                return
            self.reason = reason
            waiters, self._waiters = self._waiters, []
        for tell in waiters:
            with suppress(RuntimeError):  # the loop of that waiter is closed
                tell()

    def _forget(self, tell: Callable[[], object]) -> None:
        with _waiters_lock:
            if tell in self._waiters:
                self._waiters.remove(tell)

    def on_set(self, tell: Callable[[], object]) -> None:
        """Call that when it is lost, in the thread that finds out; at once if it is lost already."""
        with _waiters_lock:
            if self.reason is None:
                self._waiters.append(tell)
                return
        tell()


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():  # whoever awaited it may have been cancelled
        future.set_result(None)


class Job:
    """A leased job in its handler's hands. Heartbeats are not its affair: the worker renews the lease."""

    __slots__ = ("_link", "is_completed", "lost", "record")

    def __init__(self, record: JobRecord, link: Link) -> None:
        self.record = record
        """The job as it was leased."""
        self.lost = Lost()
        """True once the lease is over: stop then, the result will be refused. `job.lost.wait(1)`, `await job.lost`."""
        self.is_completed = False
        """Whether the handler has completed it, by `completing`: what it returns or raises then changes nothing."""
        self._link = link

    @property
    def job_id(self) -> UUID:
        return self.record.job_id

    @property
    def scope(self) -> Scope:
        return self.record.scope

    @property
    def kind(self) -> str:
        return self.record.kind

    @property
    def payload(self) -> bytes:
        return self.record.payload

    @property
    def headers(self) -> Mapping[str, str]:
        """What the job was enqueued with besides its payload, such as the context of a trace."""
        return self.record.headers

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self.record.attempts + 1

    @property
    def queue(self) -> Queue:
        """The queue, to enqueue what follows. Not in a process of its own: JobError."""
        return self._link.queue

    @contextmanager
    def completing(self, *, result: bytes | None = None) -> Generator[Transaction]:
        """Complete this job together with all that is gathered in the block, as one write: see `Transaction`.

        So what the handler stores with `put` and what it enqueues is there if and only if the job is completed. Raises
        LeaseConflict at the end of the block when the lease is lost; nothing is done then. The last thing that a
        handler does. Not in a process of its own: JobError.
        """
        with self.queue.transaction() as tx:
            tx.complete(self.record, result=result)
            yield tx
            self._link.end_progress()  # what was said last is with the job when it is completed
        self.is_completed = True

    @property
    def durable_continuation(self) -> bytes | None:
        """Where an earlier attempt was, as its last durable checkpoint says; None if there is none."""
        return self.record.durable_continuation

    def checkpoint(self, continuation: bytes, *, durable: bool = False) -> None:
        """Keep where the job is for as long as this lease lasts, or until it is completed if `durable`.

        Counts as progress. Raises LeaseConflict when the lease is lost.
        """
        self._link.checkpoint(continuation, durable)

    def stats(self, detail: str) -> None:
        """Add a line to the job's trail. Raises LeaseConflict when the lease is lost."""
        self._link.stats(detail)

    def progress(self, fraction: float | None = None, text: str | None = None) -> None:
        """Say that the handler is getting on, for tasks with `progress_secs`; and how far it is, from 0 to 1.

        A fraction is written to the job, at most once a second: what is said in between is kept, the newest of it, and
        written by the first call after that second, or when the handler returns or raises. So what was said last is
        with the job when it is completed. Raises InvalidArgument, and nothing else: not for a lease that is lost, nor
        for a store that fails.
        """
        if fraction is not None:
            told(fraction, text)
        elif text is not None:
            raise InvalidArgument("a text of progress goes with a fraction")
        self._link.progress(None if fraction is None else (fraction, text))

    def __repr__(self) -> str:
        return f"<Job {self.job_id} ({self.kind}), attempt {self.attempt}>"


class NoQueue:
    """The queue of a job whose handler is not in the queue's process."""

    @property
    def queue(self) -> Queue:
        raise JobError("a task in a process of its own has no queue: return, and let a task in the worker enqueue")
