"""The guard on a queue's clock: it never steps back, whoever asks, and from wherever."""

from __future__ import annotations

import signal
import time

import pytest

from telha_queue.clock import GuardedClock
from telha_queue.queue import Queue
from telha_queue.scope import Scope
from telha_queue.testing import START_US, ManualClock, memory_queue

ACME = Scope.named("acme")


class Interrupted:
    """A lock in whose holder a signal arrives, once after it was taken."""

    def __init__(self, lock):
        self._lock = lock
        self._armed = True

    def __enter__(self):
        self._lock.__enter__()
        if self._armed:
            self._armed = False
            signal.raise_signal(signal.SIGUSR1)

    def __exit__(self, *error):
        self._lock.__exit__(*error)


@pytest.fixture
def on_signal():
    """on_signal(number, call): run a call in the handler of a signal."""
    before = {}

    def handle(number, call):
        before[number] = signal.signal(number, lambda *_: call())

    yield handle
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_handler_that_asks_the_time_of_the_clock_it_interrupts_is_answered(on_signal):
    def interrupted():
        read = manual()
        if not told:
            signal.raise_signal(signal.SIGUSR1)
        return read

    told = []
    manual = ManualClock()
    guarded = GuardedClock(interrupted)
    on_signal(signal.SIGUSR1, lambda: (told.append(None), manual.advance(secs=1), told.append(guarded())))
    told.append(guarded())
    assert told[1:] == [START_US + 1_000_000] * 2  # the reading of the one who was interrupted is the older one


def test_it_is_moved_on_and_never_back():
    guarded = GuardedClock(ManualClock())
    assert guarded.advance_to(START_US + 9) == START_US + 9
    assert guarded.advance_to(START_US + 5) == START_US + 9


def test_a_handler_that_calls_a_verb_is_answered_while_the_clock_is_read(on_signal):
    def interrupted():
        if not jobs:
            signal.raise_signal(signal.SIGUSR1)
        return START_US

    jobs = []
    queue = memory_queue(clock=interrupted)
    on_signal(signal.SIGUSR1, lambda: jobs.append(None) or jobs.append(queue.enqueue(ACME, "from the handler")))
    queue.enqueue(ACME, "embed")
    assert sorted(job.kind for job in queue.list(ACME)) == ["embed", "from the handler"]


def test_a_handler_may_close_the_queue_that_starts_its_reaper(on_signal):
    queue = memory_queue()
    queue._reaper_lock = Interrupted(queue._reaper_lock)
    on_signal(signal.SIGUSR1, queue.close)
    reaper = queue.start_reaper()
    assert not reaper.wait_pass(beyond=0, timeout_secs=20)
    queue.close()


def test_time_does_not_step_back_in_a_storm_of_signals(on_signal):
    guarded = GuardedClock()
    told = []
    on_signal(signal.SIGALRM, lambda: told.append(guarded()))
    signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
    try:
        until_ns = time.monotonic_ns() + 200_000_000
        while time.monotonic_ns() < until_ns:
            asked = guarded()  # stored by its own statement: a handler may run between a call and an append
            told.append(asked)
            assert told[-1] <= guarded()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    assert guarded() >= max(told)


def test_time_goes_on_however_often_one_asks():
    now_ns = time.monotonic_ns()
    guarded = GuardedClock(start_us=START_US)
    started_us = guarded.at(0, now_ns + 10**9)  # whatever passed since it was made
    for _ in range(10_000):
        now_ns += 500
        guarded.at(0, now_ns + 10**9)
    assert guarded.at(0, now_ns + 10**9) == started_us + 5_000


def test_no_time_is_later_than_the_last():
    guarded = GuardedClock(start_us=2**63 - 5)
    assert guarded.at(0, time.monotonic_ns() + 2**62) == 2**63 - 1
    assert guarded.at(0, 2**63 - 1) == 2**63 - 1


@pytest.mark.parametrize("bad", [5, "clock", START_US])
def test_a_clock_is_refused_when_the_queue_is_built(bad):
    with pytest.raises(TypeError, match="clock is a callable that returns microseconds, not"):
        memory_queue(clock=bad)
    with pytest.raises(TypeError, match="clock is a callable"):
        Queue.open("/nowhere", clock=bad)


def test_a_queue_is_built_on_an_engine_and_settings(tmp_path):
    for path in ("queue", b"queue", tmp_path):
        with pytest.raises(TypeError, match=r"use Queue.open\(path\)"):
            Queue(path)
    for config in ({"durability": "os"}, "os", 5):
        where = tmp_path / "queue"
        with pytest.raises(TypeError, match=f"config is a QueueConfig, not {type(config).__name__}"):
            Queue.open(where, config)
        assert not where.exists()
