"""Values that were made without being given what they consist of: refused wherever they are taken."""

from __future__ import annotations

import copy

import pytest

from telha_queue.errors import InvalidArgument, InvalidScope, InvalidType
from telha_queue.job import Exact, JobRecord, JobSpec, Lease
from telha_queue.scope import Scope

ACME = Scope.named("acme")

SCOPED = {
    "enqueue": lambda q, scope: q.enqueue(scope, "embed"),
    "enqueue_many": lambda q, scope: q.enqueue_many(scope, [JobSpec("embed")]),
    "lease_next": lambda q, scope: q.lease_next(scope, worker_id="w"),
    "lease_many": lambda q, scope: q.lease_many(scope, 1, worker_id="w"),
    "retry": lambda q, scope: q.retry(scope, q.list()[0].job_id),
    "get": lambda q, scope: q.get(scope, q.list()[0].job_id),
    "list": lambda q, scope: q.list(scope),
    "counts": lambda q, scope: q.counts(scope),
    "complete": lambda q, scope: q.complete(Lease(scope, q.list()[0].job_id, "w", 1)),
}
LEASED = {
    "complete": lambda q, lease: q.complete(lease),
    "complete_many": lambda q, lease: q.complete_many([lease]),
    "complete_and_lease": lambda q, lease: q.complete_and_lease(lease),
    "extend": lambda q, lease: q.extend(lease),
    "extend_many": lambda q, lease: q.extend_many([lease]),
    "checkpoint": lambda q, lease: q.checkpoint(lease, b"page 1"),
    "stats": lambda q, lease: q.stats(lease, "line"),
    "fail": lambda q, lease: q.fail(lease, "broken"),
    "fail_many": lambda q, lease: q.fail_many([(lease, "broken")]),
    "release": lambda q, lease: q.release(lease),
}


def test_a_scope_is_made_with_its_key_or_not_at_all():
    with pytest.raises(TypeError):
        Scope.__new__(Scope)
    with pytest.raises(InvalidScope):
        Scope.__new__(Scope, b"short")
    for copied in (copy.copy(ACME), copy.deepcopy(ACME)):
        assert (copied.key, copied.name) == (ACME.key, "acme")


def test_a_scope_that_is_made_cannot_be_made_again():
    before = ACME.key
    ACME.__init__(bytes(32))
    assert (ACME.key, ACME.name) == (before, "acme")


@pytest.mark.parametrize("verb", SCOPED)
def test_a_scope_without_a_key_is_refused(queue, refused, verb):
    queue.enqueue(ACME, "embed")
    with refused(queue, InvalidScope):
        SCOPED[verb](queue, object.__new__(Scope))


def test_a_scope_without_a_key_has_no_attribute_that_a_scope_has_not():
    half_made = object.__new__(Scope)
    for ask in (str, repr, hash, lambda scope: scope == ACME, lambda scope: scope.name):
        with pytest.raises(InvalidScope):
            ask(half_made)
    for scope in (ACME, half_made):
        with pytest.raises(AttributeError, match="colour"):
            scope.colour  # noqa: B018


@pytest.mark.parametrize("verb", LEASED)
def test_a_lease_without_all_of_its_fields_is_refused(queue, refused, verb):
    queue.enqueue(ACME, "embed")
    lease = Lease(ACME, queue.lease_next(ACME, worker_id="w").job_id, "w", 1)
    for half_made in (tuple.__new__(Lease), tuple.__new__(Lease, lease[:3]), tuple.__new__(Lease, (*lease, 5))):
        with refused(queue, InvalidType, case=len(half_made)):
            LEASED[verb](queue, half_made)
    with refused(queue, InvalidType, case="a record"):
        LEASED[verb](queue, JobRecord.__new__(JobRecord))


def test_a_spec_without_all_of_its_fields_is_refused(queue, refused):
    for fields in ((), ("embed",), (*JobSpec("embed"), 5)):
        half_made = tuple.__new__(JobSpec, fields)
        with refused(queue, InvalidType, case=fields):
            queue.enqueue_many(ACME, [half_made], atomic=True)
        assert type(queue.enqueue_many(ACME, [half_made])[0]) is InvalidType


def test_a_filter_without_a_kind_is_refused(queue, refused):
    with refused(queue, InvalidArgument):
        queue.lease_next(ACME, Exact.__new__(Exact), worker_id="w")


def test_a_record_that_comes_from_no_queue_is_refused_as_a_page(queue, refused):
    with refused(queue, InvalidType):
        queue.list(after=JobRecord.__new__(JobRecord))
