"""Stored bytes that must stay readable for as long as the version stands; those of today are written byte for byte.

Each file of golden/ was made once: record_v1.json by a writer that knew no headers, record_v1_headers.json by one that
knew no tail, record_v1_tail.json by the one of today. When one of these tests fails, the format has changed:
docs/format.md says what that takes. Never make a file anew to turn a test green.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from samples import NOW, fresh, leased

from telha_queue import record as twin
from telha_queue._codec import JobRecord, decode_key, decode_record, encode_key, encode_record
from telha_queue.job import JobEvent, JobState
from telha_queue.record import WiderEvent
from telha_queue.scope import Scope

FOLDER = Path(__file__).parent / "golden"
EARLIER = json.loads((FOLDER / "record_v1.json").read_text())
HEADERS = json.loads((FOLDER / "record_v1_headers.json").read_text())
TAIL = json.loads((FOLDER / "record_v1_tail.json").read_text())
del HEADERS["later fields"]  # made up for fields that no writer had, where the tail stands now
TODAY = HEADERS | TAIL

LINES = tuple(JobEvent(NOW + at, "stats", f"page {at}") for at in range(256))

JOBS = {
    "fresh": (Scope.SYSTEM, fresh()),
    "gated": (
        Scope.named("acme"),
        fresh(not_before=NOW + 60_000_000, idempotency_key="doc-7/é", max_attempts=3, priority=0),
    ),
    "leased": (
        Scope.named("acme"),
        leased(
            lease_generation=2**64 - 1,
            attempts=2,
            crashes=1,
            continuation=b"page 7",
            events=(*leased().events, JobEvent(NOW + 2, "extended", None, 3, NOW + 9)),
        ),
    ),
    "full trail": (
        Scope.named("acme"),
        leased(events=(JobEvent(NOW, "enqueued"), *LINES), events_dropped=2**32),
    ),
    "payload aside": (Scope.named("acme"), fresh(payload=None, payload_bytes=1_048_576, kind="k" * 128)),
    "dead": (
        Scope.named("acme"),
        fresh(
            state=JobState.DEAD,
            attempts=5,
            crashes=5,
            lease_generation=5,
            dead_reason="poison",
            reaped_worker_id="w1",
            priority=255,
            created_at=2**63 - 1,
        ),
    ),
    "headers": (
        Scope.named("acme"),
        leased(headers=("traceparent", "00-4bf92f3577b34da6-00f067aa0ba902b7-01", "empty", "", "tenänt", "Zoë" * 20)),
    ),
    "expiring": (Scope.named("acme"), leased(expires_at=2**63 - 1, priority=0)),
    "progress": (Scope.named("acme"), leased(progress=1_000_000, progress_text="Seite 7 of 9: é")),
    "resumable": (Scope.named("acme"), fresh(durable_continuation=b"page 7", attempts=2)),
    "result": (
        Scope.named("acme"),
        fresh(state=JobState.COMPLETED, lease_generation=1, progress=0, result=b"\0" * 300, result_bytes=300),
    ),
    "result aside": (
        Scope.named("acme"),
        fresh(state=JobState.COMPLETED, lease_generation=1, result_bytes=1_048_576),
    ),
    "later fields": (
        Scope.named("acme"),
        fresh(
            state=JobState.COMPLETED,
            events=(WiderEvent.of((NOW, "enqueued", None, 1, NOW, "host-7", (1, b"x"))),),
            extra=("tag", None, True, -(2**63), (2**64 - 1, (b"", "é"))),
        ),
    ),
}


def test_every_golden_job_is_tested():
    assert list(TODAY) == list(JOBS)
    assert set(EARLIER) == set(HEADERS) - {"headers"}


@pytest.mark.parametrize("name", JOBS)
def test_a_golden_job_is_written_byte_for_byte(name):
    scope, fields = JOBS[name]
    key = encode_key(scope.key, fields.state, fields.priority, fields.created_at, fields.job_id)
    for encode in (encode_record, twin.encode):
        assert {"key": key.hex(), "value": encode(fields).hex()} == TODAY[name]


@pytest.mark.parametrize(("name", "golden"), [*EARLIER.items(), *HEADERS.items(), *TAIL.items()])
def test_a_golden_job_is_read(name, golden):
    scope, fields = JOBS[name]
    key, value = bytes.fromhex(golden["key"]), bytes.fromhex(golden["value"])
    assert decode_record(value) == twin.decode(value) == fields
    assert decode_key(key) == (scope.key, fields.state, fields.priority, fields.created_at, fields.job_id)
    assert JobRecord(key, value).scope == scope
