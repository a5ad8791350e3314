"""A worker as a process: signals, exit codes, the lock of the interpreter, and kill -9."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from telha_queue import JobState, Queue, QueueConfig, Scope

ACME = Scope.named("acme")
ROOT = Path(__file__).resolve().parents[2]
OS = QueueConfig(durability="os")
PROGRAM = """
import ctypes, os, sys, threading
from telha_queue import Queue, QueueConfig, Scope
from telha_queue.worker import Job, Worker, task

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

@task("wait")
def wait(job: Job) -> None:
    say("at work")
    threading.Event().wait(60)

@task("quick")
def quick(job: Job) -> None:
    say("at work")
    threading.Event().wait(0.3)

@task("greedy")
def greedy(job: Job) -> None:
    say("at work")
    ctypes.PyDLL(None).usleep(1_800_000)  # holds the interpreter's lock all the time

@task("blocks")
async def blocks(job: Job) -> None:
    say("at work")
    threading.Event().wait(1.8)  # holds the event loop

queue = Queue.open(sys.argv[1], QueueConfig(durability="os", reaper_interval_secs=1))
worker = Worker(queue, tasks=[wait, quick, greedy, blocks], grace_secs=float(sys.argv[2]), lease_ttl_secs=0.6)
code = worker.run()
queue.close()
sys.exit(code)
"""


@pytest.fixture
def at_work(tmp_path):
    """at_work(kind): a process whose worker has begun with a job of that kind; and the job."""
    started = []

    def start(kind: str, grace_secs: float = 30):
        path = tmp_path / "queue"
        with Queue.open(path, OS) as queue:
            job = queue.enqueue(ACME, kind)
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        words = [sys.executable, "-c", PROGRAM, str(path), str(grace_secs)]
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
        )
        started.append(process)
        assert process.stdout.readline() == "at work\n", process.stderr.read()
        return process, path, job

    yield start
    for process in started:
        process.kill()
        process.communicate()


def as_left(path, job):
    with Queue.open(path, OS) as queue:
        return queue.get(ACME, job.job_id)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=str)
def test_a_signal_lets_the_handler_end(at_work, number):
    process, path, job = at_work("quick")
    process.send_signal(number)
    assert process.wait(30) == 0, process.stderr.read()
    assert as_left(path, job).state is JobState.COMPLETED


def test_what_does_not_end_in_time_is_given_back_unspent(at_work):
    process, path, job = at_work("wait", grace_secs=0.2)
    process.terminate()
    assert process.wait(30) == 6, process.stderr.read()
    left = as_left(path, job)
    assert (left.state, left.attempts, left.crashes, left.not_before) == (JobState.PENDING, 0, 0, None)
    assert left.events[-1].transition == "released"


def test_a_second_signal_is_immediate(at_work):
    process, path, job = at_work("wait", grace_secs=600)
    process.terminate()
    process.terminate()
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 6, process.stderr.read()
    assert as_left(path, job).state is JobState.PENDING


@pytest.mark.parametrize("kind", ["greedy", "blocks"])
def test_a_handler_that_lets_nobody_else_run_for_three_ttls_keeps_its_lease(at_work, kind):
    process, path, job = at_work(kind)
    process.terminate()  # seen to when the interpreter is free again
    assert process.wait(30) == 0, process.stderr.read()
    left = as_left(path, job)
    assert (left.state, left.lease_generation, left.attempts) == (JobState.COMPLETED, 1, 0)
    assert sum(event.count for event in left.events if event.transition == "extended") >= 3


def test_kill_9_loses_nothing_and_costs_a_crash(at_work):
    process, path, job = at_work("wait")
    process.kill()
    process.wait()
    with Queue.open(path, OS) as queue:
        left = queue.get(ACME, job.job_id)
        assert left.state is JobState.LEASED
        queue.reap_expired(now_us=left.lease_deadline)
        after = queue.get(ACME, job.job_id)
        assert (after.state, after.attempts, after.crashes) == (JobState.PENDING, 1, 1)
