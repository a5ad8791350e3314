"""Lease order: the job that a plain scan from the head would find, whatever lies in front of it."""

from __future__ import annotations

import random
from uuid import UUID

import pytest

from telha_queue.engine import NewJob
from telha_queue.job import Exact, JobSpec, JobState
from telha_queue.scope import Scope

ACME = Scope.named("acme")
OTHER = Scope.named("other")


def lease_all(queue, scope=ACME, kinds=None):
    leased = []
    while job := queue.lease_next(scope, kinds, worker_id="w"):
        leased.append(job.job_id)
    return leased


def ids(jobs):
    return [job.job_id for job in jobs]


def test_an_empty_queue_leases_nothing(queue):
    assert queue.lease_next(ACME, worker_id="w") is None
    assert queue.lease_next_any(worker_id="w") is None
    assert queue.lease_many(ACME, 10, worker_id="w") == []


def test_a_lease_is_what_the_worker_gets(queue, clock):
    job = queue.enqueue(ACME, "embed", b"x")
    clock.advance(secs=1)
    lease = queue.lease_next(ACME, worker_id="w1", lease_ttl_secs=60)
    assert lease.job_id == job.job_id
    assert (lease.state, lease.worker_id, lease.lease_generation) == (JobState.LEASED, "w1", 1)
    assert lease.lease_deadline == clock() + 60_000_000
    assert (lease.attempts, lease.priority, lease.created_at) == (0, job.priority, job.created_at)
    assert [event[:3] for event in lease.events][1:] == [(clock(), "leased", "w1")]
    assert queue.get(ACME, job.job_id).value == lease.value


def test_the_default_ttl_comes_from_the_settings(make_queue, clock):
    queue = make_queue(lease_ttl_secs=0.25)
    queue.enqueue(ACME, "embed")
    assert queue.lease_next(ACME, worker_id="w").lease_deadline == clock() + 250_000


def test_jobs_of_one_priority_are_leased_in_the_order_they_came(queue, clock):
    jobs = []
    for step in (3, 1, 4, 1, 5, 9, 2, 6):
        clock.advance_us(step)
        jobs.append(queue.enqueue(ACME, "embed"))
    assert lease_all(queue) == ids(jobs)


def test_a_thousand_jobs_of_one_tick_are_leased_in_the_order_they_came(queue):  # Q17
    jobs = [queue.enqueue(ACME, "embed") for _ in range(500)]
    jobs += queue.enqueue_many(ACME, [JobSpec("embed")] * 500)
    assert lease_all(queue) == ids(jobs)


def test_a_lower_number_is_leased_sooner(queue):
    jobs = {priority: queue.enqueue(ACME, "embed", priority=priority) for priority in (128, 255, 0, 1, 254)}
    assert lease_all(queue) == [jobs[priority].job_id for priority in (0, 1, 128, 254, 255)]


def test_a_better_job_that_comes_later_overtakes(queue):
    first, second = queue.enqueue_many(ACME, [JobSpec("embed"), JobSpec("embed")])
    assert queue.lease_next(ACME, worker_id="w").job_id == first.job_id
    urgent = queue.enqueue(ACME, "embed", priority=0)
    assert lease_all(queue) == ids([urgent, second])


def test_a_gated_job_is_passed_over_until_its_time(queue, clock):
    gated = queue.enqueue(ACME, "embed", priority=0, delay_secs=10)
    due = queue.enqueue(ACME, "embed")
    assert lease_all(queue) == [due.job_id]
    clock.advance_us(9_999_999)
    assert lease_all(queue) == []
    clock.advance_us(1)
    assert lease_all(queue) == [gated.job_id]


def test_a_job_that_waited_out_its_gate_is_back_in_its_place(queue, clock):
    old = queue.enqueue(ACME, "embed")
    queue.fail(queue.lease_next(ACME, worker_id="w"), "later")
    new = queue.enqueue(ACME, "embed")
    clock.advance(secs=10)
    assert lease_all(queue) == ids([old, new])


def test_many_gated_jobs_in_front_hide_nothing(queue, clock):  # Q5
    queue.enqueue_many(ACME, [JobSpec("embed", priority=0, delay_secs=3600)] * 1000)
    due = queue.enqueue(ACME, "embed", priority=255)
    assert lease_all(queue) == [due.job_id]
    clock.advance(secs=3600)
    assert len(lease_all(queue)) == 1000


def test_a_plain_string_is_a_prefix_and_exact_is_the_whole_kind(queue):
    kinds = ("embed", "embedding:x", "ingest:pdf", "ingest")
    jobs = {kind: queue.enqueue(ACME, kind).job_id for kind in kinds}
    assert queue.lease_next(ACME, Exact("embe"), worker_id="w") is None
    assert queue.lease_next(ACME, Exact("embedding"), worker_id="w") is None
    assert lease_all(queue, kinds=Exact("ingest")) == [jobs["ingest"]]
    assert lease_all(queue, kinds="embed") == [jobs["embed"], jobs["embedding:x"]]
    assert lease_all(queue, kinds=["nothing", "ingest:"]) == [jobs["ingest:pdf"]]


