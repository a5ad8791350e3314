"""Random lives at a small scale; and a queue that does one thing wrong is found out, by a life made small."""

from __future__ import annotations

import pytest

from telha_queue.queue import Queue
from tests.torture import model_machine, runner


def test_a_queue_on_disk_and_one_in_memory_live_the_same_lives():
    runner.check(model_machine.HARNESS)


WRONG = {
    "fail": lambda right: lambda queue, lease, error, retryable: right(queue, lease, error),
    "release": lambda right: lambda queue, lease, delay_secs: right(queue, lease),
    "extend": lambda right: lambda queue, lease, lease_ttl_secs: right(queue, lease),
    "lease_next": lambda right: lambda queue, scope, kinds, **more: right(queue, scope, None, **more),
}


@pytest.mark.parametrize("verb", WRONG)
def test_a_verb_that_does_something_else_on_disk_is_found(monkeypatch, tmp_path, verb):
    monkeypatch.setattr(model_machine, "SHRINKING_RUNS", 30)
    right = getattr(Queue, verb)
    wrong = WRONG[verb](right)
    opened = Queue.open

    def sabotaged(*words):
        queue = opened(*words)
        setattr(queue, verb, lambda *words, verb=verb, **more: wrong(queue, *words, **more))
        return queue

    monkeypatch.setattr(Queue, "open", sabotaged)
    result = runner.run(model_machine.HARNESS, "ci", 1, folder=tmp_path)
    [fault] = result.faults
    assert verb in fault
    assert len(fault.splitlines()) < 60
