"""Processes that run handlers, for work that would keep Python's lock: started with spawn, one job at a time each.

Never forked: a child of a process that has RocksDB open may not run. A process that is killed, by the system or because
its job's time was up, costs its job an attempt and a crash, and is replaced when the next job comes.
"""

from __future__ import annotations

import atexit
import logging
import multiprocessing
import multiprocessing.util  # its end of the program comes after ours: it waits for processes
import os
import signal
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from multiprocessing.reduction import ForkingPickler
from queue import SimpleQueue
from typing import TYPE_CHECKING
from weakref import WeakSet

from telha_queue.errors import ConfigError, JobError
from telha_queue.worker import pipe
from telha_queue.worker.child import SIGNALS, serve
from telha_queue.worker.logs import current
from telha_queue.worker.verdict import Failed, GivenBack, Outcome, described, outcome_of

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from telha_queue.worker.claim import Claim
    from telha_queue.worker.task import AnyTask
    from telha_queue.worker.verdict import ErrorRules

_END_SECS = 2.0
_UNGUARDED = 'a script that starts workers needs `if __name__ == "__main__":`'


class Children:
    """The processes of one worker: as many as are to run a job at the same time. Safe to use from many threads."""

    def __init__(self, tasks: Sequence[AnyTask], rules: ErrorRules) -> None:
        self._names = {task.kind: pipe.name_of(task) for task in tasks if task.limits.is_process}
        self._rules = rules
        self._lock = threading.Lock()
        self._idle: list[_Child] = []
        self._all: set[_Child] = set()
        self._is_stopped = False
        self._pid = os.getpid()
        if self._names:
            try:
                ForkingPickler.dumps(rules)
            except Exception as error:
                raise ConfigError(f"rules for tasks in processes name classes that a module has: {error}") from error
            _living.add(self)

    def run(self, claim: Claim) -> Outcome:
        """Have a process run the job; returns when it has ended, one way or another."""
        try:
            body = pipe.job_body(claim.record)
        except Exception as error:  # noqa: BLE001  # as in a thread, where the handler meets it
            return outcome_of(error, self._rules)
        try:
            child = self._taken()
        except Exception as error:  # noqa: BLE001  # no room for another process, or no right to have one
            return Failed(f"no process could be started: {described(error)}")
        try:
            outcome = child.run(claim, body)
        except Exception as error:  # noqa: BLE001  # what came through the pipe may be anything
            outcome = child.death(error)
        self._put_back(child)
        return outcome

    @property
    def pids(self) -> list[int]:
        """Of the processes that there are."""
        with self._lock:
            return [child.pid for child in self._all]

    def stop(self) -> None:
        """End all of them, those at work too."""
        if os.getpid() != self._pid:
            return  # in a fork of this process they are somebody else's
        with self._lock:
            self._is_stopped = True
            children, idle = list(self._all), list(self._idle)
            self._all.clear()
            self._idle.clear()
        for child in children:
            child.kill()
        for child in idle:
            child.end()
        for child in children:
            child.ended.wait(_END_SECS)  # the others belong to the threads that run them

    def _taken(self) -> _Child:
        with self._lock:
            if self._is_stopped:
                raise OSError("the worker has stopped")
            while self._idle:
                child = self._idle.pop()
                if child.is_alive():
                    return child
                self._all.discard(child)
                child.end()
            child = _Child(self._names, self._rules)
            self._all.add(child)
            return child

    def _put_back(self, child: _Child) -> None:
        with self._lock:
            is_over = child.is_killed or self._is_stopped
            if is_over:
                self._all.discard(child)
            else:
                self._idle.append(child)
        if is_over:
            child.kill()
            child.end()


_living: WeakSet[Children] = WeakSet()


@atexit.register
def _stop_all() -> None:
    """When a program ends without having stopped its workers, nothing else would end their processes."""
    for children in list(_living):
        children.stop()


