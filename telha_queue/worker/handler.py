"""Calls a task's function for a job, and says what came of it. Knows no threads and no queue."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import nullcontext
from typing import TYPE_CHECKING

from telha_queue.config import HARD_PAYLOAD_BYTES
from telha_queue.worker import tracing
from telha_queue.worker.logs import current
from telha_queue.worker.verdict import Done, ErrorRules, Failed, Outcome, described, outcome_of, within

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from telha_queue.job import JobRecord
    from telha_queue.worker.job import Job
    from telha_queue.worker.task import AnyTask

_DONE = Done()


def call(task: AnyTask, job: Job, rules: ErrorRules, worker_id: str | None) -> Outcome:
    """Run a plain function to its end. Without a `worker_id` there is no span: the worker has one, elsewhere."""
    token = current.set(job.record)
    try:
        with span(job.record, worker_id):
            result = task.run(job)
    except BaseException as error:  # noqa: BLE001  # even SystemExit: a handler ends its attempt, not its thread
        return outcome_of(error, rules)
    finally:
        current.reset(token)
    if inspect.iscoroutine(result):
        result.close()
        return Failed("the function returned a coroutine: declare the task itself with async def", retryable=False)
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        return Failed("the function returned a generator, which nobody runs", retryable=False)
    return _done(task, result)


async def call_async(task: AnyTask, job: Job, rules: ErrorRules, worker_id: str) -> Outcome:
    """Run an `async def` to its end; a cancellation passes through."""
    current.set(job.record)  # of this task of the loop, and of those that it starts
    try:
        with span(job.record, worker_id):
            result = await task.run(job)
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001  # as above
        return outcome_of(error, rules)
    return _done(task, result)


def _done(task: AnyTask, returned: object) -> Outcome:
    """With what the function returned, if the task keeps that."""
    if not task.keeps_result:
        return _DONE
    try:
        result = task.encoded(returned)
    except Exception as error:  # noqa: BLE001  # a codec is somebody's, and so is what it was given
        return Failed(f"what the function returned cannot be kept: {described(error)}", retryable=False)
    return within(Done(result), HARD_PAYLOAD_BYTES)


def span(record: JobRecord, worker_id: str | None) -> AbstractContextManager[None]:
    """A span of tracing, if the program traces."""
    return tracing.processing(record, worker_id) if worker_id is not None and tracing.is_on() else nullcontext()
