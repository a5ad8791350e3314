"""Programs whose tasks have processes: signals to the whole group, scripts without a guard, ends without a stop."""

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
import os, sys, threading
from telha_queue import Queue, QueueConfig, Scope
from telha_queue.worker import Job, Worker, task

@task("ends", process=True)
def ends(job: Job) -> None:
    os.write(1, b"%d\\n" % os.getpid())
    while not os.path.exists(job.payload):
        threading.Event().wait(0.02)
    print("handled")

if os.environ.get("SLOW") and __name__ != "__main__":  # a process that is still importing what it needs
    os.write(1, b"starting\\n")
    while not os.path.exists(os.environ["SLOW"]):
        threading.Event().wait(0.02)

def main():
    queue = Queue.open(sys.argv[1], QueueConfig(durability="os"))
    worker = Worker(queue, tasks=[ends], processes=1, grace_secs=60)
    if sys.argv[2] == "run":
        code = worker.run()
        queue.close()
        sys.exit(code)
    worker.start()
    if sys.argv[2] == "leave":
        sys.stdin.readline()
        sys.exit("left without a stop")
    worker.wait_idle()
    worker.stop()

"""
GUARDED = PROGRAM + 'if __name__ == "__main__":\n    main()\n'


@pytest.fixture
def program(tmp_path):
    """program(source, how, ...): a process of that program, and the job that is in its queue."""
    started = []

    def start(source: str, how: str, **environment: str):
        (tmp_path / "program.py").write_text(source)
        with Queue.open(tmp_path / "queue", OS) as queue:
            job = queue.enqueue(ACME, "ends", str(tmp_path / "go").encode())
        process = subprocess.Popen(
            [sys.executable, str(tmp_path / "program.py"), str(tmp_path / "queue"), how],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            start_new_session=True,
        )
        started.append(process)
        return process, job

    yield start
    for process in started:
        process.kill()
        (tmp_path / "go").touch()
        (tmp_path / "slow").touch()
        process.communicate()


def as_left(tmp_path, job):
    with Queue.open(tmp_path / "queue", OS) as queue:
        return queue.get(ACME, job.job_id)


def has_ended(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=str)
@pytest.mark.parametrize("when", ["at work", "starting"])
def test_a_signal_to_the_whole_group_lets_a_handler_in_a_process_end(program, tmp_path, number, when):
    slow = {"SLOW": str(tmp_path / "slow")} if when == "starting" else {}
    process, job = program(GUARDED, "run", **slow)
    first = process.stdout.readline()
    assert first == "starting\n" if slow else first.strip().isdigit()
    os.killpg(process.pid, number)
    (tmp_path / "slow").touch()
    (tmp_path / "go").touch()
    assert process.wait(30) == 0, process.stderr.read()
    assert process.stdout.read().endswith("handled\n")
    left = as_left(tmp_path, job)
    assert (left.state, left.attempts, left.crashes) == (JobState.COMPLETED, 0, 0)


@pytest.mark.parametrize("how", ["killed", "left"])
def test_no_process_outlives_its_worker(program, until, how):
    process, _ = program(GUARDED, "leave")
    pid = int(process.stdout.readline())
    if how == "killed":
        process.kill()
    else:
        process.stdin.write("\n")
        process.stdin.flush()
    process.wait(30)
    until(lambda: has_ended(pid))


def test_a_script_without_a_guard_is_told_that_it_needs_one(program, tmp_path):
    process, job = program(PROGRAM + "main()\n", "once")
    assert process.wait(60) == 0, process.stderr.read()
    left = as_left(tmp_path, job)
    assert (left.state, left.attempts, left.crashes) == (JobState.PENDING, 1, 0)
    assert left.events[-1].detail.endswith('a script that starts workers needs `if __name__ == "__main__":`')
