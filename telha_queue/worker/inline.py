"""A worker without threads, for tests: every due job, one after another, in the thread that calls.

It decides by the same code as the real one what an attempt comes to, and nothing runs beside it: what happens when is
the test's affair, and a worker can be lost at a named point of a job's life.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from telha_queue.errors import ConfigError, JobError, LeaseConflict
from telha_queue.job import Exact
from telha_queue.worker import handler
from telha_queue.worker.job import Job
from telha_queue.worker.periodic import Ticks
from telha_queue.worker.verdict import Done, ErrorRules, Failed, Outcome, within

if TYPE_CHECKING:
    from telha_queue.job import JobRecord
    from telha_queue.queue import Queue
    from telha_queue.scope import Scope
    from telha_queue.worker.task import AnyTask

POINTS = ("leased", "handled", "settled")
"""Where an inline worker can be lost: before the handler, between its end and the write of its outcome, after that."""


class WorkerLost(BaseException):
    """The worker died here, as far as the queue can tell. What it had leased stays leased until the reaper comes."""


class _Link:
    """What a job's handler may do, done at once."""

    def __init__(self, queue: Queue, record: JobRecord) -> None:
        self.queue = queue
        self._record = record

    def checkpoint(self, continuation: bytes, durable: bool) -> None:
        self.queue.checkpoint(self._record, continuation, durable=durable)

    def stats(self, detail: str) -> None:
        self.queue.stats(self._record, detail)

    def progress(self, said: tuple[float, str | None] | None) -> None:
        if said is not None:  # at once: time is the test's own
            with suppress(JobError):
                self.queue.progress(self._record, *said)

    def end_progress(self) -> None:
        pass


def run_due(
    queue: Queue,
    tasks: Iterable[AnyTask],
    *,
    scope: Scope | None = None,
    rules: ErrorRules | None = None,
    worker_id: str = "test",
    lost_at: str | None = None,
    lost_after: int = 0,
) -> list[JobRecord]:
    """Run every job of these tasks that is due, those enqueued meanwhile included, until none is left.

    Returns the jobs as they then are, in the order in which they ran. Recurring tasks get the job of their next tick.
    With `lost_at`, one of POINTS, it raises WorkerLost there once `lost_after` jobs have run. Deadlines of tasks are
    not enforced.
    """
    if lost_at is not None and lost_at not in POINTS:
        raise ConfigError(f"lost_at is one of {', '.join(POINTS)}, not {lost_at!r}")
    by_kind = {task.kind: task for task in tasks}
    ticks = Ticks(queue, list(by_kind.values()), scope)
    ticks.see_to_it()
    done: list[JobRecord] = []

    def reached(point: str) -> None:
        if point == lost_at and len(done) >= lost_after:
            raise WorkerLost(point)

    for record in _leased(queue, scope, tuple(map(Exact, by_kind)), worker_id):
        reached("leased")
        outcome: Outcome = Done()
        if ticks.begin(record):
            outcome = _handled(queue, by_kind[record.kind], record, rules or ErrorRules(), worker_id)
        reached("handled")
        settled = _settled(queue, record, within(outcome, queue.config.max_payload_bytes))
        reached("settled")
        done.append(settled)
    return done


def _leased(queue: Queue, scope: Scope | None, kinds: tuple[Exact, ...], worker_id: str) -> Iterator[JobRecord]:
    while records := queue.lease_many(scope, 1, kinds, worker_id=worker_id):
        yield records[0]


def _handled(queue: Queue, task: AnyTask, record: JobRecord, rules: ErrorRules, worker_id: str) -> Outcome:
    job = Job(record, _Link(queue, record))
    if task.limits.is_async:
        return asyncio.run(handler.call_async(task, job, rules, worker_id))
    return handler.call(task, job, rules, worker_id)


def _settled(queue: Queue, record: JobRecord, outcome: Outcome) -> JobRecord:
    """The job as it is afterwards; if the handler lost its lease, as others have left it."""
    try:
        if isinstance(outcome, Done):
            return queue.complete(record, result=outcome.result)
        if isinstance(outcome, Failed):
            how = outcome._asdict()
            return queue.fail(record, how.pop("error"), **how)
        return queue.release(record, delay_secs=outcome.delay_secs)
    except LeaseConflict:
        return queue.get(record.scope, record.job_id)
