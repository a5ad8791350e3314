"""Verbs on many jobs: what callers pass, item by item, and one outcome each. See telha_queue/arguments.py."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from telha_queue.arguments import loss, new_job, token
from telha_queue.config import MAX_BATCH_BYTES, MAX_BATCH_JOBS
from telha_queue.engine import Engine, Loss, NewJob, Outcomes, Token
from telha_queue.errors import InvalidArgument, InvalidType, PayloadTooLarge
from telha_queue.job import Failure, JobRecord, JobSpec, Lease

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")

Failures = Iterable[Failure | tuple[JobRecord | Lease, str]]


def new_jobs(
    specs: Iterable[JobSpec], max_payload_bytes: int, now_us: int, atomic: bool
) -> list[NewJob | InvalidArgument]:
    """Many jobs to enqueue: at most 1,000 and 16 MiB of payload.

    What is wrong with one stands in its place; with `atomic` it is raised, before anything is stored.
    """
    if isinstance(specs, JobSpec):  # a tuple, and so an iterable
        raise InvalidType("jobs is a list of JobSpec, not one of them")
    jobs: list[NewJob | InvalidArgument] = []
    size_bytes = 0
    for i, spec in enumerate(listed("jobs", specs)):
        try:
            if not isinstance(spec, JobSpec):
                raise InvalidType(f"a job to enqueue is a JobSpec, not {type(spec).__name__}")
            if len(spec) != len(JobSpec._fields):
                raise InvalidType(f"a JobSpec has {len(JobSpec._fields)} fields, not {len(spec)}")
            job = new_job(*spec, max_payload_bytes, now_us)
            size_bytes += len(job.payload)
            jobs.append(job)
        except InvalidArgument as error:
            if atomic:
                raise _of_item(f"job {i}", error) from None
            jobs.append(_of_item(f"job {i}", error))
    if size_bytes > MAX_BATCH_BYTES:
        raise PayloadTooLarge("the batch", size_bytes=size_bytes, limit_bytes=MAX_BATCH_BYTES)
    return jobs


def failures_of(failures: Failures, by_default: bool) -> tuple[list[Token], list[Loss]]:
    """Leases and how each of them failed: at most 1,000. `by_default`: whether those may be retried that do not say."""
    held: list[Token] = []
    losses: list[Loss] = []
    for given in listed("failures", failures):
        try:
            failure = Failure(*given, by_default) if type(given) is tuple and len(given) == 2 else given
            if not isinstance(failure, Failure) or len(failure) != len(Failure._fields):
                raise InvalidType(
                    f"a failure is a Failure, or a pair of a lease and its error, not {type(given).__name__}"
                )
            lease, error, retryable, delay_secs, cause = failure
            held.append(token(lease))
            losses.append(loss(error, retryable, delay_secs, cause))
        except InvalidArgument as wrong:
            raise _of_item(f"failure {len(losses)}", wrong) from None
    return held, losses


def tokens(leases: Iterable[JobRecord | Lease]) -> list[Token]:
    """Many leases: at most 1,000. One that is none refuses all; one that is lost is for the engine to find."""
    if isinstance(leases, (JobRecord, Lease)):
        raise InvalidType("leases is a list of leases, not one of them")
    checked: list[Token] = []
    for lease in listed("leases", leases):
        try:
            checked.append(token(lease))
        except InvalidArgument as error:
            raise _of_item(f"lease {len(checked)}", error) from None
    return checked


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


def listed(what: str, items: Iterable[T]) -> list[T]:
    """The items of an argument, at most 1,000 and maybe none."""
    if not isinstance(items, Iterable) or isinstance(items, (str, bytes, bytearray, memoryview)):
        raise InvalidType(f"{what} is a list or another iterable, not {type(items).__name__}")
    found = list(islice(items, MAX_BATCH_JOBS + 1))  # who knows whether there is an end to it
    if len(found) > MAX_BATCH_JOBS:
        raise InvalidArgument(f"{what} holds more than {MAX_BATCH_JOBS} items")
    return found


def _of_item(which: str, error: InvalidArgument) -> InvalidArgument:
    error.args = (f"{which}: {error}",)  # the error that it is, with what it knows; its text says where
    return error
