"""A worker by hand: lease a job, handle it, say how it went. Programs use `telha_queue.worker`, which does more."""

from __future__ import annotations

import threading
from collections.abc import Callable

from telha_queue import JobRecord, Queue
from telha_queue.errors import LeaseConflict, StorageError, StoreClosed

WAIT_SECS = 60


class Worker(threading.Thread):
    """Works in a thread until the queue is closed, which ends its wait. Sets `ended` when it is gone."""

    def __init__(
        self,
        name: str,
        queue: Queue,
        kinds: str,
        handle: Callable[[JobRecord], None],
        ended: threading.Event,
    ) -> None:
        super().__init__(name=name)
        self._queue = queue
        self._kinds = kinds
        self._work_on = handle
        self._ended = ended

    def run(self) -> None:
        try:
            while True:
                lease = self._queue.lease_next_any(self._kinds, worker_id=self.name, wait_secs=WAIT_SECS)
                if lease is not None:
                    self._work(lease)
        except StoreClosed:
            pass  # time to go home; a lease still held waits for its deadline and the next reaper
        finally:
            self._ended.set()

    def _work(self, lease: JobRecord) -> None:
        try:
            try:
                self._work_on(lease)
            except (LeaseConflict, StorageError):
                raise  # no fault of this job
            except Exception as error:  # noqa: BLE001  whatever a handler raises is a failed attempt
                self._queue.fail(lease, f"{type(error).__name__}: {error}")
            else:
                self._queue.complete(lease)
        except LeaseConflict:
            pass  # we were presumed dead and somebody else has the job: drop the result
