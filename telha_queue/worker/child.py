"""The other side of `children.py`: a process that runs handlers, one at a time, for a worker at the end of a pipe.

It opens no queue: what a handler asks of its job goes through the pipe, and it ends when the pipe does. Signals that
reach the whole group do not end it: the worker hears them too, and decides.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import TYPE_CHECKING

from telha_queue.errors import JobError
from telha_queue.worker import handler, pipe
from telha_queue.worker.job import Job, NoQueue
from telha_queue.worker.logs import current
from telha_queue.worker.verdict import ErrorRules, Outcome, outcome_of

if TYPE_CHECKING:
    from telha_queue.worker.task import AnyTask

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Blocked where the process is started, until it has seen to them."""


class _Link(NoQueue):
    """One job's way to the worker. Threads that the handler has left behind may still have it. Thread-safe."""

    def __init__(self, side: _Side, number: int) -> None:
        self._side = side
        self.number = number
        self._asking = threading.Lock()
        self._replies: SimpleQueue[JobError | None] = SimpleQueue()
        self._is_over = False

    def checkpoint(self, continuation: bytes, durable: bool) -> None:
        self._ask(pipe.CHECKPOINT, pipe.checkpoint_body(continuation, durable))

    def stats(self, detail: str) -> None:
        self._ask(pipe.STATS, detail.encode())

    def progress(self, said: tuple[float, str | None] | None) -> None:
        if not self._is_over:
            self._side.send(pipe.message(pipe.PROGRESS, self.number, pipe.progress_body(said)))

    def end_progress(self) -> None:
        pass  # the worker sees to it

    def answer(self, error: JobError | None) -> None:
        """What the worker says to the one who asks; None when it is done."""
        self._replies.put(error)

    def end(self) -> None:
        """From now on whoever asks is refused, and whoever waits for an answer."""
        self._is_over = True
        self._replies.put(_over())

    def _ask(self, letter: bytes, body: bytes) -> None:
        message = pipe.message(letter, self.number, body)
        with self._asking:  # one at a time, so an answer is to whoever waits
            if self._is_over:
                raise _over()
            self._side.send(message)
            error = self._replies.get()
        if error is not None:
            raise error


def _over() -> JobError:
    return JobError("that attempt is over")


class _Side:
    """This end of the pipe; a thread reads what the worker says."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._send_lock = threading.Lock()
        self.jobs: SimpleQueue[tuple[Job, _Link]] = SimpleQueue()
        self._in_hand: tuple[Job, _Link] | None = None
        threading.Thread(target=self._read, daemon=True, name="telha-pipe").start()

    def send(self, message: bytes) -> None:
        with self._send_lock:
            self._connection.send_bytes(message)

    def number_here(self) -> int:
        """Of the job in hand, in the thread that runs its handler."""
        in_hand = self._in_hand
        return in_hand[1].number if in_hand is not None and current.get() is in_hand[0].record else pipe.NO_JOB

    def _read(self) -> None:
        try:
            while True:
                self._hear(*pipe.parts(self._connection.recv_bytes()))
        except (EOFError, OSError):
            os._exit(0)  # the worker is gone, and with it whoever waits for a result
        except BaseException:  # noqa: BLE001  # nobody can reach this process any more
            _die()

    def _hear(self, letter: bytes, number: int, body: bytes) -> None:
        if letter == pipe.JOB:
            link = _Link(self, number)
            self._in_hand = Job(pipe.record_of(body), link), link
            self.jobs.put(self._in_hand)
        elif self._in_hand is not None and self._in_hand[1].number == number:  # else it is about an earlier job
            job, link = self._in_hand
            if letter == pipe.REPLY:
                link.answer(pipe.error_in(body) if body else None)
            else:
                job.lost.set(body.decode())


class _PipeHandler(logging.Handler):
    """Sends what is logged here to the worker, whose log has the handlers and knows which job it is about."""

    def __init__(self, side: _Side) -> None:
        super().__init__()
        self._side = side

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._side.send(pipe.message(pipe.LOG, self._side.number_here(), pipe.log_body(record)))
        except Exception:  # noqa: BLE001  # as with every handler of logging: a line is lost, and not the job
            self.handleError(record)


def serve(connection: Connection, tasks: dict[str, tuple[str, str]], rules: ErrorRules, log_level: int) -> None:
    """Run jobs until the pipe is closed. `tasks` says for each kind in which module and by what name its task is."""
    _bear_signals()
    try:
        side = _Side(connection)
        side.send(pipe.message(pipe.HELLO, pipe.NO_JOB))
        logging.basicConfig(level=log_level, handlers=[_PipeHandler(side)], force=True)
        _run_jobs(side, tasks, rules)
    except BaseException:  # noqa: BLE001  # at once: threads that a handler has left would keep the pipe open
        _die()


def _run_jobs(side: _Side, tasks: dict[str, tuple[str, str]], rules: ErrorRules) -> None:
    pid = os.getpid()
    found: dict[str, AnyTask] = {}
    while True:
        job, link = side.jobs.get()
        outcome = _outcome(job, tasks, found, rules)
        if os.getpid() != pid:
            os._exit(0)  # a fork of the handler's that came back here: the job is not its own
        link.end()
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # closed by the handler, perhaps
                stream.flush()  # for a process is killed in the end
        side.send(pipe.outcome_message(link.number, outcome))


def _outcome(job: Job, tasks: dict[str, tuple[str, str]], found: dict[str, AnyTask], rules: ErrorRules) -> Outcome:
    try:
        if job.kind not in found:
            found[job.kind] = pipe.find(*tasks[job.kind])
    except BaseException as error:  # noqa: BLE001  # whatever the module of the task raises
        return outcome_of(error, rules)
    return handler.call(found[job.kind], job, rules, worker_id=None)


def _bear_signals() -> None:
    """Let signals pass; not ignore them, which the programs that a handler starts would inherit."""
    for number in SIGNALS:
        signal.signal(number, lambda number, frame: None)
        signal.siginterrupt(number, False)
    os.register_at_fork(after_in_child=_heed_signals)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _heed_signals() -> None:
    """In processes that a handler forks, such as those of a pool, which are ended by a signal."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _die() -> None:
    traceback.print_exc()
    os._exit(1)
