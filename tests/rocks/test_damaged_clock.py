"""A store whose witnesses of time are damaged: it opens, and goes on behind what the others know."""

from __future__ import annotations

import pytest

from telha_queue.config import QueueConfig
from telha_queue.queue import Queue
from telha_queue.scope import Scope
from telha_queue.testing import START_US, ManualClock

ACME = Scope.named("acme")
QUICK = QueueConfig(durability="os")
HOUR_US = 3_600_000_000
IDS = {"greatest": b"\xff" * 16, "no version": b"\xff" * 6 + bytes(10), "short": b"\xff" * 3, "long": b"\xff" * 99}


def filled(path, clock):
    with Queue.open(path, QUICK, clock) as queue:
        return [queue.enqueue(ACME, "x") for _ in range(3)]


@pytest.mark.parametrize("row", [b"", b"short", bytes(41), b"\xff" * 41, bytes(42)], ids=len)
def test_a_damaged_last_id_row_stops_nobody_and_its_id_says_when_the_job_was_made(path, clock, ldb, row):
    jobs = filled(path, clock)
    ldb.put("ids", jobs[-1].job_id.bytes, row)
    ldb.put("default", b"clock", bytes(8))
    with Queue.open(path, QUICK, ManualClock(START_US - HOUR_US)) as queue:
        new = queue.enqueue(ACME, "x")
        assert new.created_at == jobs[-1].created_at + 1
        assert [queue.lease_next(ACME, worker_id="w").job_id for _ in range(4)] == [
            job.job_id for job in [*jobs, new]
        ]  # fmt: skip
    assert ldb.rows("ids")[jobs[-1].job_id.bytes] == row


@pytest.mark.parametrize("key", IDS.values(), ids=IDS)
def test_a_row_that_is_no_job_does_not_move_the_clock(path, clock, ldb, key):
    jobs = filled(path, clock)
    ldb.put("ids", key, b"\xff" * 41)
    with Queue.open(path, QUICK, clock) as queue:
        assert queue.enqueue(ACME, "x").created_at == jobs[-1].created_at + 1
        assert [job.job_id for job in queue.lease_many(ACME, 3, worker_id="w")] == [job.job_id for job in jobs]
    assert key in ldb.rows("ids")


def test_an_id_from_the_future_is_believed_only_if_its_row_agrees(path, clock, ldb):
    jobs = filled(path, clock)
    later_us = 4_000_000_000_000_000
    key = (later_us // 1000).to_bytes(6, "big") + b"\x70\x00" + b"\x80" + bytes(7)
    ldb.put("ids", key, b"damaged")
    with Queue.open(path, QUICK, clock) as queue:
        assert queue.enqueue(ACME, "x").created_at == jobs[-1].created_at + 1
    ldb.put("ids", key, ACME.key + b"\x80" + later_us.to_bytes(8, "big"))
    with Queue.open(path, QUICK, clock) as queue:
        assert queue.enqueue(ACME, "x").created_at == later_us + 1


@pytest.mark.parametrize("row", [b"", b"short", b"\xff" * 8, b"\x80" + bytes(7), bytes(9)])
def test_a_damaged_clock_row_bears_no_witness_and_is_written_anew(path, clock, ldb, row):
    jobs = filled(path, clock)
    ldb.put("default", b"clock", row)
    with Queue.open(path, QUICK, ManualClock(START_US - HOUR_US)) as queue:
        assert queue.enqueue(ACME, "x").created_at == jobs[-1].created_at + 1
    assert int.from_bytes(ldb.rows("default")[b"clock"], "big") == jobs[-1].created_at + 1


def test_a_store_whose_ids_are_all_damaged_is_not_taken_for_a_new_one(path, clock, ldb):
    jobs = filled(path, clock)
    for job in jobs:
        ldb.put("ids", job.job_id.bytes, b"")
    with Queue.open(path, QUICK, clock) as queue:
        assert queue.enqueue(ACME, "x").created_at == jobs[-1].created_at + 1
        assert len(queue.list()) == 4
