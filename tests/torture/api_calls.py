"""Every verb as a row of slots, each with arguments that are good; for spoiling one or two of them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any
from uuid import UUID

from telha_queue import Exact, JobRecord, JobSpec, JobState, Lease, Queue, QueueConfig, Scope

SCOPES = (Scope.named("acme"), Scope.SYSTEM, Scope.tenant(UUID(int=7)))
SHORTEST_SECS = 1e-6


class Known:
    """What good arguments are made of: jobs and leases that are there or were."""

    def __init__(self) -> None:
        self.jobs: list[JobRecord] = []

    def see(self, job: JobRecord) -> None:
        """Remember a record."""
        self.jobs = [*self.jobs[-30:], job]

    def any(self, chance: Random) -> JobRecord | None:
        return chance.choice(self.jobs) if self.jobs else None


Good = Callable[[Random, Known], Any]


def _lease(chance: Random, known: Known) -> Any:
    job = known.any(chance)
    if job is None or job.worker_id is None or chance.random() < 0.5:
        return job or Lease(SCOPES[0], UUID(int=1), "w", 1)
    return Lease(job.scope, job.job_id, job.worker_id, job.lease_generation)


def _id(chance: Random, known: Known) -> UUID:
    job = known.any(chance)
    return UUID(int=1) if job is None else job.job_id


def _spec(chance: Random, known: Known) -> JobSpec:
    return JobSpec(chance.choice(("x", "xy")), b"p", delay_secs=chance.choice((None, 0, 5)))


SLOTS: dict[str, Good] = {
    "scope": lambda c, k: c.choice(SCOPES),
    "scope or none": lambda c, k: c.choice((None, *SCOPES)),
    "kind": lambda c, k: c.choice(("x", "xy", "z")),
    "kinds": lambda c, k: c.choice((None, "x", Exact("xy"), ["x", "z"])),
    "payload": lambda c, k: c.choice((b"", b"p", b"p" * 5000)),
    "priority": lambda c, k: c.choice((0, 128, 255)),
    "gate": lambda c, k: None,
    "delay": lambda c, k: c.choice((None, 0, 5)),
    "span": lambda c, k: c.choice((0, 0.5, 5)),
    "key": lambda c, k: c.choice((None, "k1", "k2")),
    "ceiling": lambda c, k: c.choice((None, 1, 9)),
    "specs": lambda c, k: [_spec(c, k) for _ in range(c.randrange(3))],
    "worker": lambda c, k: c.choice(("w", "v")),
    "ttl": lambda c, k: c.choice((None, 1, 60.5)),
    "wait": lambda c, k: 0,
    "n": lambda c, k: c.choice((1, 3)),
    "lease": _lease,
    "leases": lambda c, k: [_lease(c, k) for _ in range(c.randrange(3))],
    "id": _id,
    "generation": lambda c, k: c.choice((1, 2)),
    "continuation": lambda c, k: b"here",
    "result": lambda c, k: c.choice((None, b"", b"r" * 5000)),
    "fraction": lambda c, k: c.choice((0, 0.5, 1)),
    "text": lambda c, k: c.choice(("", "line")),
    "text or none": lambda c, k: c.choice((None, "line")),
    "late": lambda c, k: c.choice(("refuse", "accept_if_unclaimed")),
    "flag": lambda c, k: c.random() < 0.8,
    "state": lambda c, k: c.choice((None, *JobState)),
    "limit": lambda c, k: c.choice((1, 1000)),
    "after": lambda c, k: c.choice((None, k.any(c))),
    "time": lambda c, k: None,
    "setting": lambda c, k: 30,
}
VERBS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "enqueue": (
        ("scope", "kind", "payload"),
        {
            "priority": "priority",
            "not_before": "gate",
            "delay_secs": "delay",
            "idempotency_key": "key",
            "max_attempts": "ceiling",
        },
    ),
    "enqueue_many": (("scope", "specs"), {}),
    "lease_next": (("scope", "kinds"), {"worker_id": "worker", "lease_ttl_secs": "ttl", "wait_secs": "wait"}),
    "lease_next_any": (("kinds",), {"worker_id": "worker", "lease_ttl_secs": "ttl", "wait_secs": "wait"}),
    "lease_many": (
        ("scope or none", "n", "kinds"),
        {"worker_id": "worker", "lease_ttl_secs": "ttl", "wait_secs": "wait"},
    ),
    "extend": (("lease",), {"lease_ttl_secs": "ttl"}),
    "extend_any": (("id", "worker", "generation"), {"lease_ttl_secs": "ttl"}),
    "checkpoint": (("lease", "continuation"), {"durable": "flag", "lease_ttl_secs": "ttl"}),
    "progress": (("lease", "fraction", "text or none"), {"lease_ttl_secs": "ttl"}),
    "stats": (("lease", "text"), {}),
    "complete": (("lease",), {"result": "result", "late": "late"}),
    "complete_many": (("leases",), {"late": "late"}),
    "fail": (("lease", "text"), {"retryable": "flag"}),
    "release": (("lease",), {"delay_secs": "span"}),
    "retry": (("scope", "id"), {}),
    "get": (("scope", "id"), {}),
    "find": (("id",), {}),
    "find_leased_any": (("id",), {}),
    "wait": (("scope", "id"), {"timeout_secs": "wait"}),
    "list": (
        ("scope or none",),
        {"state": "state", "kinds": "kinds", "limit": "limit", "after": "after"},
    ),
    "counts": (("scope or none",), {}),
    "reap_expired": (("time",), {}),
}
BUILDERS: dict[str, Callable[..., object]] = {
    "Scope.named": Scope.named,
    "Scope.tenant": Scope.tenant,
    "Scope": Scope,
    **{
        f"QueueConfig {field}": lambda value, field=field: QueueConfig(**{field: value})
        for field in QueueConfig._fields
    },
}


def draw(chance: Random, known: Known, spoil: Callable[[], Any]) -> tuple[str, list[Any], dict[str, Any], bool]:
    """A verb with arguments, one or two of them spoilt, or none; and whether any is."""
    verb = chance.choice(tuple(VERBS))
    slots, named = VERBS[verb]
    words = [SLOTS[slot](chance, known) for slot in slots]
    more = {name: SLOTS[slot](chance, known) for name, slot in named.items()}
    spoilt = chance.choice((0, 1, 1, 1, 1, 1, 2))
    for _ in range(spoilt):
        at = chance.randrange(len(words) + len(more))
        if at < len(words):
            words[at] = spoil()
        else:
            more[tuple(more)[at - len(words)]] = spoil()
    for name in more.keys() & {"wait_secs", "timeout_secs"}:
        wait = more[name]
        if isinstance(wait, (int, float)) and not isinstance(wait, bool) and 0 < float_of(wait) < 1e10:
            more[name] = SHORTEST_SECS  # a valid wait, and nobody would end it
    return verb, words, more, spoilt > 0


def float_of(number: Any) -> float:
    """A number as a float, however large, or strange."""
    try:
        return float.__float__(number) if isinstance(number, float) else float(int.__int__(number))
    except OverflowError:
        return float("inf")


def touched(queue: Queue, outcome: Any) -> set[bytes]:
    """The jobs that a verb tells it has, or may have, changed."""
    items = outcome if isinstance(outcome, list) else [outcome]
    return {item.key[42:] for item in items if isinstance(item, JobRecord)}
