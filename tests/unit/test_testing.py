"""The users' test kit: what `drain` runs, and what `assert_enqueued` finds and says."""

from __future__ import annotations

import pytest

from telha_queue import Exact, JobState, Outcomes, Queue, Scope
from telha_queue.testing import assert_enqueued, drain, memory_queue

ACME = Scope.named("acme")


@pytest.fixture
def queue() -> Queue:
    queue = memory_queue()
    for kind in ("embed", "embed:big", "ocr"):
        queue.enqueue(ACME, kind, kind.encode())
    return queue


def test_both_take_the_same_filter_of_kinds(queue: Queue) -> None:
    assert [job.kind for job in assert_enqueued(queue, kinds="embed", count=2)] == ["embed", "embed:big"]
    assert_enqueued(queue, kinds=Exact("embed"), count=1)
    assert_enqueued(queue, kinds=("ocr", "embed"), count=3)
    assert [job.kind for job in drain(queue, lambda job: None, kinds="embed")] == ["embed", "embed:big"]
    assert_enqueued(queue, kinds="embed", state=JobState.PENDING, count=0)


def test_what_is_missing_is_said_beside_what_is_there(queue: Queue) -> None:
    with pytest.raises(AssertionError, match=r"expected at least one job with kinds=tidy, found 0; .* 1 ocr"):
        assert_enqueued(queue, kinds="tidy")


def test_a_handler_that_raises_fails_its_job(queue: Queue) -> None:
    done: Outcomes = [*drain(queue, lambda job: 1 // 0, scope=ACME)]
    assert [job.last_error for job in done] == ["ZeroDivisionError: integer division or modulo by zero"] * 3


def test_help_lists_nothing_internal() -> None:
    public = {name for name in dir(Queue) if not name.startswith("_")}
    assert "abandon" not in public
    assert {"ready_ticket", "wait_ready", "wake"} <= public
