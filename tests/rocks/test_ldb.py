"""The bytes on disk, read by RocksDB's own tool and cut up by hand as docs/format.md says."""

from __future__ import annotations

from uuid import UUID

import msgpack
import pytest

from telha_queue.config import QueueConfig
from telha_queue.job import JobState
from telha_queue.queue import Queue
from telha_queue.scope import Scope

TENANT, SPACE = UUID(int=0x11111111222233334444555555555555), UUID(int=0x66666666777788889999AAAAAAAAAAAA)
SCOPES = {"system": (Scope.SYSTEM, bytes(32)), "space": (Scope.tenant(TENANT, SPACE), TENANT.bytes + SPACE.bytes)}
STATE_BYTES = {"pending": 0, "leased": 1, "completed": 2, "dead": 4}
LARGE = b"x" * 4097


def bring_to(queue, scope, state):
    """One job of that name in that state."""
    queue.enqueue(scope, state, state.encode(), priority=200, idempotency_key=f"key of {state} é")
    if state != "pending":
        lease = queue.lease_next(scope, worker_id="w")
        if state == "completed":
            queue.complete(lease)
        if state == "dead":
            queue.fail(lease, "e", retryable=False)
    return queue.list(scope, kinds=state)[0]


@pytest.fixture
def jobs(path, clock):
    """A job in each state in each scope, by scope and state; the queue is closed."""
    with Queue.open(path, QueueConfig(durability="os"), clock) as queue:
        found = {}
        for name, (scope, _) in SCOPES.items():
            for state in ("completed", "dead", "leased", "pending"):
                clock.advance_us(1_234_567)
                found[name, state] = bring_to(queue, scope, state)
    return found


@pytest.mark.parametrize("state", STATE_BYTES)
@pytest.mark.parametrize("scope", SCOPES)
def test_a_job_key_is_scope_state_priority_created_at_and_id(jobs, ldb, clock, scope, state):
    job = jobs[scope, state]
    [key] = [key for key in ldb.rows("jobs") if key.endswith(job.job_id.bytes)]
    assert len(key) == 58
    assert key[0:32] == SCOPES[scope][1]
    assert key[32] == STATE_BYTES[state]
    assert key[33] == 200
    assert int.from_bytes(key[34:42], "big") == job.created_at
    assert key[42:58] == job.job_id.bytes
    assert key == job.key


def test_a_job_id_is_a_uuid7_made_of_created_at(jobs):
    for job in jobs.values():
        number = job.job_id.int
        assert number >> 80 == job.created_at // 1000
        assert number >> 76 & 0xF == 7
        assert number >> 64 & 0xFFF == job.created_at % 1000
        assert number >> 62 & 0b11 == 0b10


def test_a_value_is_a_version_byte_and_a_canonical_msgpack_array(jobs, ldb):
    rows = ldb.rows("jobs")
    assert len(rows) == len(jobs) == 8
    for key, value in rows.items():
        assert value[0] == 1
        record = msgpack.unpackb(value[1:])
        assert msgpack.packb(record) == value[1:]
        assert len(record) >= 20
        assert (record[0], record[3], record[4], record[5]) == (
            key[42:],
            key[33],
            int.from_bytes(key[34:42], "big"),
            key[32],
        )
        assert record[1].encode() == record[2]
        assert record[15] == len(record[2])
        assert (record[8], record[9] is not None) == (("w", True) if key[32] == 1 else (None, False))
        assert record[16] == ("not_retryable" if key[32] == 4 else None)


def test_an_id_row_holds_scope_priority_and_created_at(jobs, ldb):
    rows = ldb.rows("ids")
    assert len(rows) == 8
    for (scope, _), job in jobs.items():
        row = rows[job.job_id.bytes]
        assert len(row) == 41
        assert row[0:32] == SCOPES[scope][1]
        assert row[32] == 200
        assert int.from_bytes(row[33:41], "big") == job.created_at


def test_an_idempotency_row_leads_from_scope_and_key_to_the_id(jobs, ldb):
    expected = {
        SCOPES[scope][1] + f"key of {state} é".encode(): job.job_id.bytes for (scope, state), job in jobs.items()
    }
    assert ldb.rows("idempotency") == expected


def test_a_payload_of_more_than_4096_bytes_stands_in_a_row_of_its_own(path, ldb):
    with Queue.open(path, QueueConfig(durability="os")) as queue:
        aside = queue.enqueue(Scope.SYSTEM, "x", LARGE)
        inside = queue.enqueue(Scope.SYSTEM, "x", LARGE[1:])
    assert ldb.rows("payloads") == {aside.job_id.bytes: LARGE}
    records = {key[42:]: msgpack.unpackb(value[1:]) for key, value in ldb.rows("jobs").items()}
    assert (records[aside.job_id.bytes][2], records[aside.job_id.bytes][15]) == (None, 4097)
    assert (records[inside.job_id.bytes][2], records[inside.job_id.bytes][15]) == (LARGE[1:], 4096)


def test_the_default_family_holds_the_format_and_the_clock(jobs, ldb, clock):
    assert ldb.rows("default") == {b"format": b"1", b"clock": clock().to_bytes(8, "big")}


def test_a_named_scope_has_one_row_with_its_name_and_no_other_has(path, ldb, clock):
    acme, world = Scope.named("acme"), Scope.named("größe-🔑")
    for _ in range(2):
        with Queue.open(path, QueueConfig(durability="os"), clock) as queue:
            for scope in (acme, world, Scope.SYSTEM, Scope.tenant(TENANT, SPACE)):
                queue.enqueue(scope, "x")
        rows = ldb.rows("default")
        assert {key: value for key, value in rows.items() if key not in (b"format", b"clock")} == {
            b"scope:" + acme.key: b"acme",
            b"scope:" + world.key: "größe-🔑".encode(),
        }


def test_an_empty_queue_holds_only_its_format_and_a_clock_of_zero(path, ldb):
    Queue.open(path, QueueConfig(durability="os")).close()
    assert ldb.all_rows() == {
        "default": {b"format": b"1", b"clock": bytes(8)}, "jobs": {}, "ids": {}, "idempotency": {}, "payloads": {},
        "results": {}, "expiries": {}, "data": {},
    }  # fmt: skip


def test_a_transition_rewrites_the_state_byte_and_only_reschedule_the_priority(path, ldb, clock):
    keys = []
    for step in ("enqueue", "lease", "fail", "lease", "reap", "reschedule", "lease", "complete"):
        with Queue.open(path, QueueConfig(durability="os"), clock) as queue:
            if step == "enqueue":
                queue.enqueue(Scope.SYSTEM, "x")
            if step == "lease":
                assert queue.lease_next(Scope.SYSTEM, worker_id="w")
            if step in ("fail", "complete"):
                lease = queue.list(state=JobState.LEASED)[0]
                queue.fail(lease, "e") if step == "fail" else queue.complete(lease)
            if step == "reschedule":
                queue.reschedule(Scope.SYSTEM, queue.list()[0].job_id, priority=7)
            clock.advance(secs=3600)
            if step == "reap":
                assert queue.reap_expired().reclaimed == 1
                clock.advance(secs=3600)
        [key] = ldb.rows("jobs")
        keys.append(key)
        assert ldb.rows("ids") == {key[42:]: key[:32] + key[33:42]}
    assert [key[32] for key in keys] == [0, 1, 0, 1, 0, 0, 1, 2]
    assert [key[33] for key in keys] == [128] * 5 + [7] * 3
    assert len({key[:32] + key[34:] for key in keys}) == 1
