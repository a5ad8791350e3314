"""Verbs on jobs and rows of the program's own in one write: all or nothing, with the leases checked at the end."""

from __future__ import annotations

from functools import partial
from uuid import UUID

import pytest

from telha_queue.errors import InvalidArgument, InvalidTransition, JobNotFound, LeaseConflict, PayloadTooLarge
from telha_queue.job import JobSpec, JobState
from telha_queue.scope import Scope

ACME = Scope.named("acme")
OTHER = Scope.named("other")


def leased(queue, n=1, **options):
    queue.enqueue_many(ACME, [JobSpec("embed")] * n)
    return queue.lease_many(ACME, n, worker_id="w", **options)


def test_the_result_the_end_of_the_job_and_what_follows_are_one_write(queue, clock):
    [lease] = leased(queue)
    clock.advance(secs=1)
    with queue.transaction() as tx:
        tx.put("vectors", b"doc-7", b"\1\2\3")
        tx.complete(lease)
        tx.enqueue(ACME, "index", b"doc-7", priority=3)
        tx.enqueue(OTHER, "report", delay_secs=5)
    done, index, report = tx.jobs
    assert (done.job_id, done.state) == (lease.job_id, JobState.COMPLETED)
    assert (index.kind, index.payload, index.priority, index.scope) == ("index", b"doc-7", 3, ACME)
    assert (report.scope, report.scope.name, report.not_before) == (OTHER, "other", clock() + 5_000_000)
    assert [queue.find(job.job_id) for job in tx.jobs] == tx.jobs
    assert queue.data("vectors").get(b"doc-7") == b"\1\2\3"
    assert [scope.name for scope in queue.scopes()] == sorted(["acme", "other"], key=lambda name: Scope.named(name).key)
    assert queue.lease_next(ACME, worker_id="w").job_id == index.job_id


def test_one_lost_lease_and_nothing_is_done(queue, refused):
    held, lost = leased(queue, 2)
    queue.release(lost, delay_secs=60)
    with refused(queue, LeaseConflict) as conflict, queue.transaction() as tx:
        tx.complete(held)
        tx.put("vectors", b"k", b"v")
        tx.fail(lost, "too late")
        tx.enqueue(ACME, "next", idempotency_key="k")
    assert conflict.value.job_id == lost.job_id
    assert queue.data("vectors").get(b"k") is None
    assert queue.enqueue(ACME, "free", idempotency_key="k").kind == "free"
    assert queue.complete(held).state == JobState.COMPLETED
    with pytest.raises(InvalidArgument, match="not committed"):
        _ = tx.jobs


def test_every_refusal_is_that_of_the_verb_itself(queue, refused):
    [lease] = leased(queue)
    pending = queue.enqueue(ACME, "pending")
    for scope, job_id in ((ACME, pending.job_id), (OTHER, pending.job_id), (ACME, UUID(int=1))):
        with refused(queue, InvalidTransition, JobNotFound) as alone:
            queue.retry(scope, job_id)
        with refused(queue, InvalidTransition, JobNotFound) as together, queue.transaction() as tx:
            tx.complete(lease)
            tx.retry(scope, job_id)
        assert (type(together.value), str(together.value)) == (type(alone.value), str(alone.value))


def test_verbs_on_one_job_follow_each_other(queue):
    [lease] = leased(queue)
    with queue.transaction() as tx:
        tx.checkpoint(lease, b"page 7")
        tx.fail(lease, "hopeless", retryable=False)
        tx.retry(ACME, lease.job_id)
    assert [job.state for job in tx.jobs] == [JobState.LEASED, JobState.DEAD, JobState.PENDING]
    assert tx.jobs[0].continuation == b"page 7"
    assert queue.get(ACME, lease.job_id) == tx.jobs[2]
    assert queue.lease_next(ACME, worker_id="v").lease_generation == 2


def test_a_job_that_ends_in_it_is_ended_for_what_follows_in_it(queue, refused):
    [lease] = leased(queue)
    with refused(queue, LeaseConflict), queue.transaction() as tx:
        tx.release(lease)
        tx.complete(lease)
    assert queue.get(ACME, lease.job_id) == lease


def test_an_exception_inside_drops_it(queue, refused):
    [lease] = leased(queue)
    with refused(queue, ZeroDivisionError), queue.transaction() as tx:
        tx.complete(lease)
        tx.put("vectors", b"k", b"v")
        _ = 1 / 0
    assert queue.data("vectors").scan() == []


def test_a_key_that_is_taken_yields_the_job_that_has_it_as_it_is_afterwards(queue):
    first = queue.enqueue(ACME, "embed", idempotency_key="k")
    lease = queue.lease_next(ACME, worker_id="w")
    with queue.transaction() as tx:
        tx.enqueue(ACME, "again", idempotency_key="k")
        tx.enqueue(ACME, "new", idempotency_key="n")
        tx.enqueue(ACME, "newer", idempotency_key="n")
        tx.enqueue(OTHER, "elsewhere", idempotency_key="k")
        tx.complete(lease)
    again, new, newer, elsewhere, done = tx.jobs
    assert again == done == queue.get(ACME, first.job_id)
    assert (new, new.kind) == (newer, "new")
    assert elsewhere.kind == "elsewhere"
    assert sum(queue.counts().values()) == 3


def test_nothing_gathered_is_nothing_done(queue):
    with queue.transaction() as tx:
        pass
    assert tx.jobs == []
    assert sum(queue.counts().values()) == 0


