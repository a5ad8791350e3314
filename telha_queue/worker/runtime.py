"""The worker: leases jobs of its tasks, runs them, keeps their leases, writes their outcomes, and goes when told to.

    intake.py leases -> roster.py counts -> crew.py runs, by threads.py, loop.py, children.py -> settle.py writes

Beside them the queue's lease keeper renews leases without Python's lock, and a watch acts on leases that are over.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from telha_queue import arguments as check
from telha_queue.errors import ConfigError, InvalidArgument, StorageError, StoreClosed
from telha_queue.job import JobRecord, JobState
from telha_queue.worker.counters import Counters
from telha_queue.worker.crew import Crew
from telha_queue.worker.health import Health
from telha_queue.worker.intake import Intake
from telha_queue.worker.lanes import Lane
from telha_queue.worker.periodic import Ticks
from telha_queue.worker.roster import Load, Roster
from telha_queue.worker.run import run
from telha_queue.worker.settle import Settled, Settler, why_lost
from telha_queue.worker.status import status_of
from telha_queue.worker.task import BytesTask, Task
from telha_queue.worker.verdict import ErrorRules, Failed, GivenBack
from telha_queue.worker.watch import Watch

if TYPE_CHECKING:
    from typing import Self

    from telha_queue.queue import Queue
    from telha_queue.scope import Scope
    from telha_queue.worker.claim import Claim
    from telha_queue.worker.task import AnyTask

log = logging.getLogger("telha_queue.worker")

MAX_TASKS = 64
"""As many kinds as one look at the queue takes."""
GRACE_SECS = 30.0


class Worker:
    """Runs the jobs of some tasks in this process until it is stopped. Start any number of them on one queue.

    `concurrency` jobs run at a time, of which lanes may reserve a share; `prefetch` more are leased ahead, for jobs
    that are shorter than a write. A scope of None is all scopes. `rules` say which errors pass, `jitter` by which
    share, at random, a backoff is made longer. `late` is what `Queue.complete` is given. `health` is where it answers
    for itself, see `health.py`. Raises ConfigError. All methods are safe to call from any thread.
    """

    def __init__(
        self,
        queue: Queue,
        *,
        tasks: Iterable[AnyTask],
        scope: Scope | None = None,
        concurrency: int = 16,
        lanes: Iterable[Lane] = (),
        prefetch: int = 0,
        processes: int | None = None,
        rules: ErrorRules | None = None,
        jitter: float = 0.0,
        worker_id: str | None = None,
        lease_ttl_secs: float | None = None,
        grace_secs: float = GRACE_SECS,
        reaper: bool = True,
        late: str = "refuse",
        health: str | None = None,
    ) -> None:
        listed = _checked(tasks)
        try:
            self.worker_id = check.worker(_new_id() if worker_id is None else worker_id)
            check.late(late)
            if scope is not None:
                check.scope_key(scope)
            if lease_ttl_secs is not None:
                check.ttl_us(lease_ttl_secs)
        except InvalidArgument as error:
            raise ConfigError(str(error)) from None
        if not 0 <= jitter <= 10:
            raise ConfigError(f"jitter is a share from 0 to 10 of the backoff, not {jitter!r}")
        if not 0 <= grace_secs <= 86_400:
            raise ConfigError(f"grace_secs is from 0 to a day, not {grace_secs!r}")
        self.queue = queue
        self.grace_secs = grace_secs
        self._reaper = reaper
        self.counters = Counters([task.kind for task in listed])
        self._roster = Roster(listed, lanes, concurrency, prefetch, processes or os.cpu_count() or 1)
        self._keeper = queue.keeper()
        self._settler = Settler(queue, self._keeper, late, prefetch > 0, self._on_settled)
        self._watch = Watch(self._keeper, lambda claim, reason: self._crew.over(claim, reason))
        ticks = Ticks(queue, listed, scope)
        self._crew = Crew(
            listed,
            queue.config,
            self._roster,
            self._watch,
            self._settler,
            ticks,
            concurrency=concurrency,
            rules=ErrorRules() if rules is None else rules,
            jitter=jitter,
            worker_id=self.worker_id,
            on_room=lambda: self._intake.nudge(),
            why_lost=lambda claim: why_lost(queue, claim.record),
            lease_one=lambda share, kinds: self._intake.lease_one(share, kinds),
        )
        self._intake = Intake(
            queue,
            self._watch,
            self._roster,
            ticks,
            {task.kind: task for task in listed},
            scope=scope,
            worker_id=self.worker_id,
            lease_ttl_secs=lease_ttl_secs,
            reaps=reaper and queue.config.lease_grace_secs > 0,
            start=self._crew.start,
            on_error=self._on_store,
        )
        self._life = threading.Lock()
        self._is_started = False
        self._is_stopped = False
        self._is_hurried = False
        self._is_drained = True
        self._has_stopped = threading.Event()
        self._health = None if health is None else Health(self, health)
        self.store_error: StorageError | None = None
        """Why nothing can be leased now, if nothing can."""

    def start(self) -> None:
        """Begin to work, in threads of its own. A worker is started once."""
        with self._life:
            if self._is_started or self._is_stopped:
                raise ConfigError("a worker is started once; make another")
            if self._reaper:
                self.queue.start_reaper()
            for part in (self._settler, self._watch, self._intake):
                part.start()
            if self._health is not None:
                self._health.start()
            self._is_started = True
        log.info("worker %s works on %s", self.worker_id, ", ".join(self.counters.kinds))

    def stop(self, grace_secs: float | None = None) -> bool:
        """Lease nothing more, let handlers end for that long, give back what is left; True if nothing was left.

        A job that is given back spends no attempt, and its handler's result will be refused. Whoever calls it while
        another does waits for the same end.
        """
        with self._life:
            is_first, self._is_stopped = not self._is_stopped, True
        if not self._is_started:
            return True
        if not is_first:
            self._has_stopped.wait()
            return self._is_drained
        try:
            self._is_drained = self._stop(self.grace_secs if grace_secs is None else grace_secs)
        finally:
            self._has_stopped.set()
        return self._is_drained

    def _stop(self, grace_secs: float) -> bool:
        until = time.monotonic() + grace_secs
        log.info("worker %s stops; its handlers have %g s to end", self.worker_id, grace_secs)
        self._intake.stop()
        waiting = self._roster.stop()
        for claim in waiting:
            self._settler.put(claim, GivenBack())
        is_drained = self._roster.wait_done(until, is_over=self._is_in_a_hurry)
        left = [] if is_drained else self._roster.running()
        for claim in left:
            self._crew.give_up(claim)
        self._settler.stop(max(until, time.monotonic() + 1), self._is_in_a_hurry)
        are_written = not self._settler.is_alive and self.counters.total("unwritten") == 0
        self._keeper.close()
        self._crew.stop()
        if self._health is not None:
            self._health.stop()
        log.info("worker %s has stopped; %d jobs were given back", self.worker_id, len(left) + len(waiting))
        return not left and are_written

    def wait_idle(self, timeout_secs: float = 60) -> bool:
        """Wait until every due job of its tasks is done, and a look at the queue finds none; False if time is over.

        A job that waits for its backoff is not due. False too when the worker does not run.
        """
        until = time.monotonic() + timeout_secs
        while self._intake.is_alive and self._roster.wait_done(until, is_over=self._is_in_a_hurry):
            added, left_secs = self._roster.added, until - time.monotonic()
            if left_secs <= 0:
                return False
            found = self._intake.look(left_secs)
            if not found and self._roster.added == added:  # nor by the look that was under way before
                return self._intake.is_alive
        return False

    def hurry(self) -> None:
        """Have a `stop` that is under way wait no longer. May be called from a signal handler: it takes no lock."""
        self._is_hurried = True

    def _is_in_a_hurry(self) -> bool:
        return self._is_hurried

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def run(self) -> int:
        """Work until SIGTERM or SIGINT, and return an exit code: see `run.py`. For the main thread."""
        return run(self)

    # How it is

    def load(self) -> dict[str, Load]:
        """Of each lane, and of what no lane has reserved ("general"): permits, those in use, jobs leased ahead."""
        return self._roster.load()

    @property
    def abandoned(self) -> int:
        """Threads whose handlers hang."""
        return self._crew.abandoned

    @property
    def is_healthy(self) -> bool:
        """Whether it can go on: False when a thread of its own has ended unasked, or all those of handlers hang."""
        own = (self._intake, self._settler, self._watch)
        runs = self._is_stopped or not self._is_started or all(part.is_alive for part in own)
        return runs and not self._crew.is_stuck

    @property
    def is_ready(self) -> bool:
        """Whether it takes jobs now."""
        return self._is_started and not self._is_stopped and self.is_healthy and self.store_error is None

    def status(self) -> dict[str, Any]:
        """Everything above as plain values, and the jobs at work; what `telha top` shows."""
        return status_of(self, self._roster.running())

    # What comes back

    def _on_settled(self, batch: Sequence[Settled]) -> None:
        self._watch.forget(batch)
        for one in batch:
            if isinstance(one.result, StorageError) and not isinstance(one.result, StoreClosed):
                log.error("job %s: its outcome was not written: %s", one.claim.record.job_id, one.result)
            elif isinstance(one.outcome, Failed) and isinstance(one.result, JobRecord):
                _tell_failure(one.result, one.outcome)
            elif isinstance(one.result, Exception):
                _tell_loss(self.queue, one.claim, one.result)
        self.counters.add(batch)
        self._roster.settled(len(batch))

    def _on_store(self, error: StorageError | None) -> None:
        self.store_error = error


def _checked(tasks: Iterable[AnyTask]) -> list[AnyTask]:
    listed = list(tasks)
    for task in listed:
        if not isinstance(task, (BytesTask, Task)):
            raise ConfigError(f"tasks are functions with @task in front, not {task!r}")
    kinds = [task.kind for task in listed]
    if not kinds or len(kinds) > MAX_TASKS:
        raise ConfigError(f"a worker has from 1 to {MAX_TASKS} tasks, not {len(kinds)}")
    if twice := sorted({kind for kind in kinds if kinds.count(kind) > 1}):
        raise ConfigError(f"two tasks for one kind: {', '.join(twice)}")
    return listed


def _tell_loss(queue: Queue, claim: Claim, refusal: Exception) -> None:
    claim.job.lost.set(why_lost(queue, claim.record))
    if claim.job.lost.reason == "cancelled":
        log.warning("job %s (%s) was cancelled while it ran", claim.record.job_id, claim.task.kind)
    else:
        log.warning("job %s: its outcome was refused: %s", claim.record.job_id, refusal)


def _tell_failure(job: JobRecord, failed: Failed) -> None:
    first_line = failed.error.partition("\n")[0]
    if job.state is JobState.DEAD:
        log.error("job %s (%s) is dead, %s: %s", job.job_id, job.kind, job.dead_reason, first_line)
    else:
        log.warning("job %s (%s) failed and will be tried again: %s", job.job_id, job.kind, first_line)


def _new_id() -> str:
    return f"{socket.gethostname()[:64]}-{os.getpid()}-{secrets.token_hex(4)}"
