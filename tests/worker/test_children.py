"""Tasks in processes of their own: what they can do, how they end, and what of one job never reaches another."""

from __future__ import annotations

import os
import signal
import threading

import pytest
import worker_tasks

from telha_queue import JobState, Scope
from telha_queue.errors import ConfigError, CorruptionError
from telha_queue.testing import memory_queue
from telha_queue.worker import ErrorRules, Worker, pipe
from telha_queue.worker.children import Children
from telha_queue.worker.claim import Claim
from telha_queue.worker.verdict import Done, Failed

ACME = Scope.named("acme")


@pytest.fixture
def children():
    """The processes of all tasks that there are, and one of them at most as long as one job runs at a time."""
    tasks = [value for value in vars(worker_tasks).values() if hasattr(value, "limits")]
    children = Children(tasks, ErrorRules())
    yield children
    children.stop()


@pytest.fixture
def claimed():
    """claimed(task, ...): a job of that task, leased. Where it is kept makes no difference."""
    queue = memory_queue()
    keeper = queue.keeper()

    def claim(task, *arguments, **named) -> Claim:
        job = task.enqueue(queue, ACME, *arguments, **named)
        [record] = queue.lease_many(ACME, 1, worker_id="w")
        assert record.job_id == job.job_id
        return Claim(queue, record, task, keeper.hold([record], timeout_secs=3600)[0], None, 0, 0)

    yield claim
    keeper.close()


def said(claim: Claim) -> list[str]:
    """What its handler has told by stats."""
    events = claim.queue.get(ACME, claim.record.job_id).events
    return [event.detail for event in events if event.transition == "stats"]


def test_a_task_in_a_process_runs_there_and_can_do_what_others_can(queue, work, until, caplog):
    job = worker_tasks.whereabouts.enqueue(queue, ACME, word="hello")
    worker = work(worker_tasks.whereabouts, processes=1)
    until(lambda: queue.get(ACME, job.job_id).state is JobState.COMPLETED)
    [told] = [event.detail for event in queue.get(ACME, job.job_id).events if event.transition == "stats"]
    assert told.split()[::2] == ["hello", "acme"]
    assert [int(told.split()[1])] == worker._crew.pids
    assert int(told.split()[1]) != os.getpid()
    [line] = [line for line in caplog.records if line.name == "mine"]
    assert (line.message, line.process) == ("read hello", int(told.split()[1]))


@pytest.mark.parametrize(("how", "reason"), [("dies", "poison"), ("raises", "not_retryable")])
def test_what_ends_a_task_in_a_process(queue, clock, work, until, how, reason):
    job = worker_tasks.ends.enqueue(queue, ACME, how=how)
    work(worker_tasks.ends)
    until(lambda: queue.get(ACME, job.job_id).attempts == 1)
    clock.advance(secs=3600)
    until(lambda: queue.get(ACME, job.job_id).state is JobState.DEAD)
    dead = queue.get(ACME, job.job_id)
    assert dead.dead_reason == reason
    assert (dead.attempts, dead.crashes) == ((2, 2) if how == "dies" else (1, 0))


def test_a_killed_process_costs_an_attempt_and_a_crash_and_is_replaced(queue, clock, work, until):
    job = worker_tasks.sleeps.enqueue(queue, ACME)
    worker = work(worker_tasks.sleeps)
    until(lambda: [event for event in queue.get(ACME, job.job_id).events if event.transition == "stats"])
    [pid] = worker._crew.pids
    os.kill(pid, signal.SIGKILL)
    until(lambda: queue.get(ACME, job.job_id).state is JobState.PENDING)
    after = queue.get(ACME, job.job_id)
    assert (after.attempts, after.crashes, after.worker_id) == (1, 1, None)
    assert after.events[-1].detail == "the process of the handler died: signal SIGKILL"
    clock.advance(secs=3600)
    until(lambda: worker._crew.pids and worker._crew.pids != [pid])
    worker.stop(grace_secs=0)


def test_a_process_is_killed_at_the_deadline_of_its_job(queue, clock, work, until):
    job = worker_tasks.sleeps.enqueue(queue, ACME)
    worker = work(worker_tasks.sleeps)
    until(lambda: [event for event in queue.get(ACME, job.job_id).events if event.transition == "stats"])
    clock.advance(secs=3600)
    until(lambda: queue.get(ACME, job.job_id).attempts == 1)
    assert queue.get(ACME, job.job_id).crashes == 0
    until(lambda: worker.load()["general"].used == 0)
    assert worker._crew.pids == []


def test_the_loss_of_one_job_is_told_to_that_job_alone(children, claimed, until, tmp_path):
    first, second, third = (claimed(worker_tasks.watches, str(tmp_path / name).encode()) for name in "abc")
    (tmp_path / "a").touch()
    assert children.run(first) == Done()
    for claim, lost, name in ((second, first, "b"), (third, third, "c")):
        running = threading.Thread(target=children.run, args=(claim,))
        running.start()
        until(lambda claim=claim: said(claim))
        lost.job.lost.set("lost")
        (tmp_path / name).touch()
        running.join()
    assert (said(second)[-1], said(third)[-1]) == ("lost: None", "lost: lost")
    assert len(children.pids) == 1


