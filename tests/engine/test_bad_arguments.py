"""Bad input: each gives its typed error and changes nothing (the table of reliability.md, section 3)."""

from __future__ import annotations

import math
from uuid import UUID

import pytest

from telha_queue.errors import InvalidArgument, InvalidScope, InvalidType, PayloadTooLarge
from telha_queue.job import JobSpec, JobState, Lease
from telha_queue.scope import NIL, Scope

ACME = Scope.named("acme")
NAN = math.nan
INF = math.inf


class Text(str):
    """A str that is not quite one."""


BAD_NAMES = {
    "empty": "",
    "NUL": "a\0b",
    "newline": "a\nb",
    "escape": "\x1b[31m",
    "DEL": "\x7f",
    "surrogate": "a\ud800",
    "right to left mark": "a\u202eb",
    "None": None,
    "bytes": b"embed",
    "int": 7,
}
BAD_SPANS = {"negative": -1, "tiny negative": -1e-9, "NaN": NAN, "inf": INF, "huge": 10**18, "bool": True, "str": "5"}
BAD_TTLS = BAD_SPANS | {"zero": 0, "less than a microsecond": 1e-9}
BAD_WHOLES = {"negative": -1, "bool": True, "float": 1.0, "str": "1", "NaN": NAN, "None": None}
BAD_BLOBS = {"str": "text", "list": [1, 2], "int": 5, "None": None}
BAD_SCOPES = {"None": None, "str": "acme", "bytes": bytes(32), "uuid": UUID(int=1)}
BAD_IDS = {"str": str(UUID(int=1)), "bytes": bytes(16), "int": 1, "None": None}

