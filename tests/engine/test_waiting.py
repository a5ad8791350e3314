"""Waiting without leasing, for the loops of workers: take a ticket, look, and sleep until another look is worth it."""

from __future__ import annotations

import threading
import time

import pytest
from watched import LONG_SECS, SOON_SECS, Watched

from telha_queue.errors import InvalidArgument, InvalidScope, StoreClosed
from telha_queue.job import Exact
from telha_queue.queue import Queue
from telha_queue.scope import Scope
from telha_queue.testing import START_US

ACME = Scope.named("acme")
OTHER = Scope.named("other")


@pytest.fixture
def watched(engine):
    return Watched(engine)


class Hands:
    """A clock that is moved by hand and tells nobody."""

    def __init__(self):
        self.now_us = START_US

    def __call__(self):
        return self.now_us

    def advance(self, us):
        self.now_us += us


@pytest.fixture
def hands():
    return Hands()


@pytest.fixture
def queue(watched, hands):
    return Queue(watched, None, hands)


@pytest.fixture
def woken(queue, watched):
    """woken(cause): whether a wait begun before the cause ends because of it."""

    def run(cause, scope=ACME, kinds=None):
        ticket = queue.ready_ticket(scope)
        failures = []

        def wait():
            try:
                queue.wait_ready(scope, kinds, ticket, LONG_SECS)
            except StoreClosed as closed:
                failures.append(closed)

        sleeper = threading.Thread(target=wait, daemon=True)
        sleeper.start()
        assert watched.asleep.acquire(timeout=SOON_SECS)
        cause()
        sleeper.join(SOON_SECS)
        assert not sleeper.is_alive()
        return failures

    return run


def seconds_of(call):
    started = time.monotonic()
    call()
    return time.monotonic() - started


def test_a_job_wakes_whoever_waits_for_its_scope_or_for_any(queue, woken):
    assert woken(lambda: queue.enqueue(ACME, "embed")) == []
    assert woken(lambda: queue.enqueue(ACME, "embed"), scope=None, kinds="em") == []
    assert woken(lambda: queue.enqueue(ACME, "embed"), kinds=Exact("embed")) == []


def test_wake_wakes_everybody(queue, woken):
    assert woken(queue.wake) == []
    assert woken(queue.wake, scope=None, kinds="nothing") == []


def test_closing_ends_the_wait(queue, woken):
    assert [type(failure) for failure in woken(queue.close)] == [StoreClosed]
    for call in (lambda: queue.ready_ticket(ACME), lambda: queue.wait_ready(ACME, None, 0, 0)):
        with pytest.raises(StoreClosed):
            call()
    queue.wake()


def test_what_became_ready_since_the_ticket_is_not_slept_on(queue):
    for cause in (lambda: queue.enqueue(ACME, "embed"), queue.wake):
        ticket = queue.ready_ticket(ACME)
        cause()
        assert queue.ready_ticket(ACME) > ticket
        assert seconds_of(lambda ticket=ticket: queue.wait_ready(ACME, None, ticket, LONG_SECS)) < SOON_SECS


def test_a_wait_in_vain_ends_when_its_time_is_over(queue):
    ticket = queue.ready_ticket(ACME)
    assert 0.05 <= seconds_of(lambda: queue.wait_ready(ACME, None, ticket, 0.05)) < SOON_SECS


def test_no_wait_is_longer_than_the_next_gate_is_away(queue, watched, hands):
    queue.enqueue(OTHER, "embed", delay_secs=0.001)
    queue.enqueue(ACME, "embed", delay_secs=0.05)
    ticket = queue.ready_ticket(ACME)
    hands.advance(us=20_000)
    queue.wait_ready(ACME, None, ticket, LONG_SECS)
    assert watched.slept_us == [30_000]


@pytest.mark.parametrize("scope", [ACME, None], ids=["one scope", "any scope"])
def test_a_gate_that_opens_after_the_look_is_not_slept_beside(queue, hands, scope):
    queue.enqueue(ACME, "embed", delay_secs=1)
    ticket = queue.ready_ticket(scope)
    assert queue.lease_many(scope, 1, worker_id="w") == []
    hands.advance(us=1_000_000)
    assert seconds_of(lambda: queue.wait_ready(scope, None, ticket, LONG_SECS)) < SOON_SECS
    assert len(queue.lease_many(scope, 1, worker_id="w")) == 1


@pytest.mark.parametrize("scope", [ACME, None], ids=["one scope", "any scope"])
def test_a_gate_that_another_call_saw_open_is_not_slept_beside(queue, hands, scope):
    for _ in range(2):
        queue.enqueue(ACME, "embed", delay_secs=1)
    ticket = queue.ready_ticket(scope)
    assert queue.lease_many(scope, 1, worker_id="w") == []
    hands.advance(us=1_000_000)
    assert len(queue.lease_many(scope, 1, worker_id="another")) == 1
    assert seconds_of(lambda: queue.wait_ready(scope, None, ticket, LONG_SECS)) < SOON_SECS
    assert len(queue.lease_many(scope, 1, worker_id="w")) == 1


def test_bad_arguments_are_refused(queue):
    for bad in (-1, 2**127, True, 1.0, None, "1"):
        with pytest.raises(InvalidArgument):
            queue.wait_ready(ACME, None, bad, 0)
    for bad in (-1, float("nan"), True, None):
        with pytest.raises(InvalidArgument):
            queue.wait_ready(ACME, None, 0, bad)
    with pytest.raises(InvalidArgument):
        queue.wait_ready(ACME, 5, 0, 0)
    for call in (queue.ready_ticket, lambda bad: queue.wait_ready(bad, None, 0, 0)):
        with pytest.raises(InvalidScope):
            call("acme")
