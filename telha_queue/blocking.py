"""Waiting: look, and if nothing is ready, sleep until something may be. Leasing with patience is made of it.

Waiting for the end of a job is the same with another look.

Nothing is polled. The engine ends the sleep when a job is enqueued, retried, reaped or given back; what it cannot see
coming, a gate that opens, bounds the sleep from here.
"""

from __future__ import annotations

import time

from telha_queue.clock import Clock
from telha_queue.engine import Engine, JobRecords, Kinds
from telha_queue.errors import NotEnded
from telha_queue.job import JobRecord, JobState
from telha_queue.named import NamedTuple

_TICKET_BITS = 64
_TOLD = (1 << _TICKET_BITS) - 1
MAX_TICKET = (1 << 63 + _TICKET_BITS) - 1


class Wanted(NamedTuple):
    """What a call wants to lease; a scope of None means any."""

    scope: bytes | None
    n: int
    max_bytes: int
    kinds: Kinds
    worker_id: str
    ttl_us: int


def lease_within(wait_us: int, wanted: Wanted, engine: Engine, now_us: Clock) -> JobRecords:
    """Lease what is wanted, waiting up to `wait_us` for the first job. Empty when the time is over."""
    if wait_us == 0:
        return _lease_now(wanted, engine, now_us())
    give_up_ns = time.monotonic_ns() + 1000 * wait_us
    while True:
        ticket = ready_ticket(wanted.scope, engine, now_us)
        leased = _lease_now(wanted, engine, _looked_us(ticket))
        left_us = (give_up_ns - time.monotonic_ns()) // 1000
        if leased or left_us <= 0:
            return leased
        wait_ready(wanted.scope, wanted.kinds, ticket, left_us, engine, now_us)


def ready_ticket(scope: bytes | None, engine: Engine, now_us: Clock) -> int:
    """A number to be taken before a look: what becomes ready after it ends the sleep under it at once.

    It holds the engine's ticket and, above that, the time: a gate that opens after it is one to look at again.
    """
    told = engine.ready_ticket(scope)
    return now_us() << _TICKET_BITS | told & _TOLD


def wait_ready(scope: bytes | None, kinds: Kinds, ticket: int, wait_us: int, engine: Engine, now_us: Clock) -> None:
    """Sleep until a wanted job may have become ready since the ticket was taken, or for `wait_us`."""
    due_us = engine.next_due_us(scope, kinds, _looked_us(ticket))
    if due_us is not None:
        wait_us = min(wait_us, max(due_us - now_us(), 0))
    engine.wait_ready(scope, kinds, ticket & _TOLD, wait_us)
    engine.ready_ticket(scope)  # raises if the sleep has ended because the engine was closed


def ended_within(wait_us: int, scope: bytes, job_id: bytes, engine: Engine) -> JobRecord:
    """The job once it is completed or dead. Raises NotEnded when the time is over, JobNotFound, StoreClosed."""
    give_up_ns = time.monotonic_ns() + 1000 * wait_us
    while True:
        ticket = engine.ended_ticket(job_id)
        record = engine.get(scope, job_id)
        if record.state in (JobState.COMPLETED, JobState.DEAD):
            return record
        left_us = (give_up_ns - time.monotonic_ns()) // 1000
        if left_us <= 0:
            raise NotEnded(record.job_id, state=record.state, waited_secs=wait_us / 1_000_000)
        engine.wait_ended(job_id, ticket, left_us)


def _looked_us(ticket: int) -> int:
    return ticket >> _TICKET_BITS


def _lease_now(wanted: Wanted, engine: Engine, now_us: int) -> JobRecords:
    scope, n, max_bytes, kinds, worker_id, ttl_us = wanted
    if n > 1:
        return engine.lease_many(scope, n, max_bytes, kinds, worker_id, ttl_us, now_us)
    record = engine.lease_next(scope, kinds, worker_id, ttl_us, now_us)
    return [] if record is None else [record]
