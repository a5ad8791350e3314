"""Damaged rows: left as they are, never leased, and no obstacle to any other."""

from __future__ import annotations

import pytest

from telha_queue.config import QueueConfig
from telha_queue.errors import CorruptionError, CorruptRecord, UnsupportedVersion
from telha_queue.job import JobState, Lease
from telha_queue.queue import Queue
from telha_queue.record import decode, encode
from telha_queue.scope import Scope

ACME = Scope.named("acme")
QUICK = QueueConfig(durability="os")


def other_state(value: bytes) -> bytes:
    return encode(decode(value)._replace(state=JobState.COMPLETED, worker_id=None, lease_deadline=None))


DAMAGES = {
    "unknown version": lambda value: b"\x02" + value[1:],
    "version 0": lambda value: b"\x00" + value[1:],
    "empty": lambda value: b"",
    "version alone": lambda value: value[:1],
    "truncated": lambda value: value[: len(value) // 2],
    "one byte short": lambda value: value[:-1],
    "one byte more": lambda value: value + b"\xc0",
    "twice": lambda value: value * 2,
    "other state": other_state,
    "other id": lambda value: encode(decode(value)._replace(job_id=bytes(16))),
    "other priority": lambda value: encode(decode(value)._replace(priority=7)),
    "other created_at": lambda value: encode(decode(value)._replace(created_at=7)),
    "not msgpack": lambda value: value[:1] + b"\xc1" * 40,
    "a map": lambda value: value[:1] + b"\x81\x01\x02",
    "deep": lambda value: value[:1] + b"\x91" * 100_00 + b"\xc0",
    "huge count": lambda value: value[:1] + b"\xdd\xff\xff\xff\xff",
}


@pytest.fixture
def damaged(path, clock, ldb):
    """damaged(damage, state): the first of three jobs in that state is damaged; its id, its row, and the open queue."""
    opened = []

    def build(damage, state=JobState.PENDING):
        with Queue.open(path, QUICK, clock) as queue:
            jobs = [queue.enqueue(ACME, "x", b"p") for _ in range(3)]
            if state == JobState.LEASED:
                jobs = queue.lease_many(ACME, 3, worker_id="w", lease_ttl_secs=10)
        value = damage(jobs[0].value)
        ldb.put("jobs", jobs[0].key, value)
        opened.append(Queue.open(path, QUICK, clock))
        return jobs, opened[0]

    yield build
    if opened:
        opened[0].close()


def unharmed(ldb, jobs, damage):
    assert ldb.rows("jobs")[jobs[0].key] == damage(jobs[0].value)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_lease_passes_a_damaged_row_by(damaged, ldb, damage):
    jobs, queue = damaged(damage)
    assert queue.lease_next(ACME, worker_id="w").job_id == jobs[1].job_id
    assert queue.lease_next_any(worker_id="w").job_id == jobs[2].job_id
    assert queue.lease_many(ACME, 10, worker_id="w") == []
    assert queue.lease_next(ACME, worker_id="w", wait_secs=0.001) is None
    assert queue._engine.corrupt_rows > 0
    queue.close()
    unharmed(ldb, jobs, damage)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_direct_read_says_what_is_wrong_and_a_list_leaves_the_row_out(damaged, ldb, damage):
    jobs, queue = damaged(damage)
    job_id = jobs[0].job_id
    newer = damage(jobs[0].value)[:1] not in (b"\x01", b"")
    for read in (lambda: queue.get(ACME, job_id), lambda: queue.find(job_id), lambda: queue.find_leased_any(job_id)):
        with pytest.raises(CorruptRecord) as caught:
            read()
        assert isinstance(caught.value, UnsupportedVersion) == newer
    with pytest.raises(CorruptRecord):
        queue.retry(ACME, job_id)
    assert [job.job_id for job in queue.list(ACME)] == [job.job_id for job in jobs[1:]]
    assert [job.job_id for job in queue.list(limit=1)] == [jobs[1].job_id]
    queue.close()
    unharmed(ldb, jobs, damage)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_the_reaper_counts_a_damaged_lease_and_reaps_the_others(damaged, ldb, clock, damage):
    jobs, queue = damaged(damage, JobState.LEASED)
    clock.advance(secs=3600)
    for refused in (
        lambda: queue.complete(jobs[0]),
        lambda: queue.extend(jobs[0]),
        lambda: queue.extend_any(jobs[0].job_id, "w", 1),
        lambda: queue.checkpoint(jobs[0], b"c"),
        lambda: queue.stats(jobs[0], "d"),
        lambda: queue.fail(jobs[0], "e"),
        lambda: queue.release(jobs[0]),
    ):
        with pytest.raises(CorruptRecord):
            refused()
    [refusal, done] = queue.complete_many([jobs[0], jobs[2]])
    assert isinstance(refusal, CorruptRecord)
    assert done.state == JobState.COMPLETED
    report = queue.reap_expired()
    assert (report.reclaimed, report.dead, report.corrupt) == (1, 0, 1)
    assert queue.reap_expired().corrupt == 1
    queue.close()
    unharmed(ldb, jobs, damage)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_verbs_on_many_and_those_that_wait_pass_a_damaged_row_by(damaged, ldb, clock, damage):
    jobs, queue = damaged(damage)
    held = queue.lease_next(ACME, worker_id="w")
    assert held.job_id == jobs[1].job_id
    last = queue.complete_and_lease(held)
    assert last.job_id == jobs[2].job_id
    assert queue.complete_and_lease(last, wait_secs=0.001) is None
    stale = Lease(ACME, jobs[0].job_id, "w", 1)
    for outcomes in (
        queue.extend_many([stale]),
        queue.complete_many([stale]),
        queue.fail_many([(stale, "e")]),
    ):
        assert [type(outcome) for outcome in outcomes] in ([CorruptRecord], [UnsupportedVersion])
    for refused in (
        lambda: queue.complete_and_lease(stale),
        lambda: queue.extend_many([stale], atomic=True),
    ):
        with pytest.raises(CorruptRecord):
            refused()
    assert queue.counts()[JobState.PENDING] == 1
    assert queue.scopes() == [ACME]
    assert queue._engine.next_due_us(ACME.key, None, clock()) is None
    assert queue._engine.next_by_scan(ACME.key, None, clock()) is None
    report = queue.fsck(repair=True)
    assert (sum(report.found.values()), report.repaired) == (1, {})
    assert [finding.job_id for finding in report.findings] == [jobs[0].job_id]
    queue.close()
    unharmed(ldb, jobs, damage)


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.LEASED, JobState.COMPLETED, 3, JobState.DEAD, 9, 255])
@pytest.mark.parametrize("size", [1, 32, 33, 57, 59, 200])
def test_a_key_of_a_wrong_length_is_no_job_and_no_obstacle(path, clock, ldb, state, size):
    with Queue.open(path, QUICK, clock) as queue:
        jobs = [queue.enqueue(ACME, "x") for _ in range(3)]
        queue.lease_next(ACME, worker_id="w", lease_ttl_secs=1)
    key = (ACME.key + bytes([state]) + bytes(9) + bytes(200))[:size]
    ldb.put("jobs", key, jobs[0].value)
    with Queue.open(path, QUICK, clock) as queue:
        assert queue.scopes() == [ACME]
        assert sum(queue.counts().values()) == len(queue.list()) == 3
        clock.advance(secs=60)
        assert queue.reap_expired().reclaimed == 1
        assert queue.lease_next_any(worker_id="w").job_id == jobs[1].job_id
        assert [job.job_id for job in queue.lease_many(ACME, 5, worker_id="w")] == [jobs[2].job_id]
    assert ldb.rows("jobs")[key] == jobs[0].value


