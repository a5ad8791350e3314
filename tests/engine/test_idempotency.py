"""Idempotency keys: the same key in the same scope is the same job, for as long as that job exists."""

from __future__ import annotations

import pytest

from telha_queue.job import JobSpec, JobState
from telha_queue.scope import Scope

ACME = Scope.named("acme")
OTHER = Scope.named("other")


def test_a_key_that_is_taken_yields_the_job_that_has_it(queue, rows):
    job = queue.enqueue(ACME, "embed", b"first", idempotency_key="file:1")
    before = rows(queue)
    again = queue.enqueue(ACME, "other", b"second", priority=1, idempotency_key="file:1")
    assert (again.job_id, again.key, again.value) == (job.job_id, job.key, job.value)
    assert again.payload == b"first"
    assert rows(queue) == before


def test_a_job_without_a_key_is_always_a_new_one(queue):
    assert queue.enqueue(ACME, "embed", b"x").job_id != queue.enqueue(ACME, "embed", b"x").job_id


def test_scopes_do_not_share_keys(queue):
    jobs = [queue.enqueue(scope, "embed", idempotency_key="one") for scope in (ACME, OTHER, Scope.SYSTEM)]
    assert len({job.job_id for job in jobs}) == 3


def test_keys_that_begin_alike_are_different(queue):
    keys = ("a", "aa", "a b", "A", "ä")
    assert len({queue.enqueue(ACME, "embed", idempotency_key=key).job_id for key in keys}) == 5


@pytest.mark.parametrize("state", [JobState.LEASED, JobState.COMPLETED, JobState.DEAD])
def test_the_key_stays_taken_in_every_state(queue, state):
    job = queue.enqueue(ACME, "embed", b"p" * 5000, idempotency_key="one")
    lease = queue.lease_next(ACME, worker_id="w")
    if state == JobState.COMPLETED:
        queue.complete(lease)
    elif state == JobState.DEAD:
        queue.fail(lease, "error", retryable=False)
    again = queue.enqueue(ACME, "embed", idempotency_key="one")
    assert (again.job_id, again.state, again.payload) == (job.job_id, state, b"p" * 5000)
    assert sum(queue.counts().values()) == 1


def test_a_batch_with_a_taken_key_stores_the_others(queue):  # Q14
    taken = queue.enqueue(ACME, "embed", idempotency_key="17")
    jobs = queue.enqueue_many(ACME, [JobSpec("embed", idempotency_key=str(n)) for n in range(100)])
    assert jobs[17].job_id == taken.job_id
    assert [job.idempotency_key for job in jobs] == [str(n) for n in range(100)]
    assert queue.counts(ACME)[JobState.PENDING] == 100
    created = [job.created_at for job in jobs if job.job_id != taken.job_id]
    assert created == sorted(created)


def test_a_key_that_repeats_in_a_batch_yields_the_first_job(queue):
    jobs = queue.enqueue_many(ACME, [JobSpec("embed", payload, idempotency_key="one") for payload in (b"1", b"2")])
    assert jobs[0].job_id == jobs[1].job_id
    assert [job.payload for job in jobs] == [b"1", b"1"]
    assert queue.counts(ACME)[JobState.PENDING] == 1


def test_concurrent_callers_with_one_key_get_one_job(queue, together):  # D14
    for turn in range(20):
        jobs = together(*[lambda key=f"key {turn}": queue.enqueue(ACME, "embed", idempotency_key=key)] * 8)
        assert len({job.job_id for job in jobs}) == 1
    assert queue.counts(ACME)[JobState.PENDING] == 20


def test_concurrent_batches_with_the_same_keys_store_each_once(queue, together):
    specs = [JobSpec("embed", idempotency_key=str(n)) for n in range(200)]
    batches = together(*[lambda: queue.enqueue_many(ACME, specs)] * 4)
    assert len({tuple(job.job_id for job in batch) for batch in batches}) == 1
    assert queue.counts(ACME)[JobState.PENDING] == 200


def test_the_key_survives_a_restart(queue, reopen):
    job = queue.enqueue(ACME, "embed", idempotency_key="one")
    queue = reopen(queue)
    assert queue.enqueue(ACME, "embed", idempotency_key="one").job_id == job.job_id