def test_a_thread_that_a_job_has_left_behind_can_do_nothing_to_the_next(children, claimed):
    first, second = claimed(worker_tasks.leaves), claimed(worker_tasks.follows)
    assert (children.run(first), children.run(second)) == (Done(), Done())
    assert said(second) == ["that attempt is over; that attempt is over"]
    assert said(first) == []
    assert second.queue.get(ACME, second.record.job_id).continuation is None
    assert len(children.pids) == 1


def test_a_handler_that_is_refused_hears_by_which_error(children, claimed):
    claim = claimed(worker_tasks.clings)
    claim.queue.release(claim.record)
    claim.queue.lease_many(ACME, 1, worker_id="other")
    outcome = children.run(claim)
    assert outcome.error.startswith("Permanent: True 2 1\n")


def test_many_threads_of_a_handler_may_ask_at_a_time(children, claimed):
    claim = claimed(worker_tasks.many)
    assert children.run(claim) == Done()


def test_a_handler_may_have_processes_of_its_own(children, claimed):
    claim = claimed(worker_tasks.pool)
    assert children.run(claim) == Done()
    assert said(claim) == ["pool True"]


def test_signals_end_no_handler_but_what_it_has_started(children, claimed):
    claim = claimed(worker_tasks.signalled)
    assert children.run(claim) == Done()
    assert said(claim) == ["alive", f"what it starts ends by signal {int(signal.SIGTERM)}"]


@pytest.mark.parametrize(
    ("how", "error", "cause"),
    [
        ("dies by a signal without a name", f"the process of the handler died: signal {signal.SIGRTMIN + 3}", "crash"),
        ("writes into the pipe", "the process of the handler died: what it sent cannot be read: ValueError", "crash"),
        ("closes the pipe", "the process of the handler died: exit code", "crash"),
        ("exits", "SystemExit: 0", "error"),
        ("is interrupted", "KeyboardInterrupt: by itself", "error"),
        ("retries after nonsense", "ValueError: delay_secs is a number from 0 to", "error"),
        ("gives back after nonsense", "ValueError: delay_secs is a number from 0 to", "error"),
    ],
)
def test_a_process_that_ends_oddly_fails_its_job_and_the_next_one_runs(children, claimed, how, error, cause):
    outcome = children.run(claimed(worker_tasks.ends, how=how))
    assert isinstance(outcome, Failed)
    assert (outcome.error[: len(error)], outcome.cause) == (error, cause)
    assert children.run(claimed(worker_tasks.whereabouts, word="next")) == Done()
    assert len(children.pids) == 1


@pytest.mark.parametrize("way", ["killed by the system", "stopped by the worker"])
def test_a_process_that_has_forked_is_not_waited_for_when_it_is_dead(children, claimed, until, tmp_path, way):
    claim, outcomes = claimed(worker_tasks.forks, str(tmp_path / "end").encode()), []
    running = threading.Thread(target=lambda: outcomes.append(children.run(claim)))
    running.start()
    until(lambda: said(claim))
    if way == "killed by the system":
        os.kill(children.pids[0], signal.SIGKILL)
    else:
        claim.stop()
    running.join(20)
    assert [outcome.error for outcome in outcomes] == ["the process of the handler died: signal SIGKILL"]
    (tmp_path / "end").touch()


def test_nobody_waits_for_a_process_that_does_not_read(children, claimed, until):
    assert children.run(claimed(worker_tasks.whereabouts, word="first")) == Done()
    [pid] = children.pids
    os.kill(pid, signal.SIGSTOP)
    claim, outcomes = claimed(worker_tasks.watches, b"/" * (1 << 20)), []
    running = threading.Thread(target=lambda: outcomes.append(children.run(claim)))
    running.start()
    until(lambda: claim.stop)
    claim.job.lost.set("timeout")  # in the thread that watches over all leases
    claim.stop()
    running.join(20)
    assert [outcome.error for outcome in outcomes] == ["the process of the handler died: signal SIGKILL"]


def test_a_job_that_was_decided_before_a_process_had_it_does_not_run(children, claimed):
    claim = claimed(worker_tasks.whereabouts, word="never")
    claim.decided = True
    children.run(claim)
    assert said(claim) == []


def test_a_payload_that_cannot_be_read_fails_the_attempt(children, claimed, monkeypatch):
    def unreadable(record):
        raise CorruptionError("the payload is gone")

    claim = claimed(worker_tasks.whereabouts, word="x")
    with monkeypatch.context() as patched:
        patched.setattr(pipe, "job_body", unreadable)
        outcome = children.run(claim)
    assert outcome.error.startswith("CorruptionError: the payload is gone")
    assert children.run(claim) == Done()


def test_rules_that_no_process_can_be_told_are_refused_with_the_worker():
    class Local(Exception):
        pass

    rules = ErrorRules(permanent=(Local,))
    with pytest.raises(ConfigError, match="Local"):
        Worker(memory_queue(), tasks=[worker_tasks.whereabouts], rules=rules)
