"""What an error means: types first, the most special one, then texts, and a choice for the rest."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

from telha_queue import QueueConfig, Scope
from telha_queue.errors import ConfigError, LeaseConflict, StorageError
from telha_queue.testing import memory_queue
from telha_queue.worker import ErrorRules, Job, Released, Retry, Worker, task
from telha_queue.worker.verdict import MAX_ERROR_CHARACTERS, Failed, outcome_of

ACME = Scope.named("acme")
STRICT = ErrorRules(unknown="dead")


class Throttled(Exception):
    pass


class Invalid(ValueError):
    pass


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError(),
        BrokenPipeError(),
        TimeoutError(),
        StorageError("busy"),
        Exception("Read or write conflict"),
        Exception("this transaction can be retried"),
        Exception("Service Temporarily Unavailable"),
        Exception("request timed out"),
        Exception("429 Too Many Requests"),
        Exception("rate limit exceeded"),
        Exception("Connection reset by peer"),
    ],
    ids=repr,
)
def test_what_passes_is_tried_again_though_the_rest_is_not(error):
    assert STRICT.passes(error)
    assert ErrorRules().passes(error)


def test_the_unknown_is_a_choice():
    assert ErrorRules().passes(KeyError("x"))
    assert not STRICT.passes(KeyError("x"))
    assert not STRICT.passes(Throttled("slow down"))


def test_the_table_is_extended_and_the_most_special_type_counts():
    rules = STRICT.extended(permanent=(ValueError, PermissionError), transient=(Throttled,), transient_texts=("Slow",))
    assert rules.passes(Throttled())
    assert rules.passes(KeyError("slow down"))
    assert not rules.passes(Invalid("timeout"))
    assert rules.extended(transient=(Invalid,)).passes(Invalid())
    assert not rules.extended(transient=(Invalid,)).passes(ValueError())
    assert not rules.passes(PermissionError())


@pytest.mark.parametrize("secs", [-1, float("nan"), float("inf"), "x", 1e300, True, Decimal(5)], ids=repr)
@pytest.mark.parametrize("kind", [Retry, Released])
def test_a_delay_that_is_none_is_refused_where_it_is_given(kind, secs):
    with pytest.raises(ValueError, match="delay_secs"):
        kind(delay_secs=secs)


def test_a_lost_lease_in_a_handler_passes():
    from uuid import UUID

    assert STRICT.passes(LeaseConflict(UUID(int=1), held=2, presented=1, state=1))


@pytest.mark.parametrize("wrong", [{"unknown": "maybe"}, {"permanent": ("ValueError",)}, {"transient": (7,)}], ids=str)
def test_rules_that_are_none_are_refused(wrong):
    with pytest.raises(ConfigError):
        ErrorRules(**wrong)


def deep(n: int) -> None:
    if n:
        deep(n - 1)
    else:
        raise ValueError("ö" * 10_000)


@pytest.mark.parametrize(
    "raises", [lambda: deep(200), lambda: (_ for _ in ()).throw(Unspeakable)], ids=["deep", "mute"]
)
def test_the_text_of_an_error_is_bounded_and_never_missing(raises):
    with pytest.raises(Exception) as caught:
        raises()
    outcome = outcome_of(caught.value, ErrorRules())
    assert isinstance(outcome, Failed)
    assert type(caught.value).__name__ in outcome.error.splitlines()[0]
    assert len(outcome.error) <= MAX_ERROR_CHARACTERS


def test_jitter_spreads_what_failed_together_over_its_share_of_the_backoff(until):
    """A thousand jobs that fail at once come back over the whole of backoff to 1.5 times backoff."""
    queue = memory_queue(QueueConfig(backoff_base_secs=100))

    @task("x")
    def x(job: Job) -> None:
        raise ValueError

    queue.enqueue_many(ACME, [x.spec()] * 1000)
    before_us = queue.now_us()
    with Worker(queue, tasks=[x], jitter=0.5) as worker:
        until(lambda: worker.counters.total("failed") == 1000)
    took_us = queue.now_us() - before_us
    gates = sorted(job.not_before - before_us for job in queue.list(limit=1000))
    assert gates[0] >= 100_000_000
    assert gates[-1] <= 150_000_000 + took_us
    tenths = [sum(100e6 + n * 5e6 <= gate < 105e6 + n * 5e6 + took_us for gate in gates) for n in range(10)]
    assert min(tenths) > 30
    random.seed(1)  # whoever seeds the module's generator for a test gets the same backoffs twice; the worker does not
    with Worker(queue, tasks=[x], jitter=0.5) as first, Worker(queue, tasks=[x], jitter=0.5) as second:
        assert first._crew._chance.random() != second._crew._chance.random()