def test_it_is_used_once_and_inside_of_its_block(queue):
    tx = queue.transaction()
    with pytest.raises(InvalidArgument, match="inside"):
        tx.enqueue(ACME, "x")
    with tx:
        tx.enqueue(ACME, "x")
        with pytest.raises(InvalidArgument, match="once"), tx:
            pass
    for late in (lambda: tx.put("f", b"k", b"v"), lambda: tx.delete("f", b"k"), lambda: tx.enqueue(ACME, "y")):
        with pytest.raises(InvalidArgument, match="inside"):
            late()
    with pytest.raises(InvalidArgument, match="once"), tx:
        pass
    assert sum(queue.counts().values()) == 1


def test_it_has_bounds(make_queue):
    queue = make_queue(max_payload_bytes=10 << 20)
    with queue.transaction() as tx:
        tx.enqueue_many(ACME, [JobSpec("x")] * 999)
        tx.enqueue(ACME, "x")
        with pytest.raises(InvalidArgument, match="1000 verbs"):
            tx.retry(ACME, UUID(int=1))
        for n in range(1000):
            tx.put("f", n.to_bytes(2), b"")
        with pytest.raises(InvalidArgument, match="1000 rows"):
            tx.delete("f", b"k")
    assert len(tx.jobs) == 1000
    with queue.transaction() as tx:
        tx.put("f", b"k", bytes(10 << 20))
        with pytest.raises(PayloadTooLarge, match="the transaction"):
            tx.enqueue(ACME, "x", bytes(7 << 20))
    assert len(queue.data("f").get(b"k")) == 10 << 20


@pytest.mark.parametrize(
    "wrong",
    [
        lambda tx, lease: tx.complete("lease"),
        lambda tx, lease: tx.complete(lease, late="maybe"),
        lambda tx, lease: tx.fail(lease, 7),
        lambda tx, lease: tx.release(lease, delay_secs=-1),
        lambda tx, lease: tx.checkpoint(lease, "text"),
        lambda tx, lease: tx.enqueue(ACME, ""),
        lambda tx, lease: tx.enqueue("acme", "x"),
        lambda tx, lease: tx.enqueue_many(ACME, [JobSpec("x"), JobSpec("")]),
        lambda tx, lease: tx.put("", b"k", b"v"),
        lambda tx, lease: tx.put("f", b"", b"v"),
        lambda tx, lease: tx.put("f", b"k" * 1025, b"v"),
        lambda tx, lease: tx.put("f", b"k", None),
        lambda tx, lease: tx.put("f" * 65, b"k", b"v"),
        lambda tx, lease: tx.delete("f", "k"),
        lambda tx, lease: tx.retry(ACME, "id"),
    ],
)
def test_a_bad_argument_is_refused_where_it_is_given_and_the_rest_stands(queue, wrong):
    [lease] = leased(queue)
    with queue.transaction() as tx:
        with pytest.raises(InvalidArgument):
            wrong(tx, lease)
        tx.complete(lease)
    assert [job.state for job in tx.jobs] == [JobState.COMPLETED]


def test_of_two_that_finish_one_job_one_wins_and_the_other_leaves_nothing(queue, together):
    def finish(lease, n, name):
        try:
            with queue.transaction() as tx:
                tx.complete(lease)
                tx.enqueue(ACME, f"after:{name}", priority=255)
                tx.put("winner", n.to_bytes(2), name)
        except LeaseConflict:
            return None
        return name

    for n in range(30):
        [lease] = leased(queue)
        winners = list(filter(None, together(partial(finish, lease, n, b"a"), partial(finish, lease, n, b"b"))))
        assert queue.data("winner").get(n.to_bytes(2)) == winners[0]
        assert len(winners) == 1
    assert queue.counts()[JobState.PENDING] == queue.counts()[JobState.COMPLETED] == 30


def test_two_that_want_the_same_jobs_in_other_ways_do_not_wait_for_each_other(queue, together):
    first, second = (queue.enqueue(ACME, "x", idempotency_key=key) for key in "ab")
    leases = {lease.job_id: lease for lease in queue.lease_many(ACME, 2, worker_id="w")}

    def work(job, other_key):
        for _ in range(200):
            with queue.transaction() as tx:
                tx.checkpoint(leases[job.job_id], b"here")
                tx.enqueue(ACME, "again", idempotency_key=other_key)
        return tx.jobs[1].job_id

    found = together(partial(work, first, "b"), partial(work, second, "a"))
    assert found == [second.job_id, first.job_id]


@pytest.mark.parametrize("size", [0, 1, 4096, 4097])
def test_a_result_is_kept_with_the_completion_or_not_at_all(queue, refused, size):
    lease, lost = leased(queue, 2)
    queue.cancel(ACME, lost.job_id)
    with refused(queue, LeaseConflict), queue.transaction() as tx:
        tx.complete(lease, result=bytes(size))
        tx.complete(lost)
    with queue.transaction() as tx:
        tx.complete(lease, result=bytes(size))
    assert tx.jobs[0].result == queue.get(ACME, lease.job_id).result == bytes(size)
    assert queue.fsck().is_clean


def test_a_cancelled_job_and_what_takes_its_place_are_one_write(queue):
    [lease] = leased(queue)
    with queue.transaction() as tx:
        tx.cancel(ACME, lease.job_id, "a typo")
        tx.enqueue(ACME, "embed", b"right")
    assert [job.state for job in tx.jobs] == [JobState.DEAD, JobState.PENDING]
    assert tx.jobs[0].events[-1].detail == "a typo"
    with pytest.raises(LeaseConflict):
        queue.complete(lease)


def test_what_is_refused_where_it_is_given_takes_no_room(queue):
    [lease] = leased(queue)
    with queue.transaction() as tx:
        for _ in range(20):
            with pytest.raises(InvalidArgument):
                tx.complete("no lease", result=bytes(1 << 20))
        tx.complete(lease, result=bytes(1 << 20))
    assert tx.jobs[0].result_bytes == 1 << 20