def test_several_kinds_are_leased_in_one_order(queue):
    jobs = [queue.enqueue(ACME, kind) for kind in ("b:1", "a", "c", "b:2", "a")]
    assert lease_all(queue, kinds=["b:", Exact("a")]) == ids([jobs[0], jobs[1], jobs[3], jobs[4]])
    assert lease_all(queue) == ids([jobs[2]])


def test_filters_that_alternate_lose_nothing(queue):
    kinds = [f"kind:{index % 3}" for index in range(90)]
    jobs = queue.enqueue_many(ACME, [JobSpec(kind) for kind in kinds])
    for turn in range(30):
        for kind in (2, 0, 1):
            lease = queue.lease_next(ACME, Exact(f"kind:{kind}"), worker_id="w")
            assert lease.job_id == jobs[turn * 3 + kind].job_id
    assert queue.lease_next(ACME, worker_id="w") is None


def test_a_lease_stays_in_its_scope(queue):
    neighbour = Scope.tenant(ACME.tenant_id, UUID(int=ACME.space_id.int + 1))
    for scope in (OTHER, neighbour, Scope.SYSTEM):
        queue.enqueue(scope, "embed")
    assert queue.lease_next(ACME, worker_id="w") is None
    assert queue.lease_next(neighbour, worker_id="w").scope == neighbour


def test_the_last_possible_scope_is_bounded(queue):
    last = Scope(b"\xff" * 32)
    job = queue.enqueue(last, "embed", priority=255)
    assert lease_all(queue, last) == [job.job_id]
    assert queue.counts(last)[JobState.LEASED] == 1


def test_any_scope_means_best_priority_then_first_come(queue):
    jobs = {
        "late": queue.enqueue(Scope.SYSTEM, "embed", priority=9),
        "second": queue.enqueue(OTHER, "embed", priority=5),
        "third": queue.enqueue(ACME, "embed", priority=5),
        "first": queue.enqueue(ACME, "embed", priority=1),
    }
    leased = []
    while job := queue.lease_next_any(worker_id="w"):
        leased.append((job.scope, job.job_id))
    order = [jobs[name] for name in ("first", "second", "third", "late")]
    assert leased == [(job.scope, job.job_id) for job in order]


def test_any_scope_heeds_gates_and_kinds(queue, clock):
    gated = queue.enqueue(ACME, "embed", priority=0, delay_secs=5)
    queue.enqueue(OTHER, "ingest", priority=1)
    due = queue.enqueue(Scope.SYSTEM, "embed", priority=200)
    assert queue.lease_next_any("embed", worker_id="w").job_id == due.job_id
    assert queue.lease_next_any("embed", worker_id="w") is None
    clock.advance(secs=5)
    assert queue.lease_next_any("embed", worker_id="w").job_id == gated.job_id


def plain_scan(queue, scope, kind, now_us):
    """The definition of lease order: the first pending row, in key order, that is due and wanted."""
    for job in queue.list(scope, state=JobState.PENDING, limit=1000):
        if (job.not_before is None or job.not_before <= now_us) and job.kind.startswith(kind):
            return job.job_id
    return None


@pytest.mark.parametrize("seed", range(4))
def test_the_leased_job_is_the_one_a_plain_scan_finds(queue, clock, seed):
    chance = random.Random(seed)
    held = []
    for _ in range(300):
        clock.advance_us(chance.choice((0, 0, 1, 1_000_000, 5_000_000)))
        action = chance.random()
        if action < 0.4:
            delay_secs = chance.choice((None, None, 1, 5, 30))
            kind = chance.choice("ab")
            queue.enqueue(ACME, kind, priority=chance.randrange(3), delay_secs=delay_secs)
        elif action < 0.75:
            kind = chance.choice("ab")
            expected = plain_scan(queue, ACME, kind, clock())
            lease = queue.lease_next(ACME, kind, worker_id="w", lease_ttl_secs=20)
            assert (lease and lease.job_id) == expected
            held += [lease] if lease else []
        elif held:
            lease = held.pop(chance.randrange(len(held)))
            if queue.get(ACME, lease.job_id).lease_generation == lease.lease_generation:
                chance.choice((queue.release, lambda job: queue.fail(job, "again")))(lease)
        if action > 0.97:
            held = [job for job in held if job.lease_deadline > clock()]
            queue.reap_expired()


def test_the_engine_takes_jobs_from_the_seam(engine):
    engine.enqueue(ACME.key, NewJob("embed", b"", 128, None, None, None), 5)
    lease = engine.lease_next(ACME.key, (("emb", False), ("other", True)), "w", 10, 6)
    assert (lease.created_at, lease.lease_deadline) == (5, 16)
