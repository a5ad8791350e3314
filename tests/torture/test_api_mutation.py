"""Spoilt arguments at a small scale; and an undocumented error is found, as is a refusal that does something."""

from __future__ import annotations

from telha_queue import Queue
from telha_queue.errors import InvalidArgument
from tests.torture import api_mutation, runner


def test_spoilt_arguments_are_refused_or_done():
    runner.check(api_mutation.HARNESS)


def test_an_error_of_another_kind_is_found(monkeypatch, tmp_path):
    def broken(*_, **__):
        raise KeyError

    monkeypatch.setattr(Queue, "counts", broken)
    result = api_mutation.Attack(tmp_path, 1).run(2000)
    assert "counts with" in result.faults[0]
    assert "raised KeyError" in result.faults[0]


def test_a_refusal_that_changes_a_job_is_found(monkeypatch, tmp_path):
    right = Queue.stats

    def broken(queue, lease, detail):
        try:
            return right(queue, lease, detail)
        except InvalidArgument:
            for job in queue.list():
                queue.lease_next_any(worker_id="nobody asked for it")
                assert job
            raise

    monkeypatch.setattr(Queue, "stats", broken)
    result = api_mutation.Attack(tmp_path, 1).run(5000)
    assert "jobs changed that no call returned" in result.faults[0]
