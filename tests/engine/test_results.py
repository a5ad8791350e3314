"""Results: what a job is completed with is kept with it, in its record or beside it."""

from __future__ import annotations

import pytest

from telha_queue.errors import LeaseConflict, PayloadTooLarge, StoreClosed
from telha_queue.job import JobSpec, JobState
from telha_queue.scope import Scope

ACME = Scope.named("acme")
SIZES = [0, 1, 4096, 4097, 1024 * 1024]


@pytest.fixture
def lease(queue):
    """The first lease of a job."""
    queue.enqueue(ACME, "embed", b"payload")
    return queue.lease_next(ACME, worker_id="w")


@pytest.mark.parametrize("size", SIZES)
def test_a_result_of_any_size_is_kept_with_the_job(queue, lease, size):
    result = bytes(i % 251 for i in range(size))
    done = queue.complete(lease, result=result)
    for job in (done, queue.get(ACME, lease.job_id)):
        assert (job.state, job.result_bytes, job.result) == (JobState.COMPLETED, size, result)
        assert job.payload == b"payload"


def test_a_job_without_a_result_has_none_and_is_stored_as_before(queue, lease):
    job = queue.complete(lease)
    assert (job.result, job.result_bytes) == (None, None)
    queue.enqueue(ACME, "embed", b"payload")
    other = queue.complete(queue.lease_next(ACME, worker_id="w"), result=b"")
    assert len(other.value) > len(job.value)


def test_a_long_result_stands_beside_the_record(queue, lease):
    assert len(queue.complete(lease, result=bytes(5000)).value) < 1000


def test_only_a_completed_job_has_a_result(queue, lease):
    assert (lease.result, lease.result_bytes) == (None, None)
    assert queue.list(ACME, state=JobState.LEASED)[0].result is None


@pytest.mark.parametrize("result", [b"short", b"r" * 5000])
def test_a_refused_completion_keeps_no_result(queue, lease, refused, result):
    queue.release(lease)
    with refused(queue, LeaseConflict):
        queue.complete(lease, result=result)
    done = queue.complete(queue.lease_next(ACME, worker_id="w"))
    assert (done.result, queue.get(ACME, lease.job_id).result) == (None, None)


@pytest.mark.parametrize("result", [b"short", b"r" * 5000])
@pytest.mark.parametrize("state", [JobState.PENDING, JobState.DEAD])
def test_a_late_completion_keeps_its_result_too(queue, clock, result, state):
    queue.enqueue(ACME, "embed", max_attempts=1 if state == JobState.DEAD else None)
    lease = queue.lease_next(ACME, worker_id="w")
    clock.set_us(lease.lease_deadline)
    queue.reap_expired()
    assert queue.get(ACME, lease.job_id).state == state
    assert queue.complete(lease, result=result, late="accept_if_unclaimed").result == result
    assert queue.get(ACME, lease.job_id).result == result


def test_what_can_change_is_copied(queue, lease):
    result = bytearray(b"before")
    done = queue.complete(lease, result=result)
    result[:] = b"behind"
    assert done.result == queue.get(ACME, lease.job_id).result == b"before"


@pytest.mark.parametrize("result", [b"short", b"r" * 5000])
def test_a_result_survives_a_restart(queue, reopen, lease, result):
    queue.complete(lease, result=result)
    assert reopen(queue).get(ACME, lease.job_id).result == result


def test_a_long_result_is_read_when_it_is_asked_for(queue, lease):
    queue.complete(lease, result=b"r" * 5000)
    asked, unasked = queue.get(ACME, lease.job_id), queue.get(ACME, lease.job_id)
    assert asked.result == b"r" * 5000
    queue.close()
    assert (asked.result, unasked.result_bytes) == (b"r" * 5000, 5000)
    with pytest.raises(StoreClosed):
        _ = unasked.result


def test_a_result_is_at_most_as_long_as_a_payload(make_queue, refused):
    queue = make_queue(max_payload_bytes=10)
    queue.enqueue(ACME, "embed")
    lease = queue.lease_next(ACME, worker_id="w")
    with refused(queue, PayloadTooLarge) as caught:
        queue.complete(lease, result=b"r" * 11)
    assert (caught.value.size_bytes, caught.value.limit_bytes) == (11, 10)
    assert queue.complete(lease, result=b"r" * 10).result == b"r" * 10


def test_the_others_of_a_batch_have_no_result(queue):
    for _ in range(3):
        queue.enqueue(ACME, "embed")
    first, *rest = queue.lease_many(ACME, 3, worker_id="w")
    queue.complete(first, result=b"only this one")
    assert [job.result for job in queue.complete_many(rest)] == [None, None]


@pytest.mark.parametrize("result", [b"short", b"r" * 5000])
def test_a_transaction_and_a_chain_keep_it_in_their_one_write(queue, lease, result):
    with queue.transaction() as tx:
        tx.complete(lease, result=result)
        tx.enqueue(ACME, "next")
    assert tx.jobs[0].result == queue.get(ACME, lease.job_id).result == result
    second = queue.lease_next(ACME, worker_id="w")
    assert queue.complete(second, result=result, then=[JobSpec("last")]).result == result
    assert queue.get(ACME, second.job_id).result == result


@pytest.mark.parametrize("result", [b"short", b"r" * 5000])
def test_a_transaction_that_is_refused_keeps_none_and_takes_none_away(queue, lease, refused, result):
    queue.enqueue(ACME, "embed")
    other = queue.lease_next(ACME, worker_id="w")
    queue.complete(lease, result=result)
    with refused(queue, LeaseConflict), queue.transaction() as tx:
        tx.complete(other, result=b"t" * 5000)
        tx.complete(lease, result=b"t" * 5000)
    assert queue.get(ACME, lease.job_id).result == result
    assert queue.complete(other).result is None


def test_a_result_counts_in_the_size_of_a_transaction(queue, lease):
    with queue.transaction() as tx:
        tx.enqueue_many(ACME, [JobSpec("embed", bytes(1024 * 1024))] * 15)
        tx.complete(lease, result=bytes(1024 * 1024))
        with pytest.raises(PayloadTooLarge):
            tx.complete(lease, result=b"r")
    assert tx.jobs[-1].result_bytes == 1024 * 1024
