"""What came of a call on one queue, in a form that can be compared with what came of it on another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from telha_queue.errors import JobError
from telha_queue.job import JobRecord, Lease, ReapReport
from telha_queue.queue import Queue


def attempt(verb: Callable[[Queue], Any], queue: Queue) -> Any:
    """What a call returns, or the error that it raises."""
    try:
        return verb(queue)
    except JobError as error:
        return error


def facts(outcome: Any) -> Any:
    """What two outcomes are compared by."""
    if isinstance(outcome, list):
        return [facts(item) for item in outcome]
    if isinstance(outcome, JobRecord):
        return outcome.key, outcome.value, outcome.payload, outcome.result
    if isinstance(outcome, JobError):
        return type(outcome), str(outcome), vars(outcome)
    if isinstance(outcome, ReapReport):
        return outcome._replace(dead_jobs=tuple(sorted(outcome.dead_jobs, key=lambda job: job.job_id)))
    return outcome


def everything(queue: Queue) -> list[JobRecord]:
    """Every job of a queue that has few."""
    jobs = queue.list(limit=1000)
    assert len(jobs) < 1000
    return jobs


def token(job: JobRecord) -> Lease:
    """The lease that a record holds, in its short form."""
    return Lease(job.scope, job.job_id, job.worker_id, job.lease_generation)