class _Child:
    """One process, and the pipe to it. A thread writes into the pipe, so nobody has to wait until that can be done.

    It belongs to the thread that runs a job in it, or to whoever takes it from the idle; others may `kill` it.
    """

    def __init__(self, names: dict[str, tuple[str, str]], rules: ErrorRules) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=serve,
            args=(theirs, names, rules, logging.getLogger().getEffectiveLevel()),
            daemon=False,  # which may have processes of its own
            name="telha-task",
        )
        self._due: SimpleQueue[bytes | None] = SimpleQueue()
        self._lock = threading.RLock()
        self._claim: Claim | None = None
        self._number = pipe.NO_JOB
        self._has_begun = False
        self._how = ""
        self.is_killed = False
        self.ended = threading.Event()
        self._writer = threading.Thread(target=self._write, daemon=True, name="telha-pipe")
        try:
            self._writer.start()
            _start(self._process)
        except BaseException:
            self._due.put(None)
            self._connection.close()
            raise
        finally:
            theirs.close()
        assert self._process.pid is not None
        self.pid = self._process.pid
        self._watched = _watched(self._process)

    def run(self, claim: Claim, body: bytes) -> Outcome:
        """Raises whatever comes of a process that dies or sends what nobody can read."""
        with self._lock:
            self._claim = claim
        claim.stop = lambda: self._stop(claim)
        try:
            return GivenBack() if claim.decided else self._outcome(claim, body)  # else by who could not stop it yet
        finally:
            with self._lock:
                self._claim = None

    def kill(self) -> None:
        """Waits for nobody, whatever the process does and whoever else holds its end of the pipe."""
        self.is_killed = True
        with self._lock:  # its number is soon another's, once the connection is closed
            self._process.kill()
            with suppress(OSError):
                _shut(self._connection)

    def is_alive(self) -> bool:
        return self._process.is_alive()

    def end(self) -> str:
        """Wait for its end, and let go of it; returns how it came about."""
        if not self.ended.is_set():
            wait([self._watched], _END_SECS)
            code = self._process.exitcode
            self._how = "its pipe was closed" if code is None else _how(code)
            self.kill()
            wait([self._watched], _END_SECS)
            self._due.put(None)
            self._writer.join()
            with self._lock:
                self._connection.close()
            if self._watched != self._process.sentinel:
                os.close(self._watched)
            self._process.join(0)
            self.ended.set()
        return self._how

    def death(self, error: Exception) -> Failed:
        """What became of a job when nothing more came from the process but that."""
        if isinstance(error, (EOFError, ConnectionError)):
            how = self.end()
        else:
            self.kill()
            self.end()
            how = f"what it sent cannot be read: {described(error)}"
        if self._has_begun:
            return Failed(f"the process of the handler died: {how}", cause="crash")
        return Failed(f"the process could not start: {how}; {_UNGUARDED}")

    def _stop(self, claim: Claim) -> None:
        """Kill it if it is still at work on that job, and not on the next."""
        with self._lock:
            if self._claim is claim:
                self.kill()

    def _outcome(self, claim: Claim, body: bytes) -> Outcome:
        self._number += 1
        self._due.put(pipe.message(pipe.JOB, self._number, body))
        number = self._number
        claim.job.lost.on_set(lambda: self._tell_lost(claim, number))
        while True:
            if self._connection not in wait([self._connection, self._watched]):
                raise EOFError  # it is dead, though a process that it has started may still hold its end of the pipe
            letter, about, content = pipe.parts(self._connection.recv_bytes(pipe.MAX_MESSAGE_BYTES))
            if letter == pipe.HELLO:
                self._has_begun = True
            elif letter == pipe.LOG:
                _log(claim if about == number else None, content)
            elif about > number:
                raise ValueError(f"there is no job {about} yet")
            elif about == number:  # else a thread that an earlier handler has left behind says it
                outcome = pipe.outcome_in(letter, content)
                if outcome is not None:
                    return outcome
                self._serve(claim, letter, content)

    def _serve(self, claim: Claim, letter: bytes, content: bytes) -> None:
        if letter == pipe.PROGRESS:
            claim.progress(pipe.progress_in(content))
            return
        if letter not in (pipe.CHECKPOINT, pipe.STATS):
            raise ValueError(f"no message begins with {letter!r}")
        error = b""
        try:
            if letter == pipe.CHECKPOINT:
                claim.checkpoint(*pipe.checkpoint_in(content))
            else:
                claim.stats(content.decode())
        except JobError as refused:
            error = pipe.error_body(refused)
        self._due.put(pipe.message(pipe.REPLY, self._number, error))

    def _tell_lost(self, claim: Claim, number: int) -> None:
        self._due.put(pipe.message(pipe.LOST, number, (claim.job.lost.reason or "lost").encode()))

    def _write(self) -> None:
        while (message := self._due.get()) is not None:
            try:
                self._connection.send_bytes(message)
            except Exception:  # noqa: BLE001  # whoever reads from it is to find out too, and says how it ended
                with suppress(OSError):
                    _shut(self._connection)


def _start(process: BaseProcess) -> None:
    """Start it with signals blocked until it has seen to them: they reach the whole group, and are not meant for it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    resource_tracker.ensure_running()  # which would be started in between, and unblocks them
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _watched(process: BaseProcess) -> int:
    """A descriptor that can be read when the process has ended, as its sentinel cannot be while forks of it live."""
    assert process.pid is not None
    try:
        return os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # another system, or it has ended
        return process.sentinel


def _shut(connection: Connection) -> None:
    """Wake who reads from it and who writes into it, whoever else holds the other end."""
    with socket.socket(fileno=os.dup(connection.fileno())) as end:
        end.shutdown(socket.SHUT_RDWR)


def _how(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal
        return f"signal {-code}"


def _log(claim: Claim | None, content: bytes) -> None:
    line = pipe.log_in(content)
    token = current.set(None if claim is None else claim.record)
    try:
        with suppress(Exception):  # a filter of the program's: no news of the process
            logging.getLogger(line.name).handle(line)
    finally:
        current.reset(token)
