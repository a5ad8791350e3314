"""Schedules and wake-ups at a small scale; and what is wrong is found."""

from __future__ import annotations

from telha_queue.queue import Queue
from tests.torture import race_schedules, race_wakeups, runner
from tests.torture.race_scenes import SCENES


def test_threads_inside_verbs_come_out_right_in_every_order():
    runner.check(race_schedules.HARNESS)


def test_nobody_sleeps_beside_a_job_that_fits():
    runner.check(race_wakeups.HARNESS)


def test_a_completion_that_changes_nothing_is_found(monkeypatch, tmp_path):
    monkeypatch.setattr(race_schedules, "CLOSINGS", 0)
    monkeypatch.setattr(race_schedules, "SCENES", SCENES[:1])
    monkeypatch.setattr(Queue, "complete", lambda queue, lease, **_: queue.get(lease.scope, lease.job_id))
    result = runner.run(race_schedules.HARNESS, "ci", 1, wanted=0, folder=tmp_path)
    assert any("it worked for the actors" in fault for fault in result.faults)


def test_a_key_that_is_forgotten_is_found(monkeypatch, tmp_path):
    right = Queue.enqueue
    monkeypatch.setattr(Queue, "enqueue", lambda queue, scope, kind, **_: right(queue, scope, kind))
    monkeypatch.setattr(race_schedules, "CLOSINGS", 0)
    monkeypatch.setattr(race_schedules, "SCENES", SCENES[-1:])
    result = runner.run(race_schedules.HARNESS, "ci", 1, wanted=0, folder=tmp_path)
    assert any("a key stands for two jobs" in fault for fault in result.faults)


def test_a_job_that_nobody_is_woken_for_is_found(monkeypatch, tmp_path):
    right = Queue.enqueue
    monkeypatch.setattr(race_wakeups, "PATIENCE_SECS", 0.5)
    monkeypatch.setattr(
        Queue, "enqueue", lambda queue, scope, kind, **more: right(queue, scope, kind, **{"delay_secs": 3600, **more})
    )
    result = runner.run(race_wakeups.HARNESS, "ci", 1, folder=tmp_path)
    assert any("nobody leased" in fault for fault in result.faults)
