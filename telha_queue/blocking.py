"""Leasing with patience: look, and if nothing is ready, sleep until something may be.

Nothing is polled. The engine ends the sleep when a job is enqueued, retried, reaped or given back; what it cannot see
coming, a gate that opens, bounds the sleep from here.
"""

from __future__ import annotations

import time

from telha_queue.clock import Clock
from telha_queue.engine import Engine, JobRecords, Kinds
from telha_queue.named import NamedTuple


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
        # Taken before the look, so that whatever becomes ready after the look ends the sleep below at once.
        ticket = engine.ready_ticket(wanted.scope)
        looked_us = now_us()
        leased = _lease_now(wanted, engine, looked_us)
        left_us = (give_up_ns - time.monotonic_ns()) // 1000
        if leased or left_us <= 0:
            return leased
        # As of the look: a gate that has opened since is one to look at again, not one to forget.
        due_us = engine.next_due_us(wanted.scope, wanted.kinds, looked_us)
        if due_us is not None:
            left_us = min(left_us, max(due_us - looked_us, 1))
        engine.wait_ready(wanted.scope, wanted.kinds, ticket, left_us)


def _lease_now(wanted: Wanted, engine: Engine, now_us: int) -> JobRecords:
    scope, n, max_bytes, kinds, worker_id, ttl_us = wanted
    if n > 1:
        return engine.lease_many(scope, n, max_bytes, kinds, worker_id, ttl_us, now_us)
    record = engine.lease_next(scope, kinds, worker_id, ttl_us, now_us)
    return [] if record is None else [record]
