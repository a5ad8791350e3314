from __future__ import annotations

from collections.abc import Iterator

import pytest

from telha_queue.cli import describe
from telha_queue.job import JobRecord
from telha_queue.queue import Queue
from telha_queue.scope import Scope
from telha_queue.testing import ManualClock, memory_queue

SECOND = 1_000_000


@pytest.fixture
def queue(clock: ManualClock) -> Iterator[Queue]:
    with memory_queue(clock=clock) as queue:
        yield queue


def leased(queue: Queue, **spec: object) -> JobRecord:
    queue.enqueue(Scope.SYSTEM, "system:gc", **spec)  # type: ignore[arg-type]
    lease = queue.lease_next(Scope.SYSTEM, worker_id="w1")
    assert lease is not None
    return lease


def test_a_gated_job_says_when_it_is_due(queue: Queue, clock: ManualClock) -> None:
    job = queue.enqueue(Scope.SYSTEM, "system:gc", delay_secs=12)
    assert describe.outlook(job, clock()) == "due in 12 s"
    assert describe.outlook(job, clock() + 12 * SECOND) == ""


def test_a_leased_job_says_who_has_it_and_for_how_long(queue: Queue, clock: ManualClock) -> None:
    job = leased(queue)
    assert describe.outlook(job, clock() + 260 * SECOND) == "worker w1, lease ends in 40 s"
    assert describe.outlook(job, clock() + 303 * SECOND) == "worker w1, lease ended 3 s ago"


def test_the_last_error_is_that_of_the_latest_attempt(queue: Queue) -> None:
    queue.fail(leased(queue), "first")
    job = queue.fail(leased(queue), "second\nmore", retryable=False)
    assert describe.last_error(job) == "second\nmore"
    assert describe.error_line(job) == "second"


def test_of_a_traceback_the_line_that_names_the_error_is_shown(queue: Queue) -> None:
    job = queue.fail(leased(queue), "Traceback (most recent call last):\n  File x\nValueError: boom\n")
    assert describe.error_line(job) == "ValueError: boom"


def test_an_operators_retry_clears_the_error(queue: Queue) -> None:
    job = queue.fail(leased(queue), "boom", retryable=False)
    assert describe.last_error(queue.retry(job.scope, job.job_id)) is None


def test_a_finished_job_has_no_error(queue: Queue, clock: ManualClock) -> None:
    queue.fail(leased(queue), "boom")
    clock.advance(60)
    lease = queue.lease_next(Scope.SYSTEM, worker_id="w2")
    assert lease is not None
    assert describe.last_error(queue.complete(lease)) is None


def test_a_reaped_job_names_the_worker_that_was_lost(queue: Queue, clock: ManualClock) -> None:
    job = leased(queue)
    clock.advance(301)
    queue.reap_expired()
    assert describe.last_error(queue.find(job.job_id)) == "lease of w1 expired"


def test_the_trail_gives_the_time_between_steps_and_merges_heartbeats(queue: Queue, clock: ManualClock) -> None:
    lease = leased(queue)
    for _ in range(3):
        clock.advance(60)
        queue.extend(lease)
    clock.advance(1.2)
    steps = describe.steps(queue.complete(lease))
    assert [(gap, step, detail) for _, gap, step, detail in steps] == [
        ("", "enqueued", ""),
        ("+0.0 ms", "leased", "w1"),
        ("+1 min", "extended", "3 times in 2 min"),
        ("+1.2 s", "completed", ""),
    ]
    assert steps[0][0] == "2025-06-15T15:06:40.000Z"


def test_dropped_steps_are_counted_where_they_are_missing(queue: Queue) -> None:
    lease = leased(queue)
    for number in range(300):
        lease = queue.stats(lease, f"page {number}")
    job = queue.find(lease.job_id)
    assert job.events_dropped > 0
    assert describe.steps(job)[1] == ("", "", "…", f"{job.events_dropped} steps dropped here")


def test_every_line_of_a_detail_has_a_row_of_its_own(queue: Queue) -> None:
    job = queue.fail(leased(queue), "one\ntwo")
    assert [row[3] for row in describe.steps(job)][-2:] == ["one", "two"]


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (b"", "0 bytes"),
        (b"hello", "5 bytes: hello"),
        ("größe".encode(), "7 bytes: größe"),
        (b"\xff\x00", "2 bytes, not text"),
        (b"\x1b[31m", "5 bytes, not text"),
        (b"\xe2\x82", "2 bytes, not text"),
    ],
)
def test_a_payload_is_shown_as_text_only_if_it_is(payload: bytes, said: str) -> None:
    assert describe.payload_summary(payload) == said


def test_a_long_payload_is_clipped_between_characters() -> None:
    summary = describe.payload_summary("€".encode() * 100_000)
    assert summary == f"300.0 kB: {'€' * 199}…"


def test_headers_are_shown_one_by_one(queue: Queue) -> None:
    job = queue.enqueue(Scope.SYSTEM, "embed", headers={"traceparent": "00-1", "b": "2"})
    shown = describe.facts(job, job.scope, job.payload, job.created_at)
    assert [fact for fact in shown if fact[0] == "header"] == [("header", "traceparent: 00-1"), ("header", "b: 2")]
    assert describe.as_json(job, job.scope, job.payload)["headers"] == {"traceparent": "00-1", "b": "2"}
    assert "headers" not in describe.as_json(job, job.scope)


def test_json_names_the_fields_of_a_record(queue: Queue) -> None:
    job = leased(queue, payload=b"\x00\x01")
    short, whole = describe.as_json(job, job.scope), describe.as_json(job, job.scope, job.payload)
    assert short["state"] == "leased"
    assert short["payload_bytes"] == 2
    assert "events" not in short
    assert whole["payload_base64"] == "AAE="
    assert [event["transition"] for event in whole["events"]] == ["enqueued", "leased"]