CALLS = {
    "kind": (BAD_NAMES | {"long": "k" * 129, "long in bytes": "ä" * 65}, lambda q, _, bad: q.enqueue(ACME, bad)),
    "payload": (BAD_BLOBS, lambda q, _, bad: q.enqueue(ACME, "embed", bad)),
    "priority": (BAD_WHOLES | {"256": 256}, lambda q, _, bad: q.enqueue(ACME, "embed", priority=bad)),
    "idempotency_key": (
        {name: bad for name, bad in BAD_NAMES.items() if bad is not None} | {"long": "k" * 256},
        lambda q, _, bad: q.enqueue(ACME, "embed", idempotency_key=bad),
    ),
    "max_attempts": (
        {"zero": 0, "negative": -1, "2^32": 2**32, "bool": True, "float": 1.0},
        lambda q, _, bad: q.enqueue(ACME, "embed", max_attempts=bad),
    ),
    "not_before": (
        {"negative": -1, "far": 2**63, "bool": True, "float": 1e15, "NaN": NAN},
        lambda q, _, bad: q.enqueue(ACME, "embed", not_before=bad),
    ),
    "durability": (
        {"weaker": "os", "group": "group", "empty": "", "bool": True, "bytes": b"sync"},
        lambda q, lease, bad: q.complete(lease, durability=bad),
    ),
    "durability of an enqueue": ({"weaker": "os", "int": 1}, lambda q, _, bad: q.enqueue(ACME, "x", durability=bad)),
    "durability of many": (
        {"weaker": "os", "int": 1},
        lambda q, lease, bad: q.complete_many([lease], durability=bad),
    ),
    "durability of many enqueued": (
        {"weaker": "os", "int": 1},
        lambda q, _, bad: q.enqueue_many(ACME, [JobSpec("x")], durability=bad),
    ),
    "delay_secs": (BAD_SPANS, lambda q, _, bad: q.enqueue(ACME, "embed", delay_secs=bad)),
    "specs": (
        {"None": None, "int": 5, "specs": [JobSpec("embed"), JobSpec("")], "tuples": [("embed", b"")], "text": "ab"},
        lambda q, _, bad: q.enqueue_many(ACME, bad, atomic=True),
    ),
    "worker_id": (BAD_NAMES | {"long": "w" * 129}, lambda q, _, bad: q.lease_next(ACME, worker_id=bad)),
    "lease_ttl_secs": (BAD_TTLS, lambda q, _, bad: q.lease_next(ACME, worker_id="w", lease_ttl_secs=bad)),
    "wait_secs": (BAD_SPANS, lambda q, _, bad: q.lease_next(ACME, worker_id="w", wait_secs=bad)),
    "kinds": (
        {"int": 5, "empty": "", "none": [], "many": ["k"] * 65, "one bad": ["a", None], "bytes": b"embed"},
        lambda q, _, bad: q.lease_next(ACME, bad, worker_id="w"),
    ),
    "n": (BAD_WHOLES | {"zero": 0, "1001": 1001}, lambda q, _, bad: q.lease_many(ACME, bad, worker_id="w")),
    "extension": (BAD_TTLS, lambda q, lease, bad: q.extend(lease, lease_ttl_secs=bad)),
    "continuation": (BAD_BLOBS, lambda q, lease, bad: q.checkpoint(lease, bad)),
    "durable": ({"int": 1, "None": None}, lambda q, lease, bad: q.checkpoint(lease, b"", durable=bad)),
    "fraction": (
        {"above": 1.5, "negative": -0.1, "NaN": NAN, "inf": INF, "bool": True, "str": "1", "None": None},
        lambda q, lease, bad: q.progress(lease, bad),
    ),
    "progress text": ({"long": "x" * 4097, "bytes": b"x"}, lambda q, lease, bad: q.progress(lease, 0.5, bad)),
    "progress ttl": (BAD_TTLS, lambda q, lease, bad: q.progress(lease, 0.5, lease_ttl_secs=bad)),
    "result": ({"str": "text", "list": [1], "int": 5}, lambda q, lease, bad: q.complete(lease, result=bad)),
    "timeout_secs": (BAD_SPANS | {"None": None}, lambda q, lease, bad: q.wait(ACME, lease.job_id, bad)),
    "job id to wait for": (BAD_IDS, lambda q, _, bad: q.wait(ACME, bad, 1)),
    "scope to wait in": (BAD_SCOPES, lambda q, lease, bad: q.wait(bad, lease.job_id, 1)),
    "detail": (
        {"None": None, "bytes": b"x", "NUL": "a\0b", "long": "x" * 4097},
        lambda q, lease, bad: q.stats(lease, bad),
    ),
    "error": ({"None": None, "bytes": b"x", "exception": ValueError("x")}, lambda q, lease, bad: q.fail(lease, bad)),
    "retryable": ({"int": 1, "None": None, "str": "no"}, lambda q, lease, bad: q.fail(lease, "x", retryable=bad)),
    "release delay": (BAD_SPANS, lambda q, lease, bad: q.release(lease, delay_secs=bad)),
    "lease": (
        {"None": None, "id": UUID(int=1), "tuple": (ACME, UUID(int=1), "w", 1), "dict": {}},
        lambda q, _, bad: q.complete(bad),
    ),
    "leases": ({"None": None, "int": 5, "one bad": [None]}, lambda q, _, bad: q.complete_many(bad)),
    "generation": (
        BAD_WHOLES | {"2^64": 2**64},
        lambda q, lease, bad: q.complete(Lease(ACME, lease.job_id, "w", bad)),
    ),
    "holder": (BAD_NAMES | {"long": "w" * 129}, lambda q, lease, bad: q.complete(Lease(ACME, lease.job_id, bad, 1))),
    "lease id": (BAD_IDS, lambda q, lease, bad: q.complete(Lease(ACME, bad, "w", 1))),
    "lease scope": (BAD_SCOPES, lambda q, lease, bad: q.complete(Lease(bad, lease.job_id, "w", 1))),
    "extend_any id": (BAD_IDS, lambda q, lease, bad: q.extend_any(bad, "w", 1)),
    "extend_any generation": (
        {"2^64": 2**64, "bool": True},
        lambda q, lease, bad: q.extend_any(lease.job_id, "w", bad),
    ),
    "job id to get": (BAD_IDS, lambda q, _, bad: q.get(ACME, bad)),
    "job id to find": (BAD_IDS, lambda q, _, bad: q.find(bad)),
    "job id to retry": (BAD_IDS, lambda q, _, bad: q.retry(ACME, bad)),
    "state": ({"int": 0, "str": "pending", "bool": False}, lambda q, _, bad: q.list(state=bad)),
    "limit": (BAD_WHOLES | {"zero": 0, "1001": 1001}, lambda q, _, bad: q.list(limit=bad)),
    "after": ({"key": bytes(58), "id": UUID(int=1)}, lambda q, _, bad: q.list(after=bad)),
    "now_us": ({"negative": -1, "2^63": 2**63, "float": 1.0, "bool": True}, lambda q, _, bad: q.reap_expired(bad)),
    "scope to enqueue": (BAD_SCOPES, lambda q, _, bad: q.enqueue(bad, "embed")),
    "scope to enqueue many": (BAD_SCOPES, lambda q, _, bad: q.enqueue_many(bad, [JobSpec("embed")])),
    "scope to lease": (BAD_SCOPES, lambda q, _, bad: q.lease_next(bad, worker_id="w")),
    "scope to lease many": (
        {name: bad for name, bad in BAD_SCOPES.items() if bad is not None},
        lambda q, _, bad: q.lease_many(bad, 2, worker_id="w"),
    ),
    "scope to get": (BAD_SCOPES, lambda q, _, bad: q.get(bad, UUID(int=1))),
    "scope to retry": (BAD_SCOPES, lambda q, _, bad: q.retry(bad, UUID(int=1))),
    "scope to count": ({"str": "acme"}, lambda q, _, bad: q.counts(bad)),
    "scope to list": ({"str": "acme"}, lambda q, _, bad: q.list(bad)),
}


