"""The short way through the checks: what it takes is what telha_queue/arguments.py would have made of it."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telha_queue import _seam, arguments, many
from telha_queue.errors import InvalidArgument
from telha_queue.job import JobSpec, Lease
from telha_queue.scope import Scope
from telha_queue.testing import START_US, memory_queue

ACME = Scope.named("acme")
LIMIT = 1000


class Name(str):
    """A str that is none, exactly."""


class Number(int):
    """An int that is none, exactly."""


TEXTS = st.one_of(
    st.text(max_size=140),
    st.text(st.characters(min_codepoint=0x1F, max_codepoint=0x80), max_size=20),
    st.sampled_from(["", "k" * 128, "k" * 129, "k" * 255, "k" * 256, "\x7f", "a\x1f", "naïve", "\ud800", Name("kind")]),
    st.sampled_from([None, 5, b"kind"]),
)
PAYLOADS = st.one_of(
    st.binary(max_size=20), st.sampled_from([bytes(LIMIT), bytes(LIMIT + 1), bytearray(b"x"), "text", None])
)
NUMBERS = st.one_of(
    st.none(), st.integers(), st.integers(-1, 256), st.sampled_from([True, 1.0, "1", Number(3), 2**32 - 1, 2**32])
)
HEADERS = st.one_of(
    st.none(), st.none(), st.dictionaries(TEXTS, TEXTS, max_size=2), st.sampled_from([{}, "a", {"k": "x" * 1024}])
)
SPECS = st.builds(
    JobSpec,
    *(TEXTS, PAYLOADS, NUMBERS, NUMBERS, st.sampled_from([None, 1, 0.5, "x"]), TEXTS, NUMBERS, HEADERS),
    *(st.sampled_from([None, None, START_US + 5, START_US, 1.5]), st.sampled_from([None, None, 1, 0.5, 0, "x"])),
)


def told(call):
    """What a call returns, as values, or the error that it raises."""
    try:
        result = call()
    except InvalidArgument as error:
        return type(error), str(error)
    return [values(each) for each in result] if isinstance(result, list) else values(result)


def values(result):
    if isinstance(result, InvalidArgument):
        return type(result), str(result)
    names = ("kind", "payload", "priority", "not_before", "idempotency_key", "max_attempts", "headers", "expires_at")
    if isinstance(result, _seam.Token):
        names = ("scope", "job_id", "worker_id", "lease_generation")
    if isinstance(result, (_seam.Token, _seam.NewJob)):
        return [(type(getattr(result, name)), getattr(result, name)) for name in names]
    return type(result), result


@given(SPECS)
def test_a_new_job(spec):
    assert told(lambda: _seam.new_job(*spec, LIMIT, START_US)) == told(
        lambda: arguments.new_job(*spec, LIMIT, START_US)
    )


@given(st.lists(st.one_of(SPECS, st.builds(JobSpec, st.just("kind")), st.none()), max_size=5), st.booleans())
def test_new_jobs(specs, atomic):
    for given_as in (specs, tuple(specs)):
        assert told(lambda given_as=given_as: _seam.new_jobs(given_as, LIMIT, START_US, atomic)) == told(
            lambda: many.new_jobs(specs, LIMIT, START_US, atomic)
        )


def test_batches_that_are_too_large_and_such_as_end_once():
    specs = [JobSpec("kind", bytes(LIMIT))] * 1001
    for few in (specs, iter(specs), None, "text", specs[0]):
        with pytest.raises(InvalidArgument):
            _seam.new_jobs(few, LIMIT, START_US, False)
    assert len(_seam.new_jobs(iter(specs[:5]), LIMIT, START_US, False)) == 5
    with pytest.raises(InvalidArgument, match="16777217"):
        _seam.new_jobs([JobSpec("kind", bytes(2**24)), JobSpec("kind", b"x")], 2**24, START_US, False)


@given(TEXTS)
def test_a_worker(worker_id):
    assert told(lambda: _seam.worker(worker_id)) == told(lambda: arguments.worker(worker_id))


@pytest.mark.parametrize("scope", [ACME, Scope.SYSTEM, "acme", None, ACME.key], ids=repr)
def test_a_scope(scope):
    assert told(lambda: _seam.scope_key(scope)) == told(lambda: arguments.scope_key(scope))


def leases():
    queue = memory_queue()
    pending = queue.enqueue(ACME, "x")
    queue.enqueue(Scope.SYSTEM, "x")
    held = [queue.lease_next_any(worker_id=worker_id) for worker_id in ("w", "Zoë")]
    return [
        *held, pending, queue.complete(held[0]), Lease(ACME, held[1].job_id, "w", 2**64 - 1), None, 5, "lease",
        Lease(ACME, held[1].job_id, "w", -1), Lease("acme", held[1].job_id, "w", 1), Lease(ACME, UUID(int=0), "", 1),
    ]  # fmt: skip


@pytest.mark.parametrize("lease", leases(), ids=repr)
def test_a_token(lease):
    assert told(lambda: _seam.token(lease)) == told(lambda: arguments.token(lease))
    assert told(lambda: _seam.tokens([lease])) == told(lambda: many.tokens([lease]))


def test_tokens():
    held = leases()[:2]
    for given_as in (held, tuple(held), iter(held)):
        assert told(lambda given_as=given_as: _seam.tokens(given_as)) == told(lambda: many.tokens(held))
    for bad in (held * 501, held[0], None, 5):
        assert told(lambda bad=bad: _seam.tokens(bad)) == told(lambda bad=bad: many.tokens(bad))
