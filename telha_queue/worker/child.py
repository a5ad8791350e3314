"""The other side of `children.py`: a process that runs handlers, one at a time, for a worker at the end of a pipe.

It opens no queue: what a handler asks of its job goes through the pipe, and it ends when the pipe does.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import TYPE_CHECKING

from telha_queue.errors import JobError
from telha_queue.job import JobRecord
from telha_queue.worker import pipe
from telha_queue.worker.job import Job, NoQueue
from telha_queue.worker.verdict import Done, ErrorRules, Outcome, outcome_of

if TYPE_CHECKING:
    from telha_queue.worker.task import AnyTask


class _Refused(JobError):
    """The worker could not do what the handler asked of its job; the text says which error it met."""


class _Side(NoQueue):
    """The link of the job in hand; a thread reads what the worker says."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._replies: SimpleQueue[str] = SimpleQueue()
        self.jobs: SimpleQueue[JobRecord] = SimpleQueue()
        self._job: Job | None = None
        threading.Thread(target=self._read, daemon=True, name="telha-pipe").start()

    def take(self, record: JobRecord) -> Job:
        self._job = Job(record, self)
        return self._job

    def tell(self, outcome: Outcome) -> None:
        self._connection.send_bytes(pipe.outcome_message(outcome))

    def checkpoint(self, continuation: bytes) -> None:
        self._ask(pipe.CHECKPOINT + bytes(continuation))

    def stats(self, detail: str) -> None:
        self._ask(pipe.STATS + detail.encode())

    def progress(self) -> None:
        self._connection.send_bytes(pipe.PROGRESS)

    def _ask(self, message: bytes) -> None:
        self._connection.send_bytes(message)
        if error := self._replies.get():
            raise _Refused(error)

    def _read(self) -> None:
        try:
            while True:
                message = self._connection.recv_bytes()
                kind, body = message[:1], message[1:]
                if kind == pipe.JOB:
                    self.jobs.put(pipe.record_of(body))
                elif kind == pipe.REPLY:
                    self._replies.put(body.decode())
                elif kind == pipe.LOST and self._job is not None:
                    self._job.lost.set(body.decode())
        except (EOFError, OSError):
            os._exit(0)  # the worker is gone, and with it whoever waits for a result


class _PipeHandler(logging.Handler):
    """Sends what is logged here to the worker, whose log has the handlers and knows which job it is about."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection

    def emit(self, record: logging.LogRecord) -> None:
        self._connection.send_bytes(pipe.log_message(record))


def serve(connection: Connection, tasks: dict[str, tuple[str, str]], rules: ErrorRules, log_level: int) -> None:
    """Run jobs until the pipe is closed. `tasks` says for each kind in which module and by what name its task is."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the worker decides what it means
    logging.basicConfig(level=log_level, handlers=[_PipeHandler(connection)], force=True)
    side = _Side(connection)
    found: dict[str, AnyTask] = {}
    while True:
        job = side.take(side.jobs.get())
        try:
            if job.kind not in found:
                found[job.kind] = pipe.find(*tasks[job.kind])
            found[job.kind].run(job)
        except Exception as error:  # noqa: BLE001  # whatever a handler raises is its outcome
            side.tell(outcome_of(error, rules))
        else:
            side.tell(Done())
