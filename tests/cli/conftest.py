"""A queue directory, ways to fill it, and the command to be run on it: in this process, or in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from telha_queue.cli.app import telha as command
from telha_queue.config import QueueConfig
from telha_queue.job import JobRecord
from telha_queue.queue import Queue
from telha_queue.scope import Scope
from telha_queue.testing import ManualClock

ACME = Scope.named("acme")
COMMAND = [sys.executable, "-m", "telha_queue.cli"]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the queue is or will be; the environment says so to the command, and says nothing else."""
    for variable in list(os.environ):
        if variable.startswith("TELHA_") or variable in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(variable)
    where = tmp_path / "queue"
    monkeypatch.setenv("TELHA_QUEUE_PATH", str(where))
    return where


@pytest.fixture
def opened(path: Path, clock: ManualClock) -> Callable[[], AbstractContextManager[Queue]]:
    """Opens the queue on the manual clock, as a program would; closed after the block, so that the command can."""

    @contextmanager
    def open_it() -> Iterator[Queue]:
        with Queue.open(path, QueueConfig(durability="os"), clock) as queue:
            yield queue

    return open_it


@pytest.fixture
def telha(path: Path) -> Callable[..., Result]:
    """telha("jobs", "list"): run the command in this process; what it does not catch itself fails the test."""

    def run(*words: object, stdin: bytes | None = None) -> Result:
        arguments = [str(word) for word in words]
        return CliRunner().invoke(command, arguments, prog_name="telha", input=stdin, catch_exceptions=False)

    return run


@pytest.fixture
def telha_process(path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """telha_process("jobs", "list"): run the command in a process of its own, its output in pipes."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: object, **how: Any) -> subprocess.Popen[str]:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen([*COMMAND, *map(str, words)], **{**pipes, **how})
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def kill_job(clock: ManualClock) -> Callable[..., JobRecord]:
    """kill_job(queue, "boom"): enqueue a job, lease it and fail it for good."""

    def kill(queue: Queue, error: str = "boom", *, kind: str = "ingest:md", scope: Scope = ACME) -> JobRecord:
        queue.enqueue(scope, kind)
        clock.advance(1.5)
        lease = queue.lease_next(scope, kind, worker_id="w1")
        assert lease is not None
        clock.advance(0.25)
        return queue.fail(lease, error, retryable=False)

    return kill
