"""One outcome per job of a verb on many: the job, or what this one met."""

from __future__ import annotations

from telha_queue.engine import Engine, NewJob, Outcomes
from telha_queue.errors import InvalidArgument


def enqueue_the_good(
    engine: Engine, scope: bytes, jobs: list[NewJob | InvalidArgument], atomic: bool, now_us: int
) -> Outcomes:
    """Store the jobs that passed their check, in one write; those that did not are their own outcome."""
    good = [job for job in jobs if isinstance(job, NewJob)]
    if not good:
        return list(jobs)  # type: ignore[arg-type]
    stored = engine.enqueue_many(scope, good, atomic, now_us)
    if len(good) == len(jobs):
        return stored
    records = iter(stored)
    return [next(records) if isinstance(job, NewJob) else job for job in jobs]
