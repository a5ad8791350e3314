"""Workers for tests: started on the queue under test, stopped after it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from telha_queue import Queue
from telha_queue.worker import Worker

sys.path.append(str(Path(__file__).parent))  # where the tasks are that processes of their own have to import
PATIENCE_SECS = 20


@pytest.fixture
def work(queue: Queue) -> Iterator[Callable[..., Worker]]:
    """work(task, ..., concurrency=2): a worker on the queue under test, at work."""
    started: list[Worker] = []

    def start(*tasks: Any, **settings: Any) -> Worker:
        worker = Worker(settings.pop("queue", queue), tasks=tasks, **settings)
        started.append(worker)
        worker.start()
        return worker

    yield start
    for worker in started:
        worker.stop(grace_secs=PATIENCE_SECS)


@pytest.fixture
def until() -> Callable[[Callable[[], object]], None]:
    """until(condition): wait for what should happen soon, looking again and again."""

    def wait(condition: Callable[[], object]) -> None:
        pause = threading.Event()
        for _ in range(PATIENCE_SECS * 200):
            if condition():
                return
            pause.wait(0.005)
        pytest.fail("it did not happen")

    return wait
