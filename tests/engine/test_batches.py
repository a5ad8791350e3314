"""Verbs for many jobs: each as that many single calls would be, in one step."""

from __future__ import annotations

from uuid import UUID

import pytest

from telha_queue.errors import InvalidArgument, InvalidType, JobNotFound, LeaseConflict, PayloadTooLarge
from telha_queue.job import Exact, JobSpec, JobState, Lease
from telha_queue.scope import Scope

ACME = Scope.named("acme")
OTHER = Scope.named("other")


def test_nothing_to_do_is_nothing_done(queue):
    assert queue.enqueue_many(ACME, []) == []
    assert queue.complete_many([]) == []
    assert queue.scopes() == []


def test_a_batch_of_specs_becomes_jobs_in_order(queue, clock):
    specs = [
        JobSpec("a"),
        JobSpec("b", b"payload", priority=3),
        JobSpec("c", delay_secs=1),
        JobSpec("d", not_before=clock() + 7, idempotency_key="k", max_attempts=9),
    ]
    jobs = queue.enqueue_many(ACME, iter(specs))
    assert [(job.kind, job.payload, job.priority) for job in jobs] == [
        ("a", b"", 128),
        ("b", b"payload", 3),
        ("c", b"", 128),
        ("d", b"", 128),
    ]
    assert [job.not_before for job in jobs] == [None, None, clock() + 1_000_000, clock() + 7]
    assert (jobs[3].idempotency_key, jobs[3].max_attempts) == ("k", 9)
    assert [job.created_at for job in jobs] == [clock() + n for n in range(4)]
    assert [queue.get(ACME, job.job_id).value for job in jobs] == [job.value for job in jobs]


def test_large_payloads_of_a_batch_come_back(queue):
    payloads = [bytes([n]) * (4000 + n * 50) for n in range(5)]
    jobs = queue.enqueue_many(ACME, [JobSpec("embed", payload) for payload in payloads])
    assert [queue.get(ACME, job.job_id).payload for job in jobs] == payloads
    assert [job.payload for job in queue.lease_many(ACME, 5, worker_id="w")] == payloads


BAD_SPECS = (JobSpec(""), JobSpec("embed", priority=256), "embed", ("embed", b""), None)


def test_one_bad_spec_harms_no_other(queue):
    for bad in BAD_SPECS:
        first, error, last = queue.enqueue_many(ACME, [JobSpec("embed"), bad, JobSpec("index")])
        assert isinstance(error, InvalidArgument)
        assert str(error).startswith("job 1: ")
        assert [queue.get(ACME, job.job_id).kind for job in (first, last)] == ["embed", "index"]
    assert queue.counts()[JobState.PENDING] == 2 * len(BAD_SPECS)


def test_of_bad_specs_alone_nothing_is_stored(queue, refused):
    outcomes = queue.enqueue_many(ACME, BAD_SPECS)
    assert [type(error) for error in outcomes] == [InvalidArgument, InvalidArgument, *[InvalidType] * 3]
    assert queue.list() == []


def test_one_bad_spec_refuses_an_atomic_batch(queue, refused):
    queue.enqueue(ACME, "embed")
    for bad in BAD_SPECS:
        with refused(queue, InvalidArgument):
            queue.enqueue_many(ACME, [JobSpec("embed"), bad], atomic=True)


def test_a_batch_is_bounded_in_jobs_and_in_bytes(queue, refused):
    assert len(queue.enqueue_many(ACME, [JobSpec("embed")] * 1000)) == 1000
    with refused(queue, InvalidArgument):
        queue.enqueue_many(ACME, [JobSpec("embed")] * 1001)
    with refused(queue, PayloadTooLarge) as caught:
        queue.enqueue_many(ACME, [JobSpec("embed", bytes(2**20))] * 17)
    assert (caught.value.size_bytes, caught.value.limit_bytes) == (17 * 2**20, 2**24)


def test_leasing_many_is_leasing_one_by_one(queue, clock):
    queue.enqueue_many(ACME, [JobSpec("b", priority=9), JobSpec("a", priority=1), JobSpec("a", delay_secs=1)])
    best = queue.enqueue(ACME, "a", priority=0)
    leases = queue.lease_many(ACME, 10, "a", worker_id="w", lease_ttl_secs=60)
    assert [lease.priority for lease in leases] == [0, 1]
    assert leases[0].job_id == best.job_id
    for lease in leases:
        assert (lease.state, lease.worker_id, lease.lease_generation) == (JobState.LEASED, "w", 1)
        assert lease.lease_deadline == clock() + 60_000_000
        assert queue.get(ACME, lease.job_id).value == lease.value
    assert [lease.kind for lease in queue.lease_many(ACME, 10, worker_id="w")] == ["b"]


