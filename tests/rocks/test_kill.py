"""kill -9 at any moment: every acknowledged call is there after reopen, and nothing that nobody asked for.

TELHA_KILL_CYCLES sets the number of kills per durability mode, TELHA_KILL_SEED the randomness; a failure prints it.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from uuid import UUID

import msgpack
import pytest
from kill_ledger import Ledger

from telha_queue.config import QueueConfig
from telha_queue.errors import StorageError
from telha_queue.queue import Queue

CYCLES = int(os.environ.get("TELHA_KILL_CYCLES", "5"))
SEED = os.environ.get("TELHA_KILL_SEED") or str(random.SystemRandom().randrange(2**32))
MAX_LINES = 2500


WORKER = Path(__file__).with_name("kill_worker.py")


@pytest.fixture
def kill(path, run_and_kill):
    """kill(durability, seed, lines): a worker on the queue that is killed; what it told since it was open.

    With one line it is killed while it opens the queue.
    """

    def run(durability, seed, lines, where=path):
        told = run_and_kill([WORKER, where, durability, seed], lines)
        assert told[0] == "opening\n"
        return told[2:]

    return run


@pytest.mark.parametrize("durability", ["sync", "group", "os"])
@pytest.mark.timeout(60 + 10 * CYCLES)
def test_every_acknowledged_call_is_there_after_kill_9(path, kill, ldb, durability):
    print(f"TELHA_KILL_SEED={SEED}")  # noqa: T201  # shown when the test fails
    chance = random.Random(f"{SEED} {durability}")
    ledger = Ledger()
    for cycle in range(CYCLES):
        lines = chance.randrange(2, MAX_LINES)
        for line in kill(durability, cycle, lines):
            ledger.read(line)
        for _ in range(chance.randrange(3)):  # a second kill, and a third, while it recovers from the first
            kill(durability, "unused", 1)
        if chance.random() < 0.3:
            check_invariants(ldb)
        with Queue.open(path, QueueConfig(durability="os")) as queue:
            ledger.check(queue)
            report = queue.fsck()
            assert report.is_clean, report
    check_invariants(ldb)
    assert ledger.acknowledged["enqueue"] > 0


def test_the_kills_reach_every_verb(path, kill):
    verbs = {"enqueue", "enqueue_many", "lease_next", "lease_many", "extend", "checkpoint", "stats", "complete"}
    verbs |= {"complete_many", "fail", "release", "retry", "reap_expired", "transaction", "cancel"}
    verbs |= {"reschedule"}
    ledger = Ledger()
    for seed in range(10):  # on a busy machine some threads have hardly begun when the process is killed
        for line in kill("os", f"all {seed}", 4000):
            ledger.read(line)
        with Queue.open(path, QueueConfig(durability="os")) as queue:
            ledger.check(queue)
        if verbs <= ledger.acknowledged.keys():
            return
    raise AssertionError(f"never acknowledged: {verbs - ledger.acknowledged.keys()}")


def test_a_kill_while_the_queue_is_made_leaves_one_that_can_be_made(path, kill):
    for cycle in range(CYCLES):
        where = path.with_name(f"queue{cycle}")
        for _ in range(3):
            kill("sync", "unused", 1, where)
        with Queue.open(where, QueueConfig(durability="os")) as queue:
            assert sum(queue.counts().values()) == 0


def test_what_was_leased_at_the_kill_is_held_until_its_deadline_and_then_given_back(start, path, clock):
    child = start("""
queue = Queue.open(PATH, QUICK)
for _ in range(20):
    queue.enqueue(ACME, "x")
leases = queue.lease_many(ACME, 10, worker_id="lost", lease_ttl_secs=60)
say(max(lease.lease_deadline for lease in leases))
signal.pause()
""")
    deadline = int(child.stdout.readline())
    with pytest.raises(StorageError):
        Queue.open(path, QueueConfig(durability="os"))
    child.kill()
    child.wait()
    clock.set_us(deadline - 1_000_000)
    with Queue.open(path, QueueConfig(durability="os", backoff_base_secs=0), clock) as queue:
        assert queue.reap_expired().reclaimed == 0
        assert len(queue.lease_many(queue.scopes()[0], 20, worker_id="next")) == 10
        clock.set_us(deadline)
        assert queue.reap_expired().reclaimed == 10
        again = queue.lease_many(queue.scopes()[0], 20, worker_id="next")
        assert [lease.lease_generation for lease in again] == [2] * 10


def check_invariants(ldb) -> None:
    """Those of docs/format.md, on the bytes, by no code of ours."""
    rows = ldb.all_rows()
    jobs = {key[42:]: (key, msgpack.unpackb(value[1:])) for key, value in rows["jobs"].items()}
    assert len(jobs) == len(rows["jobs"])
    assert {job_id: key[:32] + key[33:42] for job_id, (key, _) in jobs.items()} == rows["ids"]
    keyed = {key[:32] + record[11].encode(): job_id for job_id, (key, record) in jobs.items() if record[11] is not None}
    assert rows["idempotency"] == keyed
    assert {job_id for job_id, (_, record) in jobs.items() if record[2] is None} == rows["payloads"].keys()
    expiring = {at_and_id(record, job_id): record[5] for job_id, (_, record) in jobs.items() if len(record) > 22}
    assert {row for row, state in expiring.items() if state < 2 and row} <= rows["expiries"].keys() <= expiring.keys()
    for job_id, (key, record) in jobs.items():
        assert (record[5], record[3], record[4], record[0]) == (
            key[32],
            key[33],
            int.from_bytes(key[34:42], "big"),
            job_id,
        )
        assert UUID(bytes=job_id).version == 7
        assert record[15] == len(record[2] if record[2] is not None else rows["payloads"][job_id])


def at_and_id(record, job_id):
    """The key of a job's row in the expiries family; None for one that does not expire."""
    return None if record[22] is None else record[22].to_bytes(8, "big") + job_id
