"""What a newcomer gets wrong is answered by what to write instead."""

from __future__ import annotations

import datetime
from uuid import UUID

import pytest

from telha_queue.errors import InvalidArgument, InvalidScope, InvalidType, LeaseConflict, PayloadTooLarge
from telha_queue.job import JobSpec, JobState
from telha_queue.queue import Queue
from telha_queue.scope import Scope
from telha_queue.testing import START_US, ManualClock

ACME = Scope.named("acme")
NOW = datetime.datetime(2025, 6, 15, tzinfo=datetime.UTC)
UNITS = "not_before is microseconds since the epoch; {} looks like seconds or milliseconds; or use delay_secs"

MESSAGES = {
    "seconds": (
        lambda q, _: q.enqueue(ACME, "k", not_before=START_US // 10**6),
        InvalidArgument,
        UNITS.format(START_US // 10**6),
    ),
    "milliseconds": (
        lambda q, _: q.enqueue(ACME, "k", not_before=START_US // 1000),
        InvalidArgument,
        UNITS.format(START_US // 1000),
    ),
    "datetime": (
        lambda q, _: q.enqueue(ACME, "k", not_before=NOW),
        InvalidType,
        "not_before is an int of microseconds since the epoch, not datetime; or use delay_secs",
    ),
    "text for bytes": (
        lambda q, _: q.enqueue(ACME, "k", "text"),
        InvalidType,
        "payload is bytes-like, not str; encode it",
    ),
    "text for a scope": (
        lambda q, _: q.enqueue("acme", "k"),
        InvalidScope,
        "a scope is a telha_queue.Scope, such as Scope.named('acme'), not str",
    ),
    "the class itself": (
        lambda q, _: Scope("acme"),
        InvalidScope,
        "a scope key is 32 bytes, not str; use Scope.named or Scope.tenant",
    ),
    "text for a tenant": (
        lambda q, _: Scope.tenant("acme"),
        InvalidScope,
        "tenant_id and space_id are uuid.UUID values, not str",
    ),
    "text for a space": (
        lambda q, _: Scope.tenant(UUID(int=1), "space"),
        InvalidScope,
        "tenant_id and space_id are uuid.UUID values, not str",
    ),
    "a number for kinds": (
        lambda q, _: q.lease_next(ACME, 5, worker_id="w"),
        InvalidType,
        "kinds is a str or an iterable of str, not int",
    ),
    "bytes for kinds": (
        lambda q, _: q.lease_next(ACME, b"k", worker_id="w"),
        InvalidType,
        "kinds is a str or an iterable of str, not bytes",
    ),
    "one spec": (
        lambda q, _: q.enqueue_many(ACME, JobSpec("k")),
        InvalidType,
        "jobs is a list of JobSpec, not one of them",
    ),
    "one lease": (lambda q, lease: q.complete_many(lease), InvalidType, "leases is a list of leases, not one of them"),
    "a bad spec": (
        lambda q, _: q.enqueue_many(ACME, [JobSpec("k"), JobSpec("k", priority=256)], atomic=True),
        InvalidArgument,
        "job 1: priority is from 0 to 255, not 256",
    ),
    "no spec": (
        lambda q, _: q.enqueue_many(ACME, [JobSpec("k"), "k"], atomic=True),
        InvalidType,
        "job 1: a job to enqueue is a JobSpec, not str",
    ),
    "a bad lease": (
        lambda q, lease: q.complete_many([lease, None]),
        InvalidType,
        "lease 1: a lease is a JobRecord or a Lease, not NoneType",
    ),
    "an exception": (
        lambda q, lease: q.fail(lease, ValueError("x")),
        InvalidType,
        "error is a str, not ValueError: use str(error)",
    ),
    "text for a state": (
        lambda q, _: q.list(state="dead"),
        InvalidType,
        "state is a JobState, not str: use JobState.DEAD",
    ),
    "no state at all": (lambda q, _: q.list(state="gone"), InvalidType, "state is a JobState, not str"),
}


@pytest.fixture
def lease(queue):
    queue.enqueue(ACME, "embed")
    return queue.lease_next(ACME, worker_id="w")


@pytest.mark.parametrize("what", MESSAGES)
def test_the_message_says_what_to_write(queue, lease, refused, what):
    call, error, text = MESSAGES[what]
    with refused(queue, error) as caught:
        call(queue, lease)
    assert (type(caught.value), str(caught.value)) == (error, text)


def test_the_index_of_a_bad_job_leaves_the_facts_of_its_error(queue, lease, refused):
    with refused(queue, PayloadTooLarge) as caught:
        queue.enqueue_many(ACME, [JobSpec("k"), JobSpec("k", bytes(2**20 + 1))], atomic=True)
    assert str(caught.value).startswith("job 1: payload is 1048577 bytes")
    assert caught.value.size_bytes == 2**20 + 1


def test_small_gates_are_times_to_a_clock_that_is_as_small(engine):
    queue = Queue(engine, None, ManualClock(1000))
    assert queue.enqueue(ACME, "embed", not_before=2000).not_before == 2000
    assert queue.enqueue(ACME, "embed", not_before=0).kind == "embed"


def test_a_gate_of_zero_or_of_long_ago_is_open(queue):
    for not_before in (0, 10**14, START_US - 10**15):
        queue.enqueue(ACME, "embed", not_before=not_before)
        assert queue.lease_next(ACME, worker_id="w") is not None


@pytest.mark.parametrize(
    ("end", "state"),
    [
        (lambda queue, lease: queue.complete(lease), "completed"),
        (lambda queue, lease: queue.release(lease), "pending"),
        (lambda queue, lease: queue.fail(lease, "error", retryable=False), "dead"),
    ],
)
def test_a_conflict_says_what_became_of_the_job(queue, lease, refused, end, state):
    end(queue, lease)
    with refused(queue, LeaseConflict, case=state) as caught:
        queue.complete(lease)
    assert str(caught.value) == f"job {lease.job_id}: lease generation 1 has ended: the job is {state}"


def test_a_state_reads_as_its_name_and_counts_as_its_number():
    assert [str(state) for state in JobState] == ["pending", "leased", "completed", "failed", "dead"]
    assert (f"{JobState.DEAD}", f"{JobState.DEAD:d}", int(JobState.DEAD)) == ("dead", "4", 4)
