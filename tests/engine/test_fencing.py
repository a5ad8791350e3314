"""Fencing: only the lease in force is accepted, and a refused one changes not one byte."""

from __future__ import annotations

from uuid import UUID

import pytest

from telha_queue.errors import JobNotFound, LeaseConflict
from telha_queue.job import JobState, Lease
from telha_queue.scope import Scope

ACME = Scope.named("acme")
OTHER = Scope.named("other")

FENCED = {
    "extend": lambda queue, lease: queue.extend(lease),
    "extend_any": lambda queue, lease: queue.extend_any(lease.job_id, lease.worker_id, lease.lease_generation),
    "checkpoint": lambda queue, lease: queue.checkpoint(lease, b"stale"),
    "durable checkpoint": lambda queue, lease: queue.checkpoint(lease, b"stale", durable=True),
    "progress": lambda queue, lease: queue.progress(lease, 0.5, "stale"),
    "stats": lambda queue, lease: queue.stats(lease, "stale"),
    "complete": lambda queue, lease: queue.complete(lease),
    "complete with a result": lambda queue, lease: queue.complete(lease, result=b"stale"),
    "complete with a long result": lambda queue, lease: queue.complete(lease, result=b"s" * 5000),
    "fail": lambda queue, lease: queue.fail(lease, "stale"),
    "fail for good": lambda queue, lease: queue.fail(lease, "stale", retryable=False),
    "release": lambda queue, lease: queue.release(lease),
}


def token(lease, **changes):
    """The lease as it travels over a wire, with changes."""
    return Lease(lease.scope, lease.job_id, lease.worker_id, lease.lease_generation)._replace(**changes)


def held_by_another_worker(queue, clock, lease):
    return token(lease, worker_id="thief")


def of_an_older_generation(queue, clock, lease):
    queue.release(lease)
    queue.lease_next(ACME, worker_id=lease.worker_id)
    return token(lease)


def of_a_generation_to_come(queue, clock, lease):
    return token(lease, lease_generation=lease.lease_generation + 1)


def of_generation_0(queue, clock, lease):
    return token(lease, lease_generation=0)


def of_a_job_completed(queue, clock, lease):
    queue.complete(lease)
    return token(lease)


def of_a_job_given_back(queue, clock, lease):
    queue.release(lease)
    return token(lease)


def of_a_job_that_failed(queue, clock, lease):
    queue.fail(lease, "error")
    return token(lease)


def of_a_dead_job(queue, clock, lease):
    queue.fail(lease, "error", retryable=False)
    return token(lease)


def of_a_job_reaped(queue, clock, lease):
    clock.set_us(lease.lease_deadline)
    assert queue.reap_expired().reclaimed == 1
    return token(lease)


def of_a_job_reaped_and_leased_again(queue, clock, lease):
    of_a_job_reaped(queue, clock, lease)
    clock.advance(secs=10)
    assert queue.lease_next(ACME, worker_id="successor").job_id == lease.job_id
    return token(lease)


def of_a_job_reaped_and_leased_again_by_the_same_worker(queue, clock, lease):
    of_a_job_reaped(queue, clock, lease)
    clock.advance(secs=10)
    assert queue.lease_next(ACME, worker_id=lease.worker_id).job_id == lease.job_id
    return token(lease)


def of_a_job_retried(queue, clock, lease):
    of_a_dead_job(queue, clock, lease)
    queue.retry(ACME, lease.job_id)
    return token(lease)


def of_a_job_retried_and_leased_again_by_the_same_worker(queue, clock, lease):
    of_a_job_retried(queue, clock, lease)
    queue.lease_next(ACME, worker_id=lease.worker_id)
    return token(lease)


ENDED = [function for name, function in list(globals().items()) if name.startswith(("of_", "held_"))]


@pytest.mark.parametrize("make_stale", ENDED, ids=lambda function: function.__name__)
def test_a_lease_that_is_not_in_force_is_refused_by_every_verb(queue, clock, refused, make_stale):
    queue.enqueue(ACME, "embed", b"payload")
    lease = queue.lease_next(ACME, worker_id="w1")
    queue.checkpoint(lease, b"kept")
    stale = make_stale(queue, clock, lease)
    now = queue.get(ACME, lease.job_id)
    for verb, call in FENCED.items():
        with refused(queue, LeaseConflict, case=verb) as caught:
            call(queue, stale)
        conflict = caught.value
        assert (conflict.job_id, conflict.presented) == (lease.job_id, stale.lease_generation)
        assert (conflict.held, conflict.state) == (now.lease_generation, now.state)


def test_a_job_of_another_scope_is_not_found(queue, refused):
    queue.enqueue(ACME, "embed")
    lease = queue.lease_next(ACME, worker_id="w")
    foreign = token(lease, scope=OTHER)
    for verb, call in FENCED.items():
        if verb == "extend_any":
            continue  # knows only the id, so any scope will do
        with refused(queue, JobNotFound, case=verb) as caught:
            call(queue, foreign)
        assert caught.value.job_id == lease.job_id
    assert queue.extend_any(lease.job_id, "w", 1).scope == ACME


def test_an_unknown_job_is_not_found(queue, refused):
    queue.enqueue(ACME, "embed")
    for verb, call in FENCED.items():
        with refused(queue, JobNotFound, case=verb):
            call(queue, Lease(ACME, UUID(int=7), "w", 1))


def test_the_holder_is_accepted_even_after_its_deadline(queue, clock):
    for call in FENCED.values():
        queue.enqueue(ACME, "embed")
        lease = queue.lease_next(ACME, worker_id="w")
        clock.set_us(lease.lease_deadline + 1)
        assert call(queue, lease).job_id == lease.job_id


def test_a_token_serves_as_well_as_the_record(queue):
    for call in FENCED.values():
        queue.enqueue(ACME, "embed")
        lease = queue.lease_next(ACME, worker_id="w")
        assert call(queue, token(lease)).job_id == lease.job_id


def test_the_lease_outlives_its_own_heartbeats(queue):
    queue.enqueue(ACME, "embed")
    lease = queue.lease_next(ACME, worker_id="w")
    queue.extend(lease)
    queue.checkpoint(lease, b"1")
    queue.stats(lease, "half")
    assert queue.complete(lease).state == JobState.COMPLETED


def test_the_generation_only_grows(queue, clock):
    job = queue.enqueue(ACME, "embed", max_attempts=2)
    generations = [job.lease_generation]
    for _ in range(4):
        lease = queue.lease_next(ACME, worker_id="w")
        generations.append(lease.lease_generation)
        generations.append(queue.release(lease).lease_generation)
        lease = queue.lease_next(ACME, worker_id="w")
        generations.append(queue.fail(lease, "error").lease_generation)
        clock.advance(secs=3600)
        lease = queue.lease_next(ACME, worker_id="w")
        clock.set_us(lease.lease_deadline)
        assert queue.reap_expired().dead == 1
        generations.append(queue.retry(ACME, job.job_id).lease_generation)
    assert generations == sorted(generations)
    assert generations[-1] == 12


def test_the_generation_survives_a_restart(queue, reopen, refused):
    queue.enqueue(ACME, "embed")
    stale = token(queue.lease_next(ACME, worker_id="w"))
    queue.release(stale)
    queue = reopen(queue)
    with refused(queue, LeaseConflict):
        queue.complete(stale)
    assert queue.lease_next(ACME, worker_id="w").lease_generation == 2
