"""Headers: what travels with a job and is none of the queue's business, such as a trace context."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from telha_queue.errors import InvalidArgument
from telha_queue.job import JobSpec
from telha_queue.scope import Scope

ACME = Scope.named("acme")
TRACE = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tenant": "Zoë", "empty": ""}


class Odd(Mapping):
    """A mapping of its own making, without an end."""

    def __getitem__(self, key):
        return "x"

    def __iter__(self):
        return iter([])

    def __len__(self):
        return 1

    def items(self):
        return ((f"k{n}", "x") for n in range(10**9))


@pytest.mark.parametrize("headers", [TRACE, {f"k{n}": "x" * 60 for n in range(16)}, {"k": "x" * 1023}])
def test_they_are_read_as_they_were_given_and_in_that_order(queue, headers):
    for job in (
        queue.enqueue(ACME, "embed", headers=headers),
        queue.enqueue_many(ACME, [JobSpec("embed"), JobSpec("embed", headers=headers)])[1],
    ):
        assert list(queue.get(ACME, job.job_id).headers.items()) == list(job.headers.items()) == list(headers.items())


@pytest.mark.parametrize("none", [None, {}])
def test_a_job_without_any_has_an_empty_mapping(queue, none):
    assert queue.enqueue(ACME, "embed", headers=none).headers == {}
    assert queue.enqueue(ACME, "embed").value[1:4] == queue.enqueue(ACME, "embed", headers=none).value[1:4]


def test_they_survive_every_transition(queue, clock):
    queue.enqueue(ACME, "embed", headers=TRACE)

    def lease():
        clock.advance(secs=3600)
        return queue.lease_next(ACME, worker_id="w", lease_ttl_secs=1)

    def reaped():
        held = lease()
        clock.advance(secs=1)
        queue.reap_expired()
        return queue.find(held.job_id)

    held = lease()
    seen = [held, queue.extend(held), queue.checkpoint(held, b"half"), queue.stats(held, "line"), queue.release(held)]
    seen += [queue.fail(lease(), "boom"), reaped(), queue.fail(lease(), "boom", retryable=False)]
    seen += [queue.retry(ACME, held.job_id), queue.complete(lease())]
    assert [dict(job.headers) for job in seen] == [TRACE] * len(seen)


def test_they_survive_a_restart(queue, reopen):
    job = queue.enqueue(ACME, "embed", headers=TRACE)
    assert reopen(queue).find(job.job_id).headers == TRACE


def test_they_cannot_be_changed(queue):
    given = dict(TRACE)
    job = queue.enqueue(ACME, "embed", headers=given)
    given["more"] = "later"
    assert job.headers == TRACE
    with pytest.raises(TypeError):
        job.headers["more"] = "later"


def test_a_taken_key_brings_the_headers_of_the_job_that_has_it(queue):
    queue.enqueue(ACME, "embed", idempotency_key="k", headers={"a": "first"})
    assert queue.enqueue(ACME, "embed", idempotency_key="k", headers={"a": "second"}).headers == {"a": "first"}


@pytest.mark.parametrize(
    "bad",
    [
        "a=b",
        [("a", "b")],
        7,
        {"": "x"},
        {"a\n": "x"},
        {"a": "x\0"},
        {"a": "\ud800"},
        {"a": b"x"},
        {"a": None},
        {b"a": "x"},
        {1: "x"},
        {f"k{n}": "x" for n in range(17)},
        {"k": "x" * 1024},
        {"k": "ä" * 512},
        Odd(),
    ],
    ids=lambda bad: ascii(bad)[:30],
)
def test_what_is_no_small_mapping_of_printable_texts_is_refused(queue, refused, bad):
    with refused(queue, InvalidArgument) as caught:
        queue.enqueue(ACME, "embed", headers=bad)
    assert len(str(caught.value)) < 300
    with refused(queue, InvalidArgument):
        queue.enqueue_many(ACME, [JobSpec("embed", headers=bad)], atomic=True)
