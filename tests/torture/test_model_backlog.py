"""A lease behind very many jobs that it cannot take, at a small scale."""

from __future__ import annotations

from tests.torture import model_backlog, runner


def test_a_lease_does_not_wade_through_what_was_completed():
    runner.check(model_backlog.TOMBSTONES)


def test_a_lease_does_not_wade_through_what_waits_for_its_time():
    runner.check(model_backlog.GATED)
