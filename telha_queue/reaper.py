"""The reaper: a thread that takes back what dead workers held."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol

from telha_queue.errors import StoreClosed
from telha_queue.job import ReapReport

log = logging.getLogger("telha_queue.reaper")


class Reapable(Protocol):
    """What the reaper needs of a queue."""

    def reap_expired(self, now_us: int | None = None) -> ReapReport:
        """Take back every expired lease."""
        ...


class Reaper:
    """Runs `reap_expired` once per interval, over all scopes, until stopped or the queue is closed.

    Logs a warning for each job it gives up. An error in a pass is logged and the next pass comes at its time. Tests
    and tools need not sleep: `run_now()` asks for a pass, `wait_pass()` waits for one, `on_pass` is called after each.
    """

    def __init__(
        self,
        queue: Reapable,
        interval_secs: float,
        on_pass: Callable[[ReapReport | Exception], None] | None = None,
    ) -> None:
        self._queue = queue
        self._interval_secs = interval_secs
        self._on_pass = on_pass
        self._state = threading.Condition()
        self._passes = 0
        self._under_way = False
        self._asked = False
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="telha-reaper", daemon=True)

    def start(self) -> None:
        """Start the thread; the first pass comes at once, for leases that ran out while nobody was there."""
        self._asked = True
        try:
            self._thread.start()
        except BaseException:
            self._end()
            raise

    @property
    def passes(self) -> int:
        """How many passes have ended, failed ones included."""
        return self._passes

    def run_now(self) -> int:
        """Ask for a pass without waiting for the interval; returns the number for `wait_pass` to wait beyond."""
        with self._state:
            self._asked = True
            self._state.notify_all()
            # A pass under way may have looked already: the one that was asked for comes after it.
            return self._passes + self._under_way

    def wait_pass(self, beyond: int, timeout_secs: float | None = None) -> bool:
        """Wait until more than `beyond` passes have ended; False when the time is over or the reaper does not run."""
        with self._state:
            if self._thread.is_alive():  # in a forked child, for one, it is not
                self._state.wait_for(lambda: self._passes > beyond or self._stopping, timeout_secs)
            return self._passes > beyond

    def stop(self) -> None:
        """End the thread after the pass under way, and wait for it."""
        with self._state:
            self._stopping = True
            self._state.notify_all()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        try:
            self._run_passes()
        finally:
            self._end()  # whatever ended it: nobody waits for a pass that will not come

    def _run_passes(self) -> None:
        while True:
            with self._state:
                self._state.wait_for(lambda: self._asked or self._stopping, self._interval_secs)
                if self._stopping:
                    return
                self._asked = False
                self._under_way = True
            outcome = self._reap()
            if isinstance(outcome, StoreClosed):
                return
            if self._on_pass is not None:
                try:
                    self._on_pass(outcome)
                except Exception:  # it is not the reaper's: leases are taken back whatever becomes of it
                    log.exception("on_pass failed; the reaper goes on")
            with self._state:
                self._passes += 1
                self._under_way = False
                self._state.notify_all()

    def _reap(self) -> ReapReport | Exception:
        try:
            report = self._queue.reap_expired()
        except StoreClosed as closed:
            return closed
        except Exception as error:  # the reaper outlives a full disk or a failing write; the next pass may succeed
            log.exception("reaper pass failed; the next one is in %s s", self._interval_secs)
            return error
        for job in report.dead_jobs:
            log.warning(
                "job %s (%s) in scope %s is dead after %d attempts: %s; last held by %s",
                job.job_id, job.kind, job.scope, job.attempts, job.dead_reason, job.worker_id,
            )  # fmt: skip
        if report.expired:
            log.info("%d jobs have expired", report.expired)
        if report.corrupt:
            log.warning("%d leased rows do not decode and were left as they are", report.corrupt)
        return report

    def _end(self) -> None:
        with self._state:
            self._stopping = True
            self._state.notify_all()