@pytest.fixture
def lease(queue):
    """The first of two jobs, leased by w; the other one is pending."""
    queue.enqueue_many(ACME, [JobSpec("embed", b"x")] * 2)
    return queue.lease_next(ACME, worker_id="w")


@pytest.mark.parametrize("what", CALLS)
def test_it_is_refused_and_changes_nothing(queue, lease, refused, what):
    bads, call = CALLS[what]
    for how, bad in bads.items():
        with refused(queue, InvalidArgument, case=how) as caught:
            call(queue, lease, bad)
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize("size_bytes", [1024 * 1024 + 1, 64 * 1024 * 1024])
def test_too_large_a_payload_is_refused_with_its_size(queue, lease, refused, size_bytes):
    blob = bytes(size_bytes)
    for call in (lambda: queue.enqueue(ACME, "embed", blob), lambda: queue.checkpoint(lease, blob)):
        with refused(queue, PayloadTooLarge) as caught:
            call()
        assert (caught.value.size_bytes, caught.value.limit_bytes) == (size_bytes, 1024 * 1024)


def test_the_limit_of_the_settings_counts(make_queue, refused):
    queue = make_queue(max_payload_bytes=10)
    assert queue.enqueue(ACME, "embed", b"x" * 10).payload_bytes == 10
    with refused(queue, PayloadTooLarge):
        queue.enqueue(ACME, "embed", b"x" * 11)


def test_a_gate_and_a_delay_together_are_refused(queue, clock, lease, refused):
    with refused(queue, InvalidArgument):
        queue.enqueue(ACME, "embed", not_before=clock(), delay_secs=1)


def test_a_gate_lies_at_most_ten_years_ahead(queue, clock, lease, refused):
    ten_years_us = 10 * 365 * 24 * 3600 * 10**6
    assert queue.enqueue(ACME, "embed", not_before=clock() + ten_years_us).state == JobState.PENDING
    with refused(queue, InvalidArgument):
        queue.enqueue(ACME, "embed", not_before=clock() + ten_years_us + 1)


def test_a_record_that_holds_no_lease_is_no_token(queue, lease, refused):
    pending = queue.list(ACME, state=JobState.PENDING)[0]
    done = queue.complete(lease)
    for record in (pending, done):
        for verb in (queue.extend, queue.complete, queue.release, lambda job: queue.complete_many([job])):
            with refused(queue, InvalidArgument):
                verb(record)


@pytest.mark.parametrize("job", [JobState.PENDING, object(), Ellipsis])
def test_wrong_types_are_type_errors_and_wrong_values_are_value_errors(queue, lease, refused, job):
    with refused(queue, TypeError):
        queue.complete(job)
    with refused(queue, TypeError):
        queue.enqueue(ACME, "embed", job)
    with refused(queue, ValueError):
        queue.enqueue(ACME, "")


@pytest.mark.parametrize(
    "build",
    [
        lambda: Scope.tenant(NIL),
        lambda: Scope.tenant(NIL, UUID(int=1)),
        lambda: Scope.tenant("acme"),
        lambda: Scope.tenant(UUID(int=1).bytes),
        lambda: Scope.tenant(UUID(int=1), None),
        lambda: Scope(bytes(31)),
        lambda: Scope(bytes(33)),
        lambda: Scope(bytearray(32)),
        lambda: Scope(bytes(31) + b"\x01"),
        lambda: Scope.named(""),
        lambda: Scope.named("a\0b"),
        lambda: Scope.named("a\ud800"),
        lambda: Scope.named("x" * 256),
        lambda: Scope.named(b"acme"),
    ],
)
def test_a_malformed_scope_cannot_be_built(build):
    with pytest.raises(InvalidScope):
        build()


def test_a_subclass_of_str_is_text(queue):
    job = queue.enqueue(ACME, Text("embed"), idempotency_key=Text("one"))
    lease = queue.lease_next(ACME, Text("embed"), worker_id=Text("w"))
    assert (lease.job_id, lease.worker_id, lease.kind) == (job.job_id, "w", "embed")
    assert queue.enqueue(ACME, "embed", idempotency_key="one").job_id == job.job_id
    assert queue.stats(lease, Text("line")).events[-1].detail == "line"


def test_scopes_are_told_apart_by_type(queue, lease, refused):
    with refused(queue, InvalidScope):
        queue.enqueue(ACME.key, "embed")
    with refused(queue, InvalidType):
        queue.find("not an id")
