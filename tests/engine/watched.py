"""An engine that tells when somebody is about to sleep in it: for tests of those who wait."""

from __future__ import annotations

import threading
from typing import Any

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