@pytest.mark.parametrize("version", [b"2", b"", b"10", b"one"])
def test_a_store_of_another_format_is_refused_at_open_and_not_one_row_is_changed(path, clock, ldb, version):
    with Queue.open(path, QUICK, clock) as queue:
        queue.enqueue(ACME, "x")
        clock.advance(secs=60)
        queue.counts(), queue.reap_expired()
    ldb.put("default", b"format", version)
    before = ldb.all_rows()
    for _ in range(2):
        with pytest.raises(UnsupportedVersion):
            Queue.open(path, QUICK, clock)
    assert ldb.all_rows() == before
    ldb.put("default", b"format", b"1")
    with Queue.open(path, QUICK, clock) as queue:  # the refusal has given the directory back
        assert queue.counts()[JobState.PENDING] == 1


@pytest.mark.parametrize(
    "name", [b"", b"\xff\xfe", b"ac\xedme", b"acme\0", b"\x1b[2J", b"globex", b"x" * 256, b"x" * 50_000]
)
def test_a_damaged_name_is_not_told_and_is_put_right_by_the_next_job(path, clock, ldb, name):
    row = b"scope:" + ACME.key
    with Queue.open(path, QUICK, clock) as queue:
        queue.enqueue(ACME, "x")
    ldb.put("default", row, name)
    with Queue.open(path, QUICK, clock) as queue:
        assert [(scope.key, scope.name) for scope in queue.scopes()] == [(ACME.key, None)]
        queue.enqueue(ACME, "x")
        assert [scope.name for scope in queue.scopes()] == ["acme"]
    assert ldb.rows("default")[row] == b"acme"


