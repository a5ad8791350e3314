"""Threads that start together, report what went wrong, and do not hang the run."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE_SECS = 300
"""After so long, threads hang. Judges no speed."""


def at_once(calls: list[Callable[[], object]], patience_secs: float = PATIENCE_SECS) -> list[str]:
    """Run each in a thread of its own, from a common start; what went wrong, hanging included."""
    faults: list[str] = []
    start = threading.Barrier(len(calls))

    def run(call: Callable[[], object]) -> None:
        try:
            start.wait(patience_secs)
            call()
        except Exception as error:  # noqa: BLE001  # it is told, whatever it is
            where = traceback.extract_tb(error.__traceback__)[-1]
            faults.append(f"{type(error).__name__}: {error} (line {where.lineno} of {where.filename})")

    threads = [threading.Thread(target=run, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(patience_secs)
    hanging = sum(thread.is_alive() for thread in threads)
    if hanging:
        faults.append(f"{hanging} of {len(threads)} threads hang")
    return faults


@contextmanager
def restless() -> Iterator[None]:
    """Let threads change places as often as Python can."""
    interval_secs = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(interval_secs)
