"""Records for the tests of the codec: a few by hand, and a strategy for all the others."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from telha_queue.job import JobEvent, JobState
from telha_queue.record import WHOLE_PROGRESS, RecordFields, WiderEvent

NOW = 1_760_000_000_123_456
JOB_ID = bytes.fromhex("0199c82cc07b71c88000000000003039")


def fresh(**changes: Any) -> RecordFields:
    """A job as enqueue stores it."""
    record = RecordFields(
        job_id=JOB_ID,
        kind="embed",
        payload=b"payload",
        priority=128,
        created_at=NOW,
        state=JobState.PENDING,
        events=(JobEvent(NOW, "enqueued"),),
        payload_bytes=7,
    )
    return record._replace(**changes)


def leased(**changes: Any) -> RecordFields:
    """A job that worker w1 holds under generation 1."""
    held = fresh(
        state=JobState.LEASED,
        lease_generation=1,
        worker_id="w1",
        lease_deadline=NOW + 300_000_000,
        lease_ttl_us=300_000_000,
        events=(JobEvent(NOW, "enqueued"), JobEvent(NOW + 1, "leased", "w1")),
    )
    return held._replace(**changes)


def plain_values(depth: int = 3) -> st.SearchStrategy[Any]:
    """Whatever a newer writer's field may be."""
    numbers = st.integers(-(2**63), 2**64 - 1)
    leaves = st.none() | st.booleans() | numbers | st.text(max_size=40) | st.binary(max_size=40)
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=4).map(tuple), max_leaves=depth)


def rarely(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly None, as the last fields of a record are."""
    return st.none() | st.none() | values


def flat(pairs: list[tuple[str, str]]) -> tuple[str, ...]:
    """Names and values in turn, as headers are stored."""
    return tuple(text for pair in pairs for text in pair)


times = st.integers(0, 2**63 - 1)
uint32 = st.integers(0, 2**32 - 1)
uint64 = st.integers(0, 2**64 - 1)
words = st.text(max_size=40)
extras = st.lists(plain_values(), max_size=3).map(tuple)
plain_events = st.tuples(times, words, st.none() | words).map(lambda values: JobEvent(*values))
merged_events = st.tuples(times, words, st.none() | words, uint64, times).map(lambda values: JobEvent(*values))
wider_events = st.tuples(merged_events, extras.filter(bool)).map(lambda pair: WiderEvent.of((*pair[0], *pair[1])))


@st.composite
def records(draw: st.DrawFn) -> RecordFields:
    """Any record that may be stored."""
    state = draw(st.sampled_from(JobState))
    is_leased = state == JobState.LEASED
    return RecordFields(
        job_id=draw(st.binary(min_size=16, max_size=16)),
        kind=draw(st.text(min_size=1, max_size=32)),
        payload=draw(st.none() | st.binary(max_size=300)),
        priority=draw(st.integers(0, 255)),
        created_at=draw(times),
        state=state,
        attempts=draw(uint32),
        lease_generation=draw(uint64),
        worker_id=draw(words) if is_leased else None,
        lease_deadline=draw(times) if is_leased else None,
        not_before=draw(st.none() | times),
        idempotency_key=draw(st.none() | words),
        max_attempts=draw(st.none() | uint32),
        continuation=draw(st.none() | st.binary(max_size=300)),
        events=tuple(draw(st.lists(plain_events | merged_events | wider_events, max_size=5))),
        payload_bytes=draw(uint64),
        dead_reason=draw(st.none() | words) if state == JobState.DEAD else None,
        reaped_worker_id=draw(st.none() | words),
        events_dropped=draw(uint64),
        crashes=draw(uint32),
        lease_ttl_us=draw(st.none() | times),
        headers=draw(st.none() | st.lists(st.tuples(words, words), max_size=3).map(flat)),
        expires_at=draw(rarely(times)),
        progress=draw(rarely(st.integers(0, WHOLE_PROGRESS))),
        progress_text=draw(rarely(words)),
        durable_continuation=draw(rarely(st.binary(max_size=300))),
        result=draw(rarely(st.binary(max_size=300))),
        result_bytes=draw(rarely(times)),
        extra=draw(extras),
    )
