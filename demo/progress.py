"""What is to be seen while the demo runs: a bar on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event

from telha_queue import JobState, Queue

REDRAW_SECS = 0.1
LINE_SECS = 5.0
BAR_WIDTH = 28

Show = Callable[[int, str], None]
"""Draws how many jobs are done, and a text."""


class Progress:
    """Watches a queue, which is the truth about how far the jobs are."""

    def __init__(self, queue: Queue, jobs: int, worker_ended: Event) -> None:
        self._queue = queue
        self._jobs = jobs
        self._worker_ended = worker_ended
        self._started_at = time.monotonic()

    def watch(self) -> float:
        """Draw until no job is pending or leased, or a worker ended before its time; returns seconds since start."""
        with _bar(self._jobs) as show:
            while True:
                counts = self._queue.counts()
                secs = time.monotonic() - self._started_at
                done = counts[JobState.COMPLETED]
                dead = f", {counts[JobState.DEAD]:,} dead" if counts[JobState.DEAD] else ""
                show(done, f"{done / secs:,.0f} jobs/s, {counts[JobState.LEASED]:,} leased{dead}")
                is_settled = counts[JobState.PENDING] == counts[JobState.LEASED] == 0
                if is_settled or self._worker_ended.wait(REDRAW_SECS):
                    return secs


@contextmanager
def _bar(jobs: int) -> Iterator[Show]:
    if not sys.stdout.isatty():
        yield _lines(jobs)
        return
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as RichProgress
    except ImportError:
        yield _line(jobs)
        print("\r\x1b[K", end="", flush=True)
        return
    columns = BarColumn(BAR_WIDTH), MofNCompleteColumn(), TextColumn("{task.fields[text]}")
    with RichProgress(*columns, transient=True) as bar:
        task = bar.add_task("", total=jobs, text="")
        yield lambda done, text: bar.update(task, completed=done, text=text)


def _line(jobs: int) -> Show:
    """One line of a terminal, written over and over."""

    def show(done: int, text: str) -> None:
        bar = "#" * (BAR_WIDTH * done // jobs)
        print(f"\r\x1b[K{bar:.<{BAR_WIDTH}} {done:,}/{jobs:,} {text}", end="", flush=True)

    return show


def _lines(jobs: int) -> Show:
    """A line every few seconds, for logs."""
    next_at = time.monotonic() + LINE_SECS

    def show(done: int, text: str) -> None:
        nonlocal next_at
        if time.monotonic() >= next_at:
            next_at += LINE_SECS
            print(f"{done:,}/{jobs:,} {text}", flush=True)

    return show
