"""Fixtures of the tests of keepers: a queue on each kind of time, and waiting that turns the clock."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from telha_queue.job import JobSpec
from telha_queue.queue import Queue
from telha_queue.scope import Scope
from telha_queue.testing import ManualClock

sys.path.append(str(Path(__file__).parent))  # lets the tests of this folder share their helpers, as in tests/rocks/

ACME = Scope.named("acme")
PATIENCE_SECS = 20


class Turned:
    """Time is a clock that is turned a little whenever somebody waits."""

    ttl_secs = 300.0

    def __init__(self):
        self.clock = ManualClock()

    def turn(self):
        self.clock.advance(secs=self.ttl_secs / 20)


class Passing:
    """Time passes by itself."""

    ttl_secs = 0.15
    clock = None

    def turn(self):
        pass


TIMES = {"turned": Turned, "passing": Passing}


@pytest.fixture(params=TIMES)
def passing(request):
    """How time goes by."""
    return TIMES[request.param]()


@pytest.fixture
def kept_queue(engine, passing):
    """On each engine, with the keeper that it has for a clock of the test and for the system's."""
    with Queue(engine, None, passing.clock) as queue:
        yield queue


@pytest.fixture
def keeper(kept_queue):
    """The keeper under test."""
    return kept_queue.keeper()


@pytest.fixture
def take(kept_queue, passing):
    """take(n): lease n new jobs."""

    def lease(n):
        kept_queue.enqueue_many(ACME, [JobSpec("embed")] * n)
        return kept_queue.lease_many(ACME, n, worker_id="w", lease_ttl_secs=passing.ttl_secs)

    return lease


@pytest.fixture
def until(passing):
    """until(condition): turn the clock, or let time pass, until it is true; returns what it then is."""

    def wait(condition):
        for _ in range(PATIENCE_SECS * 500):
            if value := condition():
                return value
            passing.turn()
            threading.Event().wait(0.002)
        return pytest.fail("it never came to be")

    return wait


@pytest.fixture
def found(keeper, until):
    """found(n): the next n holds that the keeper gives up."""

    def wait(n):
        holds = []
        until(lambda: holds.extend(keeper.wait(0)) or len(holds) >= n)
        return holds

    return wait


@pytest.fixture
def renewals(kept_queue):
    """renewals(lease): how often it was renewed."""
    return lambda lease: sum(
        event.count for event in kept_queue.find(lease.job_id).events if event.transition == "extended"
    )
