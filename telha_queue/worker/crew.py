"""Runs the handlers: in threads, on the loop, in processes; decides once how each job ended, and what starts next."""

from __future__ import annotations

import logging
import random
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from telha_queue.backoff import backoff_us, policy_for
from telha_queue.worker import handler
from telha_queue.worker.children import Children
from telha_queue.worker.loop import Loop
from telha_queue.worker.threads import Threads
from telha_queue.worker.verdict import Done, ErrorRules, Failed, GivenBack, Outcome, described, within

if TYPE_CHECKING:
    from telha_queue.config import QueueConfig
    from telha_queue.job import Exact
    from telha_queue.worker.claim import Claim
    from telha_queue.worker.lanes import Share
    from telha_queue.worker.periodic import Ticks
    from telha_queue.worker.roster import Roster
    from telha_queue.worker.settle import Settler
    from telha_queue.worker.task import AnyTask
    from telha_queue.worker.watch import Watch

log = logging.getLogger("telha_queue.worker")

_CANCELLED = Failed("the handler was cancelled")


class Crew:
    """Everything that runs handlers. Safe to use from many threads."""

    def __init__(
        self,
        tasks: Sequence[AnyTask],
        config: QueueConfig,
        roster: Roster,
        watch: Watch,
        settler: Settler,
        ticks: Ticks,
        *,
        concurrency: int,
        rules: ErrorRules,
        jitter: float,
        worker_id: str,
        on_room: Callable[[], None],
        why_lost: Callable[[Claim], str],
        lease_one: Callable[[Share, Sequence[Exact]], Claim | None],
    ) -> None:
        self._config = config
        self._roster = roster
        self._watch = watch
        self._settler = settler
        self._ticks = ticks
        self._rules = rules
        self._jitter = jitter
        self._chance = random.Random(secrets.randbits(64))
        self._worker_id = worker_id
        self._on_room = on_room
        self._why_lost = why_lost
        self._lease_one = lease_one
        self._threads: Threads[Claim] = Threads("telha-task", concurrency, self._run_in_thread)
        self._loop = Loop()
        self._hung_coroutines = 0
        self._children = Children(tasks, rules)

    @property
    def abandoned(self) -> int:
        """Handlers that hang: in threads, and on the loop though they were cancelled."""
        return self._threads.abandoned + self._hung_coroutines

    @property
    def is_stuck(self) -> bool:
        """Whether so many hang that no more can be given up."""
        return not self._threads.may_abandon()

    @property
    def pids(self) -> list[int]:
        """Of the processes that run tasks."""
        return self._children.pids

    def start(self, claim: Claim) -> None:
        """Run a job that has its permit."""
        if claim.task.limits.is_async:
            self._start_on_loop(claim)
        else:
            self._threads.submit(claim)

    def over(self, claim: Claim, reason: str) -> None:
        """Its lease is over before its handler is: tell the handler, and stop it if its time was up."""
        if reason == "lost":
            claim.job.lost.set(self._why_lost(claim))
            return
        if not self._roster.decide(claim):
            return
        limits = claim.task.limits
        if reason == "timeout":
            what = f"ran longer than {limits.timeout_secs} s"
        else:
            what = f"made no progress for {limits.progress_secs} s"
        failed = Failed(f"timeout: the handler {what}", retryable=limits.retries_timeout, cause="timeout")
        self._settler.put(claim, self._spread(claim, failed))
        claim.job.lost.set(reason)
        if claim.stop is not None:
            claim.stop()
        elif claim.thread:
            self._abandon(claim)

    def give_up(self, claim: Claim) -> None:
        """The worker goes: give the job back, and tell its handler."""
        if self._roster.decide(claim):
            claim.job.lost.set("stopped")
            self._settler.put(claim, GivenBack())
            if claim.stop is not None:
                claim.stop()

    def stop(self) -> None:
        """Let go of threads, end the loop and the processes. Waits for no handler."""
        self._threads.stop()
        self._loop.stop()
        self._children.stop()

    def _run_in_thread(self, claim: Claim) -> None:
        following: Claim | None = claim
        while following is not None:
            claim = following
            outcome = self._begin(claim)
            if outcome is None:
                claim.thread = threading.get_ident()
                outcome = self._call(claim)
            following = self._successor(claim, outcome)
            if following is not None and following.task.limits.is_async:
                self._start_on_loop(following)
                following = None

    def _call(self, claim: Claim) -> Outcome:
        if claim.task.limits.is_process:
            with handler.span(claim.record, self._worker_id):
                return self._children.run(claim)
        return handler.call(claim.task, claim.job, self._rules, self._worker_id)

    def _start_on_loop(self, claim: Claim) -> None:
        outcome = self._begin(claim)
        if outcome is not None:
            self._go_on(claim, outcome)
            return
        claim.stop = self._loop.start(
            lambda: handler.call_async(claim.task, claim.job, self._rules, self._worker_id),
            lambda outcome: self._go_on(claim, _CANCELLED if outcome is None else outcome),
            lambda: self._hangs_on_loop(claim),
        )
        if claim.decided:  # by somebody who could not stop it yet
            claim.stop()

    def _begin(self, claim: Claim) -> Outcome | None:
        """Let its time run; the outcome of a job whose handler is not to be called."""
        claim.started_ns = time.monotonic_ns()
        if claim.held.over is not None:  # it waited in line for too long
            claim.job.lost.set(self._why_lost(claim))
            return GivenBack()  # which is refused, and told as lost
        try:
            if not self._ticks.begin(claim.record):
                return Done()
            limits = claim.task.limits
            if limits.timeout_secs is not None or limits.progress_secs is not None:
                self._watch.bound(claim, limits.timeout_secs, limits.progress_secs)
        except Exception as error:  # noqa: BLE001  # a store that fails, a header of somebody: this attempt is over
            return Failed(described(error))
        return None

    def _go_on(self, claim: Claim, outcome: Outcome) -> None:
        if claim.is_hung:
            claim.is_hung = False
            self._hung_coroutines -= 1
        following = self._end(claim, outcome)
        if following is not None:
            self.start(following)

    def _successor(self, claim: Claim, outcome: Outcome) -> Claim | None:
        """What this thread runs next. While there is work it leases for itself: nothing is handed between threads."""
        kinds = self._roster.may_go_on(claim)
        if not kinds:
            return self._end(claim, outcome)
        self._settle(claim, outcome)
        leased = self._lease_one(claim.share, kinds)
        if leased is not None:
            if self._roster.replace(claim, leased):
                return leased
            self._settle(leased, GivenBack())  # the worker stops, or somebody else has this place by now
        return self._leave(claim)

    def _end(self, claim: Claim, outcome: Outcome) -> Claim | None:
        """A handler has ended; returns the job that starts in its place."""
        self._settle(claim, outcome)
        return self._leave(claim)

    def _settle(self, claim: Claim, outcome: Outcome) -> None:
        if claim.job.is_completed and not isinstance(outcome, Done):
            log.error("the handler of job %s (%s) went on after it had completed it, and raised: %s",
                      claim.record.job_id, claim.task.kind, getattr(outcome, "error", "it gave it back"))  # fmt: skip
            outcome = Done()
        if self._roster.decide(claim):
            claim.end_progress()
            self._settler.put(claim, self._spread(claim, within(outcome, self._config.max_payload_bytes)))

    def _leave(self, claim: Claim) -> Claim | None:
        following = self._roster.leave(claim)
        limits = claim.task.limits
        if following is None or limits.is_process or limits.concurrency is not None:  # of its own kind at least
            self._on_room()
        return following

    def _spread(self, claim: Claim, outcome: Outcome) -> Outcome:
        """Make the backoff of a failure longer by a random share."""
        has_backoff = isinstance(outcome, Failed) and outcome.retryable and outcome.delay_secs is None
        if not self._jitter or not isinstance(outcome, Failed) or not has_backoff:
            return outcome
        policy = policy_for(self._config, claim.record.kind)
        backoff_secs = backoff_us(policy, claim.record.attempts + 1) / 1_000_000
        return outcome._replace(delay_secs=backoff_secs * (1 + self._chance.uniform(0, self._jitter)))

    def _hangs_on_loop(self, claim: Claim) -> None:
        """It was cancelled and goes on: another may have its place."""
        had_place, following = self._roster.oust(claim)
        if not had_place:
            return
        self._hung_coroutines += 1
        claim.is_hung = True
        log.error("the handler of job %s (%s) ignores its end", claim.record.job_id, claim.task.kind)
        self._fill_place(following)

    def _fill_place(self, following: Claim | None) -> None:
        if following is None:
            self._on_room()
        else:
            self.start(following)

    def _abandon(self, claim: Claim) -> None:
        """Nobody can stop a thread: another takes its place, as often as there are places."""
        if self.is_stuck:
            log.error("the handler of job %s (%s) hangs, and keeps its place", claim.record.job_id, claim.task.kind)
            return
        had_place, following = self._roster.oust(claim)
        if not had_place:
            return  # it has just come back
        self._threads.abandon(claim.thread)
        log.error("the handler of job %s (%s) hangs; its thread is abandoned", claim.record.job_id, claim.task.kind)
        self._fill_place(following)
