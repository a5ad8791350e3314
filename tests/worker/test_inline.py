"""The testing kit: due jobs run one after another, and a worker is lost at a named point."""

from __future__ import annotations

import pytest

from telha_queue import JobState, Scope
from telha_queue.errors import ConfigError
from telha_queue.testing import WorkerLost, run_due
from telha_queue.worker import Job, task

ACME = Scope.named("acme")


@task("split")
def split(job: Job) -> None:
    for _ in range(3):
        part.enqueue(job.queue, job.scope)


@task("part")
async def part(job: Job) -> None:
    job.checkpoint(b"half")


def test_everything_that_is_due_runs_in_order_jobs_enqueued_meanwhile_included(queue):
    split.enqueue(queue, ACME)
    done = run_due(queue, [split, part])
    assert [(job.kind, job.state) for job in done] == [
        ("split", JobState.COMPLETED), *[("part", JobState.COMPLETED)] * 3,
    ]  # fmt: skip
    assert run_due(queue, [split, part]) == []


def test_kinds_without_a_task_stay(queue):
    part.enqueue(queue, ACME)
    assert run_due(queue, [split]) == []
    assert queue.counts()[JobState.PENDING] == 1


def test_a_failed_job_runs_again_when_the_clock_is_turned(queue, clock):
    @task("x", max_attempts=2)
    def x(job: Job) -> None:
        raise ValueError(job.attempt)

    job = x.enqueue(queue, ACME)
    [failed] = run_due(queue, [x])
    assert (failed.state, failed.attempts) == (JobState.PENDING, 1)
    assert run_due(queue, [x]) == []
    clock.advance(secs=10)
    [dead] = run_due(queue, [x])
    assert (dead.job_id, dead.state) == (job.job_id, JobState.DEAD)


@pytest.mark.parametrize(
    ("point", "ran", "first", "leased"), [("leased", 1, 1, 1), ("handled", 2, 1, 1), ("settled", 2, 2, 0)]
)
def test_a_worker_is_lost_at_a_named_point(queue, clock, point, ran, first, leased):
    calls = []

    @task("x")
    def x(job: Job) -> None:
        calls.append(job.attempt)

    jobs = [x.enqueue(queue, ACME) for _ in range(3)]
    with pytest.raises(WorkerLost, match=point):
        run_due(queue, [x], lost_at=point, lost_after=1)
    assert len(calls) == ran
    counts = queue.counts()
    assert (counts[JobState.COMPLETED], counts[JobState.LEASED]) == (first, leased)
    clock.advance(secs=300)
    assert queue.reap_expired().reclaimed == leased
    clock.advance(secs=10)
    run_due(queue, [x])
    after = [queue.get(ACME, job.job_id) for job in jobs]
    assert [job.state for job in after] == [JobState.COMPLETED] * 3
    assert sum(job.crashes for job in after) == leased


def test_a_point_that_there_is_not_is_refused(queue):
    with pytest.raises(ConfigError, match="leased, handled, settled"):
        run_due(queue, [split], lost_at="nowhere")
