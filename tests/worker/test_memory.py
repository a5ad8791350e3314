"""What a worker keeps does not grow with the jobs that it has done."""

from __future__ import annotations

import gc
from collections import Counter

import pytest

from telha_queue import Scope
from telha_queue.worker import Job, task

ACME = Scope.named("acme")
JOBS = 2000
KEPT = 20
"""Each thread still knows the job that it did last, and the settler its last batch."""


@pytest.mark.parametrize("prefetch", [0, 100])
@pytest.mark.parametrize("limits", [{}, {"timeout_secs": 60}], ids=["unbounded", "bounded"])
def test_nothing_is_left_of_jobs_that_are_done(queue, work, prefetch, limits):
    @task("x", **limits)
    def x(job: Job) -> None: ...

    def kinds_of_objects() -> Counter[type]:
        gc.collect()
        ours = (type(one) for one in gc.get_objects() if str(type(one).__module__).startswith("telha_queue.worker"))
        return Counter(ours)

    before = kinds_of_objects()  # tasks of other tests are there for good
    worker = work(x, prefetch=prefetch, concurrency=4)
    for _ in range(2):
        for _ in range(2):
            queue.enqueue_many(ACME, [x.spec()] * (JOBS // 2))
        assert worker.wait_idle()
        assert max((kinds_of_objects() - before).values()) <= KEPT
    assert not worker._watch._claims
    assert not worker._watch._early
