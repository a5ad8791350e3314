"""telha worker and telha top: a module's tasks as a process, and what that says of itself."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from telha_queue import JobState, Queue, Scope

ACME = Scope.named("acme")
MODULE = """
from telha_queue.worker import JSON, Job, Worker, task

@task("ingest", codec=JSON)
def ingest(job: Job, path: str) -> None:
    import logging
    logging.getLogger("mine").info("read %s", path)

@task("other")
def other(job: Job) -> None: ...

tasks = [other]
number = 7

def make(queue):
    return Worker(queue, tasks=[ingest], concurrency=1, worker_id="made")

def nothing(queue):
    return None
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module beside which the command is run."""
    (tmp_path / "mine_tasks.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return "mine_tasks"


@pytest.mark.parametrize("target", ["mine_tasks", "mine_tasks:ingest", "mine_tasks:make"])
def test_it_runs_tasks_until_it_is_told_to_stop(
    telha_process: Callable[..., object], path: Path, module: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Queue.open(path) as queue:
        job = queue.enqueue(ACME, "ingest", b'{"path":"a.pdf"}')
    monkeypatch.delenv("TELHA_QUEUE_PATH")
    process = telha_process("--path", path, "worker", "--log-format", "json", target)
    lines = []
    while not any(line.get("text") == "read a.pdf" for line in lines):
        lines.append(json.loads(process.stderr.readline()))  # type: ignore[attr-defined]
    process.send_signal(signal.SIGTERM)  # type: ignore[attr-defined]
    assert process.wait(20) == 0  # type: ignore[attr-defined]
    [line] = [line for line in lines if line["text"] == "read a.pdf"]
    assert (line["job"], line["kind"], line["logger"]) == (str(job.job_id), "ingest", "mine")
    with Queue.open(path) as queue:
        assert queue.get(ACME, job.job_id).state is JobState.COMPLETED


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("no_such_module", "telha: there is no module no_such_module\n"),
        ("mine_tasks:nobody", "telha: module mine_tasks has no nobody\n"),
        ("mine_tasks:number", "telha: a worker is made of tasks, or of a function that returns a Worker, not of int\n"),
        ("mine_tasks:nothing", "returns a Worker, not of NoneType\n"),
        ("json", "telha: module json has no tasks: functions with @task in front\n"),
    ],
)
def test_a_target_that_is_none_ends_it_with_a_line(
    telha: Callable[..., object], path: Path, module: str, target: str, says: str
) -> None:
    Queue.open(path).close()
    ended = telha("worker", target)
    assert ended.exit_code == 2  # type: ignore[attr-defined]
    assert ended.stderr.endswith(says)  # type: ignore[attr-defined]


def test_a_setting_that_cannot_be_is_usage(telha: Callable[..., object], path: Path, module: str) -> None:
    Queue.open(path).close()
    ended = telha("worker", "--concurrency", 0, module)
    assert (ended.exit_code, ended.stderr) == (  # type: ignore[attr-defined]
        2, "telha: concurrency is from 1 to 10,000, not 0\n",
    )  # fmt: skip


def test_top_shows_a_worker_and_says_when_there_is_none(
    telha: Callable[..., object], telha_process: Callable[..., object], path: Path, module: str, tmp_path: Path
) -> None:
    address = f"unix:{tmp_path / 'health.sock'}"
    ended = telha("top", address)
    assert ended.exit_code == 4  # type: ignore[attr-defined]
    assert ended.stderr.startswith(f"telha: no worker answers at {address}: ")  # type: ignore[attr-defined]
    process = telha_process("worker", "--create", "--health", address, f"{module}:tasks")
    assert "works on other" in process.stderr.readline()  # type: ignore[attr-defined]
    shown = telha("top", "--once", address).stdout  # type: ignore[attr-defined]
    for word in ("ready", "well", "general", "other"):
        assert word in shown
    assert telha("top", "--once", address, address).exit_code == 0  # type: ignore[attr-defined]
    status = json.loads(telha("--json", "top", address).stdout)  # type: ignore[attr-defined]
    assert status["lanes"] == {"general": {"permits": 16, "used": 0, "waiting": 0}}
    process.terminate()  # type: ignore[attr-defined]
    assert process.wait(20) == 0  # type: ignore[attr-defined]
