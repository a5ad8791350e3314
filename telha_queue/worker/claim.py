"""One job in a worker's hands, from the lease to its outcome. Knows no threads and decides nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from telha_queue.worker.job import Job
from telha_queue.worker.said import Said

if TYPE_CHECKING:
    from telha_queue.job import JobRecord
    from telha_queue.keeper import Held
    from telha_queue.queue import Queue
    from telha_queue.worker.lanes import Share
    from telha_queue.worker.task import AnyTask


class Claim:
    """A leased job, its task, and how far it has come. It is the job's `Link` as well."""

    __slots__ = (
        "_queue", "_said", "decided", "held", "is_hung", "job", "leased_ns", "record", "share", "started_ns", "stop",
        "task", "thread", "wait_us",
    )  # fmt: skip

    def __init__(
        self, queue: Queue, record: JobRecord, task: AnyTask, held: Held, share: Share, now_ns: int, now_us: int
    ) -> None:
        self._queue = queue
        self.record = record
        self.task = task
        self.held = held
        self.share = share
        self.leased_ns = now_ns
        """Monotonic, as all `_ns` here."""
        self.wait_us = max(now_us - record.created_at, 0) if record.attempts == 0 else -1
        """How long it waited for its first lease; -1 for another."""
        self.started_ns = 0
        self.decided = False
        """Its outcome is known: by its handler, or by whoever stopped waiting for it."""
        self.stop: Callable[[], object] | None = None
        """Makes the handler end, where that can be done: cancels a coroutine, kills a process."""
        self.is_hung = False
        """It was told to end long ago, and has not."""
        self.thread = 0
        """The identity of the thread that runs the handler, if one does."""
        self._said: Said | None = None
        self.job = Job(record, self)

    @property
    def queue(self) -> Queue:
        return self._queue

    def checkpoint(self, continuation: bytes, durable: bool) -> None:
        self._queue.checkpoint(self.record, continuation, durable=durable)
        self.held.progress()

    def stats(self, detail: str) -> None:
        self._queue.stats(self.record, detail)

    def progress(self, said: tuple[float, str | None] | None) -> None:
        self.held.progress()
        if said is not None:
            if self._said is None:
                self._said = Said(self._queue, self.record)
            self._said.say(*said)

    def end_progress(self) -> None:
        """Write what the handler said last of its progress, if that was not written."""
        if self._said is not None:
            self._said.end()
