"""Processes that run handlers, for work that would keep Python's lock: started with spawn, one job at a time each.

Never forked: a child of a process that has RocksDB open may not run. A process that is killed, by the system or because
its job's time was up, costs its job an attempt and a crash, and is replaced when the next job comes.
"""

from __future__ import annotations

import logging
import multiprocessing
import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from telha_queue.errors import JobError
from telha_queue.worker import pipe
from telha_queue.worker.child import serve
from telha_queue.worker.logs import current
from telha_queue.worker.verdict import Failed, Outcome

if TYPE_CHECKING:
    from telha_queue.worker.claim import Claim
    from telha_queue.worker.task import AnyTask
    from telha_queue.worker.verdict import ErrorRules

_END_SECS = 2.0


class Children:
    """The processes of one worker: as many as are to run a job at the same time. Safe to use from many threads."""

    def __init__(self, tasks: Sequence[AnyTask], rules: ErrorRules) -> None:
        self._names = {task.kind: pipe.name_of(task) for task in tasks if task.limits.is_process}
        self._rules = rules
        self._lock = threading.Lock()
        self._idle: list[_Child] = []
        self._all: set[_Child] = set()
        self._is_stopped = False

    def run(self, claim: Claim) -> Outcome:
        """Have a process run the job; returns when it has ended, one way or another."""
        try:
            child = self._taken()
        except OSError as error:  # no room for another process
            return Failed(f"no process could be started: {error}")
        try:
            outcome = child.run(claim)
        except (EOFError, OSError):
            with self._lock:
                self._all.discard(child)
            return Failed(f"the process of the handler died: {child.end()}", cause="crash")
        with self._lock:
            self._idle.append(child)
        return outcome

    @property
    def pids(self) -> list[int]:
        """Of the processes that there are."""
        with self._lock:
            return [child.pid for child in self._all]

    def stop(self) -> None:
        """End all of them, those at work too."""
        with self._lock:
            self._is_stopped = True
            children = list(self._all)
            self._all.clear()
            self._idle.clear()
        for child in children:
            child.kill()
        for child in children:
            child.end()

    def _taken(self) -> _Child:
        with self._lock:
            if self._is_stopped:
                raise OSError("the worker has stopped")
            while self._idle:
                child = self._idle.pop()
                if child.is_alive():
                    return child
                self._all.discard(child)
            child = _Child(self._names, self._rules)
            self._all.add(child)
            return child


class _Child:
    """One process, and the pipe to it."""

    def __init__(self, names: dict[str, tuple[str, str]], rules: ErrorRules) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=serve,
            args=(theirs, names, rules, logging.getLogger().getEffectiveLevel()),
            daemon=True,
            name="telha-task",
        )
        self._send_lock = threading.Lock()
        self._lock = threading.Lock()
        self._claim: Claim | None = None
        try:
            self._process.start()
        finally:
            theirs.close()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def run(self, claim: Claim) -> Outcome:
        with self._lock:
            self._claim = claim
        claim.stop = lambda: self._stop(claim)
        claim.job.lost.on_set(lambda: self._tell_lost(claim))
        self._send(pipe.job_message(claim.record))
        while True:
            message = self._connection.recv_bytes()
            outcome = pipe.outcome_in(message)
            if outcome is not None:
                with self._lock:
                    self._claim = None
                return outcome
            self._serve(claim, message[:1], message[1:])

    def kill(self) -> None:
        self._process.kill()

    def _stop(self, claim: Claim) -> None:
        """Kill it if it is still at work on that job, and not on the next."""
        with self._lock:
            if self._claim is claim:
                self.kill()

    def is_alive(self) -> bool:
        return self._process.is_alive()

    def end(self) -> str:
        """Wait for its end; returns how it came about."""
        self._process.join(_END_SECS)
        with self._lock:  # both who reads from it and who stops the worker come here, and its number is soon another's
            if not self._connection.closed:
                self._connection.close()
        code = self._process.exitcode
        if code is None:
            return "its pipe was closed"
        return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"

    def _serve(self, claim: Claim, kind: bytes, body: bytes) -> None:
        if kind == pipe.PROGRESS:
            claim.progress()
            return
        if kind == pipe.LOG:
            self._log(claim, body)
            return
        error = ""
        try:
            if kind == pipe.CHECKPOINT:
                claim.checkpoint(body)
            else:
                claim.stats(body.decode())
        except JobError as refused:
            error = f"{type(refused).__name__}: {refused}"
        self._send(pipe.REPLY + error.encode())

    def _log(self, claim: Claim, body: bytes) -> None:
        line = pipe.log_in(body)
        token = current.set(claim.record)
        try:
            logging.getLogger(line.name).handle(line)
        finally:
            current.reset(token)

    def _tell_lost(self, claim: Claim) -> None:
        with suppress(OSError):  # it has ended, so there is nobody to tell
            self._send(pipe.LOST + (claim.job.lost.reason or "lost").encode())

    def _send(self, message: bytes) -> None:
        with self._send_lock:
            self._connection.send_bytes(message)
