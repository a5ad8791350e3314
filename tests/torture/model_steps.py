"""The steps of a random life, as plain values: drawn without looking at any queue, done on whatever queue is there.

A step names a lease by a number that is taken modulo the leases there are, so every part of a life is a life as well.
That is what lets a failure be made small.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

from telha_queue import Exact, JobSpec, JobState, Lease, Queue, Scope

SCOPES = (Scope.SYSTEM, Scope.named("acme"), Scope.tenant(UUID(int=2**128 - 1), UUID(int=2**128 - 1)))
KINDS = ("a", "ab", "b")
FILTERS = (None, None, None, "a", Exact("a"), ("b", Exact("ab")), "nothing")
WORKERS = ("w1", "w2")
PAYLOADS = (b"", b"payload", b"p" * 4096, b"q" * 4097)
JUMPS_SECS = (-86_400, -3600, -1, 20, 60, 3600, 86_400, 31_536_000)
LATE = ("refuse", "accept_if_unclaimed")


class Step(NamedTuple):
    """One thing to do: a verb's name and what `PERFORM` or the life needs to do it."""

    verb: str
    words: tuple[Any, ...]


def draw(chance: Random) -> Step:
    """Any step."""
    verb = chance.choices(VERBS, WEIGHTS)[0]
    return Step(verb, DRAW[verb][1](chance))


def _spec(chance: Random) -> JobSpec:
    return JobSpec(
        chance.choice(KINDS),
        chance.choice(PAYLOADS),
        priority=chance.choice((0, 1, 1, 255)),
        delay_secs=chance.choice((None, None, None, 0, 1, 7.5)),
        idempotency_key=chance.choice((None, None, None, "k1", "k2", "k3")),
        max_attempts=chance.choice((None, None, 1, 2)),
    )


def _which(chance: Random) -> int:
    return chance.randrange(1000)


def _scope(chance: Random) -> Scope:
    return chance.choice(SCOPES)


def _tick(chance: Random) -> tuple[int]:
    return (chance.choice((0, 1, 2, 500_000, 1_000_000, 5_000_000, 20_500_000)),)


DRAW: dict[str, tuple[float, Callable[[Random], tuple[Any, ...]]]] = {
    "enqueue": (12, lambda c: (_scope(c), _spec(c))),
    "enqueue_many": (3, lambda c: (_scope(c), [_spec(c) for _ in range(c.randrange(5))])),
    "lease_next": (14, lambda c: (_scope(c), c.choice(FILTERS), c.choice(WORKERS), c.randint(1, 30))),
    "lease_next_any": (6, lambda c: (None, c.choice(FILTERS), c.choice(WORKERS), c.randint(1, 30))),
    "lease_many": (5, lambda c: (c.choice((None, *SCOPES)), c.randint(1, 4), c.choice(FILTERS), c.choice(WORKERS))),
    "extend": (4, lambda c: (_which(c), c.choice((None, 1, 60)))),
    "extend_any": (2, lambda c: (_which(c),)),
    "checkpoint": (3, lambda c: (_which(c), c.randbytes(c.randrange(40)), c.random() < 0.4)),
    "progress": (2, lambda c: (_which(c), c.random(), c.choice((None, "", "half")))),
    "stats": (3, lambda c: (_which(c), c.choice(("", "line", "x" * 4096)), c.choice((1, 1, 1, 12)))),
    "complete": (8, lambda c: (_which(c), c.choice((None, None, b"", b"r" * 4096, b"s" * 4097)), c.choice(LATE))),
    "complete_many": (3, lambda c: ([_which(c) for _ in range(c.randrange(4))], c.choice(LATE))),
    "fail": (8, lambda c: (_which(c), c.choice(("", "error")), c.random() < 0.7)),
    "release": (3, lambda c: (_which(c), c.choice((0, 0, 3)))),
    "retry": (5, lambda c: (_which(c),)),
    "read": (2, lambda c: (_which(c),)),
    "list": (3, lambda c: (c.choice((None, *SCOPES)), c.choice((None, *JobState)), c.choice(FILTERS), c.randint(1, 5))),
    "reap": (6, lambda c: (c.choice((None, None, None, 1_000_000, -1_000_000)),)),
    "forge": (3, lambda c: (_which(c), c.choice(WORKERS), c.choice((0, 1, 2**64 - 1)), _scope(c))),
    "tick": (10, _tick),
    "jump": (2, lambda c: (c.choice(JUMPS_SECS),)),
    "reopen": (0.5, lambda c: ()),
    "crash": (0.5, lambda c: ()),
}
VERBS = tuple(DRAW)
WEIGHTS = tuple(weight for weight, _ in DRAW.values())

PERFORM: dict[str, Callable[..., Any]] = {
    "enqueue": lambda queue, scope, spec: queue.enqueue(scope, **spec._asdict()),
    "enqueue_many": lambda queue, scope, specs: queue.enqueue_many(scope, specs),
    "lease_next": lambda q, scope, kinds, worker, ttl: q.lease_next(scope, kinds, worker_id=worker, lease_ttl_secs=ttl),
    "lease_next_any": lambda q, _, kinds, worker, ttl: q.lease_next_any(kinds, worker_id=worker, lease_ttl_secs=ttl),
    "lease_many": lambda q, scope, n, kinds, worker: q.lease_many(scope, n, kinds, worker_id=worker),
    "extend": lambda queue, lease, ttl: queue.extend(lease, lease_ttl_secs=ttl),
    "extend_any": lambda queue, lease: queue.extend_any(lease.job_id, lease.worker_id, lease.lease_generation),
    "checkpoint": lambda queue, lease, continuation, durable: queue.checkpoint(lease, continuation, durable=durable),
    "progress": lambda queue, lease, fraction, text: queue.progress(lease, fraction, text),
    "stats": lambda queue, lease, text, times: [queue.stats(lease, text) for _ in range(times)],
    "complete": lambda queue, lease, result, late: queue.complete(lease, result=result, late=late),
    "complete_many": lambda queue, leases, late: queue.complete_many(leases, late=late),
    "fail": lambda queue, lease, error, retryable: queue.fail(lease, error, retryable=retryable),
    "release": lambda queue, lease, delay: queue.release(lease, delay_secs=delay),
    "retry": lambda queue, lease: queue.retry(lease.scope, lease.job_id),
    "read": lambda queue, lease: _read(queue, lease),
    "list": lambda q, scope, state, kinds, limit: q.list(scope, state=state, kinds=kinds, limit=limit),
    "reap": lambda queue, at_us: queue.reap_expired(at_us),
}
"""What a step does to a queue. Where `DRAW` has a number for a lease, or numbers, stand the leases themselves."""

BY_LEASE = frozenset(
    (
        "extend",
        "extend_any",
        "checkpoint",
        "progress",
        "stats",
        "complete",
        "complete_many",
        "fail",
        "release",
        "retry",
        "read",
    )
)
"""Steps whose first word picks leases."""


def _read(queue: Queue, lease: Lease) -> list[Any]:
    return [queue.get(lease.scope, lease.job_id), queue.find(lease.job_id), queue.find_leased_any(lease.job_id)]
