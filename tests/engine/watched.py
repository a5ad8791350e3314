"""An engine that tells when somebody is about to sleep in it: for tests of those who wait."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from telha_queue.engine import Engine

LONG_SECS = 60
SOON_SECS = 10
"""What is woken is back long before this, even on a busy machine; what sleeps on is back after LONG_SECS."""


class Watched:
    """The engine it is given, and a semaphore and a list beside it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.asleep = threading.Semaphore(0)
        self.slept_us: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def wait_ready(self, *arguments: Any) -> None:
        """Tell, and for how long, and sleep."""
        self.slept_us.append(arguments[-1])
        self.asleep.release()
        self._engine.wait_ready(*arguments)

    def wait_ended(self, *arguments: Any) -> None:
        """The same."""
        self.slept_us.append(arguments[-1])
        self.asleep.release()
        self._engine.wait_ended(*arguments)


def interrupted(watched: Watched, call: Callable[[], object]) -> None:
    """Make a call that sleeps, press Ctrl-C when it does, and see it end by that at once."""

    def interrupt() -> None:
        watched.asleep.acquire(timeout=SOON_SECS)
        os.kill(os.getpid(), signal.SIGINT)

    helper = threading.Thread(target=interrupt)
    helper.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        call()
    helper.join()
    assert time.monotonic() - started < SOON_SECS
