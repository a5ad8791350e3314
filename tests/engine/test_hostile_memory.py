"""Memory in the place of every argument: read where bytes are asked for and it lies in one piece, else refused."""

from __future__ import annotations

import array

import pytest

from telha_queue.errors import InvalidArgument, InvalidType
from telha_queue.job import JobSpec
from telha_queue.scope import Scope

ACME = Scope.named("acme")


def released():
    view = memoryview(b"data")
    view.release()
    return view


WHOLE = {
    "rows and columns": memoryview(b"data").cast("B", (2, 2)),
    "an array": memoryview(array.array("I", [7])),
    "a single item": memoryview(b"d").cast("B", ()),
    "nothing": memoryview(b""),
}
BROKEN = {"released": released(), "with gaps": memoryview(b"data")[::2], "backwards": memoryview(b"data")[::-1]}
BLOBS = {
    "payload": lambda q, lease, memory: q.enqueue(ACME, "embed", memory),
    "payload of a spec": lambda q, lease, memory: q.enqueue_many(ACME, [JobSpec("embed", memory)], atomic=True)[0],
    "continuation": lambda q, lease, memory: q.checkpoint(lease, memory),
}
OTHERS = {
    "scope": lambda q, lease, memory: q.enqueue(memory, "embed"),
    "key of a scope": lambda q, lease, memory: Scope(memory),
    "name of a scope": lambda q, lease, memory: Scope.named(memory),
    "tenant": lambda q, lease, memory: Scope.tenant(memory),
    "kind": lambda q, lease, memory: q.enqueue(ACME, memory),
    "idempotency key": lambda q, lease, memory: q.enqueue(ACME, "embed", idempotency_key=memory),
    "priority": lambda q, lease, memory: q.enqueue(ACME, "embed", priority=memory),
    "specs": lambda q, lease, memory: q.enqueue_many(ACME, memory),
    "a spec": lambda q, lease, memory: q.enqueue_many(ACME, [memory], atomic=True),
    "kinds": lambda q, lease, memory: q.lease_next(ACME, memory, worker_id="w"),
    "one of the kinds": lambda q, lease, memory: q.lease_next(ACME, [memory], worker_id="w"),
    "worker": lambda q, lease, memory: q.lease_next(ACME, worker_id=memory),
    "how many": lambda q, lease, memory: q.lease_many(ACME, memory, worker_id="w"),
    "lease": lambda q, lease, memory: q.complete(memory),
    "leases to complete": lambda q, lease, memory: q.complete_many(memory),
    "leases to extend": lambda q, lease, memory: q.extend_many(memory),
    "one of the leases": lambda q, lease, memory: q.complete_many([memory]),
    "failures": lambda q, lease, memory: q.fail_many(memory),
    "a failure": lambda q, lease, memory: q.fail_many([memory]),
    "lease of a failure": lambda q, lease, memory: q.fail_many([(memory, "broken")]),
    "error of a failure": lambda q, lease, memory: q.fail_many([(lease, memory)]),
    "error": lambda q, lease, memory: q.fail(lease, memory),
    "detail": lambda q, lease, memory: q.stats(lease, memory),
    "late": lambda q, lease, memory: q.complete(lease, late=memory),
    "job id": lambda q, lease, memory: q.find(memory),
    "state": lambda q, lease, memory: q.list(state=memory),
    "after": lambda q, lease, memory: q.list(after=memory),
}


@pytest.fixture
def lease(queue):
    queue.enqueue(ACME, "embed")
    return queue.lease_next(ACME, worker_id="w")


@pytest.mark.parametrize("what", BLOBS)
def test_memory_in_one_piece_is_stored_as_the_bytes_that_it_has(queue, lease, what):
    for case, memory in WHOLE.items():
        job = BLOBS[what](queue, lease, memory)
        stored = job.continuation if what == "continuation" else job.payload
        assert (type(stored), stored) == (bytes, memory.tobytes()), case


@pytest.mark.parametrize("what", BLOBS)
def test_memory_that_cannot_be_read_as_it_lies_is_refused(queue, lease, refused, what):
    for case, memory in BROKEN.items():
        with refused(queue, InvalidArgument, case=case):
            BLOBS[what](queue, lease, memory)


@pytest.mark.parametrize("what", OTHERS)
def test_memory_where_no_bytes_are_asked_for_is_refused(queue, lease, refused, what):
    for case, memory in {**WHOLE, **BROKEN}.items():
        with refused(queue, InvalidArgument, case=case):
            OTHERS[what](queue, lease, memory)


def test_a_job_among_many_with_memory_that_cannot_be_read_is_refused_alone(queue):
    for memory in BROKEN.values():
        good, bad = queue.enqueue_many(ACME, [JobSpec("embed", b"fine"), JobSpec("embed", memory)])
        assert (good.payload, type(bad)) == (b"fine", InvalidArgument)
    for memory in (*WHOLE.values(), *BROKEN.values()):
        assert type(queue.enqueue_many(ACME, [memory])[0]) is InvalidType
