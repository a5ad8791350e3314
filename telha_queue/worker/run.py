"""A worker as the whole of a program: signals, a line on the terminal, an exit code."""

from __future__ import annotations

import select
import signal
import socket
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

    from telha_queue.worker.runtime import Worker

DRAINED, GAVE_BACK, BROKEN = 0, 6, 7
"""Exit codes: every handler ended; some jobs had to be given back; the worker could not go on. See docs/cli.md."""
_LOOK_SECS = 0.5


def run(worker: Worker, *, shows_progress: bool | None = None) -> int:
    """Work until SIGTERM or SIGINT; then drain, and a second signal ends that at once. Returns an exit code.

    In the main thread, for only there can signals be caught. On a terminal a line says how it is going.
    """
    told: list[int] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        if told:
            worker.hurry()
        told.append(number)  # takes no lock: a handler runs between any two steps of the main thread

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
    wakes, woken = socket.socketpair()
    for end in (wakes, woken):
        end.setblocking(False)
    wakeup_before = signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
    line = _Line(worker) if (sys.stderr.isatty() if shows_progress is None else shows_progress) else None
    try:
        worker.start()
        while not told and worker.is_healthy:
            if line is not None:
                line.show()
            select.select([wakes], [], [], _LOOK_SECS)
        is_broken = not told
        drained = worker.stop()
    finally:
        signal.set_wakeup_fd(wakeup_before)
        for number, handler in before.items():
            signal.signal(number, handler)
        wakes.close()
        woken.close()
        if line is not None:
            line.end()
    return BROKEN if is_broken else DRAINED if drained else GAVE_BACK


class _Line:
    """One line on stderr, written again and again."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._width = 0

    def show(self) -> None:
        counters, load = self._worker.counters, self._worker.load().values()
        used, permits = sum(share.used for share in load), sum(share.permits for share in load)
        text = f"{used}/{permits} at work, {counters.total('completed'):,} completed"
        for ending in ("failed", "dead", "lost"):
            if count := counters.total(ending):
                text += f", {count:,} {ending}"
        if self._worker.store_error is not None:
            text += ", the store fails"
        sys.stderr.write(f"\r{text.ljust(self._width)}")
        sys.stderr.flush()
        self._width = len(text)

    def end(self) -> None:
        sys.stderr.write("\n")
