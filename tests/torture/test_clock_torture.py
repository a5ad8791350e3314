"""Jumping clocks, backoff and the soak at a small scale; and a clock that goes back is found."""

from __future__ import annotations

from telha_queue import lifecycle
from telha_queue.clock import MAX_TIME_US, GuardedClock
from tests.torture import clock_backoff, clock_jumps, clock_soak, runner


def test_time_does_not_go_back_whatever_the_clock_does():
    runner.check(clock_jumps.HARNESS)


def test_delays_and_limits_end_where_they_should():
    runner.check(clock_backoff.HARNESS)


def test_a_day_of_work_leaves_memory_disk_and_leases_as_they_were():
    runner.check(clock_soak.HARNESS)


def test_a_queue_that_believes_its_clock_is_found(monkeypatch, tmp_path):
    class Believing(GuardedClock):
        def __init__(self, clock, **_):
            self.clock = clock

        def __call__(self):
            return min(self.clock(), MAX_TIME_US)

    monkeypatch.setattr(lifecycle, "GuardedClock", Believing)
    result = runner.run(clock_jumps.HARNESS, "ci", 1, folder=tmp_path)
    assert any("the queue was between" in fault for fault in result.faults)