@pytest.mark.parametrize("has_ids", [True, False])
def test_a_store_that_lost_its_format_row_is_refused_and_not_taken_for_a_new_one(path, clock, ldb, has_ids):
    with Queue.open(path, QUICK, clock) as queue:
        job = queue.enqueue(ACME, "x")
    ldb.delete("default", b"format")
    if not has_ids:
        ldb.delete("ids", job.job_id.bytes)
    before = ldb.all_rows()
    with pytest.raises(CorruptionError):
        Queue.open(path, QUICK, clock)
    assert ldb.all_rows() == before


def test_a_payload_row_that_is_gone_is_a_corrupt_record_and_the_job_can_still_end(path, clock, ldb):
    with Queue.open(path, QUICK, clock) as queue:
        job = queue.enqueue(ACME, "x", b"y" * 5000)
    ldb.delete("payloads", job.job_id.bytes)
    with Queue.open(path, QUICK, clock) as queue:
        lease = queue.lease_next(ACME, worker_id="w")
        with pytest.raises(CorruptRecord, match=str(job.job_id)):
            _ = lease.payload
        assert queue.fail(lease, "no payload", retryable=False).state == JobState.DEAD


@pytest.mark.parametrize("row", [b"", b"short", bytes(42)])
def test_a_damaged_id_row_is_a_corrupt_record_on_look_up_and_the_job_is_still_leased(path, clock, ldb, row):
    with Queue.open(path, QUICK, clock) as queue:
        jobs = [queue.enqueue(ACME, "x") for _ in range(3)]
    ldb.put("ids", jobs[0].job_id.bytes, row)
    with Queue.open(path, QUICK, clock) as queue:
        with pytest.raises(CorruptRecord):
            queue.get(ACME, jobs[0].job_id)
        assert queue.lease_next(ACME, worker_id="w").job_id == jobs[0].job_id


def test_an_id_row_without_a_job_is_a_corrupt_record(path, clock, ldb):
    with Queue.open(path, QUICK, clock) as queue:
        job = queue.enqueue(ACME, "x", idempotency_key="k")
    ldb.delete("jobs", job.key)
    with Queue.open(path, QUICK, clock) as queue:
        with pytest.raises(CorruptRecord):
            queue.get(ACME, job.job_id)
        with pytest.raises(CorruptRecord):
            queue.enqueue(ACME, "x", idempotency_key="k")
        with pytest.raises(CorruptRecord), queue.transaction() as tx:
            tx.enqueue(ACME, "x", idempotency_key="k")
        assert queue.enqueue(ACME, "x", idempotency_key="other").state == JobState.PENDING