def test_leasing_many_takes_no_more_than_asked_for(queue):
    jobs = queue.enqueue_many(ACME, [JobSpec("embed")] * 10)
    leased = [lease.job_id for n in (3, 1, 5, 5) for lease in queue.lease_many(ACME, n, worker_id="w")]
    assert leased == [job.job_id for job in jobs]
    assert queue.lease_many(ACME, 5, worker_id="w") == []


def test_leasing_many_heeds_scopes_and_exact_kinds(queue):
    queue.enqueue_many(OTHER, [JobSpec("embed")] * 3)
    queue.enqueue_many(ACME, [JobSpec("embedding"), JobSpec("embed")] * 2)
    assert [lease.kind for lease in queue.lease_many(ACME, 9, Exact("embed"), worker_id="w")] == ["embed"] * 2


def test_leasing_many_of_any_scope_goes_by_priority_and_age(queue):
    jobs = [queue.enqueue(scope, "x", priority=p) for p in (5, 1) for scope in (OTHER, ACME, Scope.SYSTEM)]
    leased = queue.lease_many(None, 5, worker_id="w")
    assert [job.job_id for job in leased] == [job.job_id for job in [*jobs[3:], *jobs[:2]]]


def test_each_lease_of_a_batch_stands_alone(queue):
    queue.enqueue_many(ACME, [JobSpec("embed")] * 3)
    first, second, third = queue.lease_many(ACME, 3, worker_id="w")
    queue.fail(second, "error", retryable=False)
    queue.complete(third)
    assert queue.extend(first).state == JobState.LEASED


def test_completing_many_finishes_each(queue, clock):
    queue.enqueue_many(ACME, [JobSpec("embed", bytes([n])) for n in range(50)])
    leases = queue.lease_many(ACME, 50, worker_id="w")
    clock.advance(secs=1)
    done = queue.complete_many(leases)
    assert [job.job_id for job in done] == [lease.job_id for lease in leases]
    for job in done:
        assert (job.state, job.worker_id, job.lease_deadline) == (JobState.COMPLETED, None, None)
        assert job.events[-1][:3] == (clock(), "completed", None)
        assert queue.get(ACME, job.job_id).value == job.value
    assert queue.counts(ACME)[JobState.COMPLETED] == 50


def test_a_refused_completion_harms_no_other(queue):
    queue.enqueue_many(ACME, [JobSpec("embed")] * 4)
    queue.enqueue(OTHER, "embed")
    first, gone, stale, last = queue.lease_many(ACME, 4, worker_id="w")
    foreign = queue.lease_next(OTHER, worker_id="w")
    queue.release(gone)
    leases = [
        first,
        gone,
        Lease(ACME, stale.job_id, "w", 9),
        Lease(ACME, foreign.job_id, "w", 1),
        Lease(ACME, UUID(int=5), "w", 1),
        last,
        foreign,
    ]
    outcomes = queue.complete_many(leases)
    assert [type(outcome).__name__ for outcome in outcomes] == [
        "JobRecord",
        "LeaseConflict",
        "LeaseConflict",
        "JobNotFound",
        "JobNotFound",
        "JobRecord",
        "JobRecord",
    ]
    assert (outcomes[1].job_id, outcomes[1].state) == (gone.job_id, JobState.PENDING)
    assert (outcomes[2].held, outcomes[2].presented) == (1, 9)
    assert queue.get(ACME, stale.job_id).value == stale.value


def test_one_job_named_twice_is_finished_once(queue):
    queue.enqueue(ACME, "embed")
    lease = queue.lease_next(ACME, worker_id="w")
    done, again = queue.complete_many([lease, lease])
    assert done.state == JobState.COMPLETED
    assert isinstance(again, LeaseConflict)
    assert again.state == JobState.COMPLETED
    assert queue.get(ACME, lease.job_id).value == done.value


def test_refusals_alone_change_nothing(queue, rows):
    queue.enqueue(ACME, "embed")
    before = rows(queue)
    outcomes = queue.complete_many([Lease(ACME, UUID(int=5), "w", 1)] * 3)
    assert [type(outcome) for outcome in outcomes] == [JobNotFound] * 3
    assert rows(queue) == before


@pytest.mark.parametrize("bad", [None, "lease", ("w", 1), 5])
def test_one_bad_lease_refuses_the_whole_call(queue, refused, bad):
    queue.enqueue(ACME, "embed")
    lease = queue.lease_next(ACME, worker_id="w")
    with refused(queue, InvalidArgument):
        queue.complete_many([lease, bad])
