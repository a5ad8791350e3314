"""Contention at a small scale; and the checker of histories finds what is wrong in one that was spoiled."""

from __future__ import annotations

from random import Random

import pytest

from tests.torture import race_contention, runner
from tests.torture.protocol import Request
from tests.torture.race_checker import Checker
from tests.torture.race_history import Refused, Seen
from tests.torture.race_load import RULES


def test_histories_of_threads_at_work_can_be_explained():
    runner.check(race_contention.HARNESS)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    request = Request("ci", 600, runner.new_seed(), tmp_path_factory.mktemp("contention"))
    played = race_contention.play(request, 0, 5, 600)
    assert played.faults == []
    return played


def number_of(history, verb, kind=Seen):
    found = [n for n, entry in enumerate(history) if entry.verb == verb and isinstance(entry.told, kind)]
    return found[-1] if found else None


def without_the_lease(history):
    return history[: number_of(history, "lease")] + history[number_of(history, "lease") + 1 :]


def completed_twice(history):
    n = number_of(history, "complete")
    return None if n is None else [*history[: n + 1], history[n]._replace(worker="another"), *history[n + 1 :]]


def completed_before_it_was_leased(history):
    n, lease = number_of(history, "complete"), history[number_of(history, "lease")]
    if n is None:
        return None
    moved = history[n]._replace(start=lease.start - 0.2, end=lease.start - 0.1)
    return sorted([*history[:n], moved, *history[n + 1 :]])


def a_generation_leapt(history):
    n = number_of(history, "lease")
    told = history[n].told
    return [*history[:n], history[n]._replace(told=told._replace(generation=told.generation + 1)), *history[n + 1 :]]


def the_holder_was_refused(history):
    n = number_of(history, "extend")
    if n is None:
        return None
    refusal = Refused(history[n].told.state, history[n].generation)
    return [*history[:n], history[n]._replace(told=refusal), *history[n + 1 :]]


def a_stale_call_was_accepted(history):
    n = number_of(history, "extend", Refused)
    if n is None:
        return None
    last = history[-1].told._replace(state=1, worker=history[n].worker)
    return [*history[:n], history[n]._replace(told=last), *history[n + 1 :]]


def an_attempt_was_not_counted(history):
    n = number_of(history, "fail")
    if n is None:
        return None
    told = history[n].told
    return [*history[:n], history[n]._replace(told=told._replace(attempts=told.attempts - 1)), *history[n + 1 :]]


SPOILED = [
    without_the_lease,
    completed_twice,
    completed_before_it_was_leased,
    a_generation_leapt,
    the_holder_was_refused,
    a_stale_call_was_accepted,
    an_attempt_was_not_counted,
]


@pytest.mark.parametrize("spoil", SPOILED, ids=lambda spoil: spoil.__name__)
def test_a_spoiled_history_has_no_explanation(played, spoil):
    checker = Checker(RULES, played.passes)
    histories = list(played.histories.values())
    Random(1).shuffle(histories)
    spoiled = [bad for bad in map(spoil, histories) if bad is not None][:50]
    assert spoiled
    for history in spoiled:
        assert checker.fault(history) is not None, "\n".join(entry.shown() for entry in history)


def test_a_job_that_was_reaped_has_no_explanation_without_a_reaper(played):
    checker = Checker(RULES, [])
    crashed = [each for each in played.histories.values() if any(getattr(e.told, "crashes", 0) for e in each)]
    assert crashed
    assert all(checker.fault(history) for history in crashed)
