"""Reading: one job by its id, pages of many, counts; and nothing of one scope through another."""

from __future__ import annotations

from uuid import UUID

import pytest

from telha_queue.errors import JobNotFound, StoreClosed
from telha_queue.job import Exact, JobSpec, JobState
from telha_queue.scope import Scope

ACME = Scope.named("acme")
OTHER = Scope.named("other")
EMPTY = dict.fromkeys(JobState, 0)


@pytest.fixture
def mixed(queue):
    """A queue with jobs of three scopes in every state; their records as they are now, in no order."""
    jobs = []
    for scope in (OTHER, Scope.SYSTEM, ACME):
        for priority in (7, 0):
            for kind in ("a", "ab", "b"):
                queue.enqueue_many(scope, [JobSpec(kind, kind.encode() * 3000, priority=priority)] * 4)
                leases = queue.lease_many(scope, 3, Exact(kind), worker_id="w")
                queue.complete(leases[0])
                queue.fail(leases[1], "error", retryable=False)
        jobs += queue.list(scope, limit=1000)
    return jobs


def pages(queue, limit, scope=None, **filters):
    after, found = None, []
    while page := queue.list(scope, limit=limit, after=after, **filters):
        assert len(page) <= limit
        found += page
        after = page[-1]
    return found


def test_one_job_is_found_by_its_id(queue, mixed):
    for job in mixed:
        for record in (queue.get(job.scope, job.job_id), queue.find(job.job_id)):
            assert (record.key, record.value, record.payload) == (job.key, job.value, job.payload)


def test_a_foreign_job_looks_exactly_like_an_unknown_one(queue, mixed):
    job = next(job for job in mixed if job.scope == ACME)
    for scope in (OTHER, Scope.SYSTEM, Scope.tenant(ACME.tenant_id, UUID(int=1))):
        with pytest.raises(JobNotFound) as foreign:
            queue.get(scope, job.job_id)
        with pytest.raises(JobNotFound) as unknown:
            queue.get(scope, UUID(int=1))
        assert str(foreign.value).replace(str(job.job_id), "?") == str(unknown.value).replace(str(UUID(int=1)), "?")
        assert vars(foreign.value).keys() == vars(unknown.value).keys()


def test_an_unknown_id_is_not_found_in_any_scope(queue, mixed):
    for read in (queue.find, queue.find_leased_any):
        with pytest.raises(JobNotFound):
            read(UUID(int=1))


def test_a_leased_job_is_found_by_its_holder(queue, mixed):
    for job in mixed:
        found = queue.find_leased_any(job.job_id)
        assert (found and found.key) == (job.key if job.state == JobState.LEASED else None)


@pytest.mark.parametrize("limit", [1, 7, 72, 1000])
def test_pages_of_any_size_hold_every_job_once_in_key_order(queue, mixed, limit):
    found = pages(queue, limit)
    assert [job.key for job in found] == sorted(job.key for job in mixed)
    assert {job.value for job in found} == {job.value for job in mixed}


@pytest.mark.parametrize("scope", [None, ACME, Scope.SYSTEM, Scope.named("nobody")], ids=str)
def test_filters_leave_out_all_else(queue, mixed, scope):
    def wanted(job, state, filters):
        return (
            (scope is None or job.scope == scope)
            and (state is None or job.state == state)
            and any(job.kind == text if isinstance(text, Exact) else job.kind.startswith(text) for text in filters)
        )

    for state in (None, *JobState):
        for kinds in ("a", Exact("a"), ["b", Exact("ab")], None):
            filters = [""] if kinds is None else [kinds] if isinstance(kinds, str) else kinds
            expected = sorted(job.key for job in mixed if wanted(job, state, filters))
            for limit in (1, 5, 1000):
                found = pages(queue, limit, scope, state=state, kinds=kinds)
                assert [job.key for job in found] == expected


def test_a_page_goes_on_behind_a_job_that_has_moved_on(queue):
    jobs = queue.enqueue_many(ACME, [JobSpec("embed")] * 4)
    first = queue.list(ACME, state=JobState.PENDING, limit=2)
    queue.complete_many(queue.lease_many(ACME, 2, worker_id="w"))
    rest = queue.list(ACME, state=JobState.PENDING, limit=2, after=first[-1])
    assert [job.job_id for job in first + rest] == [job.job_id for job in jobs]


def test_a_page_behind_a_job_of_another_scope_stays_in_its_own(queue):
    ours, theirs = queue.enqueue(ACME, "embed"), queue.enqueue(OTHER, "embed")
    low, high = sorted((ours, theirs), key=lambda job: job.key)
    assert [job.key for job in queue.list(high.scope, after=low)] == [high.key]
    assert queue.list(low.scope, after=high) == []


def test_the_default_page_has_a_hundred_jobs(queue):
    queue.enqueue_many(ACME, [JobSpec("embed")] * 150)
    assert len(queue.list()) == 100


def test_counts_are_exact_in_every_state(queue, mixed):
    per_scope = {JobState.PENDING: 6, JobState.LEASED: 6, JobState.COMPLETED: 6, JobState.DEAD: 6}
    for scope in (ACME, OTHER, Scope.SYSTEM):
        assert queue.counts(scope) == EMPTY | per_scope
    assert queue.counts() == EMPTY | {state: 3 * count for state, count in per_scope.items()}
    assert all(isinstance(state, JobState) for state in queue.counts())


def test_an_empty_queue_counts_zero_of_each(queue):
    assert queue.counts() == queue.counts(ACME) == EMPTY
    assert (queue.list(), queue.scopes()) == ([], [])


def test_scopes_are_listed_in_key_order_the_system_first(queue, mixed):
    queue.enqueue(Scope(b"\xff" * 32), "embed")
    assert queue.scopes() == [Scope.SYSTEM, *sorted((ACME, OTHER), key=lambda scope: scope.key), Scope(b"\xff" * 32)]


def test_a_restart_changes_nothing(queue, mixed, reopen, rows):  # Q9, D12
    before = (rows(queue), queue.counts(), queue.scopes())
    for _ in range(10):
        queue = reopen(queue)
        assert (rows(queue), queue.counts(), queue.scopes()) == before


def test_a_closed_queue_refuses_every_verb(queue):
    job = queue.enqueue(ACME, "embed")
    lease = queue.lease_next(ACME, worker_id="w")
    queue.close()
    queue.close()
    for call in (
        lambda: queue.enqueue(ACME, "embed"),
        lambda: queue.enqueue_many(ACME, [JobSpec("embed")]),
        lambda: queue.lease_next(ACME, worker_id="w"),
        lambda: queue.lease_next(ACME, worker_id="w", wait_secs=5),
        lambda: queue.lease_next_any(worker_id="w"),
        lambda: queue.lease_many(ACME, 5, worker_id="w"),
        lambda: queue.extend(lease),
        lambda: queue.checkpoint(lease, b""),
        lambda: queue.stats(lease, "x"),
        lambda: queue.complete(lease),
        lambda: queue.complete_many([lease]),
        lambda: queue.fail(lease, "error"),
        lambda: queue.release(lease),
        lambda: queue.retry(ACME, job.job_id),
        lambda: queue.get(ACME, job.job_id),
        lambda: queue.find(job.job_id),
        lambda: queue.list(),
        lambda: queue.counts(),
        lambda: queue.scopes(),
        lambda: queue.reap_expired(),
    ):
        with pytest.raises(StoreClosed):
            call()
