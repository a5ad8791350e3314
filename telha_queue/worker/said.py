"""What a handler says of its progress, on its way to the store: at most once a second, and the newest counts."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from telha_queue.errors import JobError, LeaseConflict

if TYPE_CHECKING:
    from telha_queue.job import JobRecord
    from telha_queue.queue import Queue

log = logging.getLogger("telha_queue.worker")

PAUSE_SECS = 1.0
"""Between two writes for one job."""


class Said:
    """Of one job. Safe to use from many threads.

    What is said within a second after a write is kept, and written by the first call after that second or at the end
    of the handler. A write that fails is no failure of the handler's: what was said counts as kept.
    """

    __slots__ = ("_lock", "_newest", "_queue", "_record", "_write_at")

    def __init__(self, queue: Queue, record: JobRecord) -> None:
        self._queue = queue
        self._record = record
        self._lock = threading.Lock()
        self._newest: tuple[float, str | None] | None = None
        self._write_at = 0.0

    def say(self, fraction: float, text: str | None) -> None:
        """Write it, or keep it."""
        with self._lock:
            self._newest = fraction, text
            if time.monotonic() >= self._write_at:
                self._write(*self._newest)

    def end(self) -> None:
        """Write what is kept: the handler has ended."""
        with self._lock:
            if self._newest is not None:
                self._write(*self._newest)

    def _write(self, fraction: float, text: str | None) -> None:
        self._write_at = time.monotonic() + PAUSE_SECS
        try:
            self._queue.progress(self._record, fraction, text)
        except LeaseConflict:
            self._newest = None  # nobody will take it any more; the job learns of it by `lost`
        except JobError as error:
            log.warning("progress of job %s cannot be written now: %s", self._record.job_id, error)
        else:
            self._newest = None
