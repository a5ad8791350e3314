"""Scenes for the stage: a job made ready for a quarrel, two or three actors, and how many of them may win.

The history of the job is checked in every scene; what stands here is said besides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from telha_queue import JobRecord, Lease, Queue, Scope
from telha_queue.errors import JobError
from telha_queue.testing import ManualClock
from tests.torture.race_history import Recorder

ACME = Scope.named("acme")
TTL_US = 10_000_000
TTL_SECS = TTL_US // 1_000_000


class Play:
    """One job of one queue, and what actors do to it. Each verb says whether it did something."""

    def __init__(self, queue: Queue, clock: ManualClock, job: JobRecord, key: str) -> None:
        self.queue = queue
        self.clock = clock
        self.job = job
        self.key = key
        self.found: list[JobRecord] = []
        """What enqueueing with the key of the job returned."""

    def lease(self, recorder: Recorder, worker: str = "w2") -> bool:
        more: dict[str, Any] = {"worker_id": worker, "lease_ttl_secs": TTL_SECS}
        return bool(recorder.lease(lambda: self.queue.lease_next(ACME, **more), worker, TTL_US))

    def lease_any(self, recorder: Recorder) -> bool:
        more: dict[str, Any] = {"worker_id": "w3", "lease_ttl_secs": TTL_SECS}
        return bool(recorder.lease(lambda: self.queue.lease_next_any("x", **more), "w3", TTL_US))

    def lease_many(self, recorder: Recorder) -> bool:
        more: dict[str, Any] = {"worker_id": "w4", "lease_ttl_secs": TTL_SECS}
        return bool(recorder.lease(lambda: self.queue.lease_many(ACME, 5, **more), "w4", TTL_US))

    def reap(self, recorder: Recorder) -> bool:
        report = recorder.reap(self.clock)
        return report.reclaimed + report.dead > 0

    def retry(self, recorder: Recorder) -> bool:
        return recorder.on("retry", self.job, lambda: self.queue.retry(ACME, self.job.job_id)) is not None

    def extend(self, recorder: Recorder) -> bool:
        return self._on(recorder, "extend", lambda lease: self.queue.extend(lease))

    def checkpoint(self, recorder: Recorder) -> bool:
        return self._on(recorder, "checkpoint", lambda lease: self.queue.checkpoint(lease, b"here"))

    def complete(self, recorder: Recorder) -> bool:
        return self._on(recorder, "complete", lambda lease: self.queue.complete(lease))

    def complete_many(self, recorder: Recorder) -> bool:
        return self._on(recorder, "complete", lambda lease: _only(self.queue.complete_many([lease])))

    def complete_late(self, recorder: Recorder) -> bool:
        return self._on(recorder, "complete late", lambda lease: self.queue.complete(lease, late="accept_if_unclaimed"))

    def fail(self, recorder: Recorder) -> bool:
        return self._on(recorder, "fail", lambda lease: self.queue.fail(lease, "error"))

    def release(self, recorder: Recorder) -> bool:
        return self._on(recorder, "release", lambda lease: self.queue.release(lease))

    def enqueue_again(self, recorder: Recorder) -> bool:
        """With the key of the job that is there."""
        self.found.append(self.queue.enqueue(ACME, "x", idempotency_key=self.key))
        return False

    def tick(self, recorder: Recorder) -> bool:
        """Time passes, beyond the deadline of any lease."""
        self.clock.advance_us(2 * TTL_US)
        return False

    def _on(self, recorder: Recorder, verb: str, call: Callable[[Lease], JobRecord]) -> bool:
        """Always as the first holder of the job."""
        lease = Lease(ACME, self.job.job_id, "w1", 1)
        return recorder.on(verb, self.job, lambda: call(lease), "w1", 1, TTL_US) is not None


class Scene(NamedTuple):
    """Where the job stands when the actors enter, what each does, and how many of them it may work for."""

    before: str
    """A key of BEFORE."""
    actors: tuple[Callable[[Play, Recorder], bool], ...]
    winners: frozenset[int]


def one_job(play: Play, recorder: Recorder) -> None:
    """Pending, as it came."""


def held(play: Play, recorder: Recorder) -> None:
    play.lease(recorder, "w1")


def expired(play: Play, recorder: Recorder) -> None:
    held(play, recorder)
    play.tick(recorder)


def lost(play: Play, recorder: Recorder) -> None:
    """Taken back from its first holder, and due again."""
    expired(play, recorder)
    play.reap(recorder)
    play.tick(recorder)


def dead(play: Play, recorder: Recorder) -> None:
    """Given up by its first holder."""
    held(play, recorder)
    lease = Lease(ACME, play.job.job_id, "w1", 1)
    recorder.on("bury", play.job, lambda: play.queue.fail(lease, "no", retryable=False), "w1", 1)


BEFORE = {before.__name__: before for before in (one_job, held, expired, lost, dead)}


def _scene(before: str, winners: set[int], *actors: Callable[[Play, Recorder], bool]) -> Scene:
    return Scene(before, actors, frozenset(winners))


SCENES = (
    _scene("expired", {1}, Play.reap, Play.complete),
    _scene("expired", {1}, Play.reap, Play.complete_many),
    _scene("expired", {1, 2}, Play.reap, Play.complete_late),
    _scene("expired", {1}, Play.reap, Play.extend),
    _scene("expired", {1}, Play.reap, Play.checkpoint),
    _scene("expired", {1}, Play.reap, Play.release),
    _scene("one_job", {1}, Play.lease, Play.lease_any),
    _scene("one_job", {1}, Play.lease, Play.lease_many),
    _scene("dead", {1, 2}, Play.retry, Play.lease),
    _scene("dead", {1}, Play.retry, Play.retry),
    _scene("lost", {1}, Play.lease, Play.complete_late),
    _scene("held", {1}, Play.complete, Play.fail),
    _scene("held", {1, 2}, Play.extend, Play.complete),
    _scene("held", {1}, Play.complete, Play.complete),
    _scene("held", {0, 1, 2}, Play.tick, Play.reap, Play.extend),
    _scene("expired", {1, 2}, Play.reap, Play.extend, Play.complete),
    _scene("expired", {1, 2, 3}, Play.reap, Play.complete_late, Play.lease_any),
    _scene("held", {1, 2}, Play.release, Play.lease, Play.lease_many),
    _scene("one_job", {1}, Play.lease, Play.lease_any, Play.lease_many),
    _scene("dead", {1, 2}, Play.retry, Play.lease, Play.complete_late),
    _scene("dead", {1, 2}, Play.retry, Play.retry, Play.lease_any),
    _scene("lost", {1}, Play.lease, Play.complete_late, Play.complete),
    _scene("held", {1}, Play.fail, Play.release, Play.complete_many),
    _scene("one_job", {0, 1}, Play.enqueue_again, Play.enqueue_again, Play.lease),
)


def _only(outcomes: Sequence[JobRecord | JobError]) -> JobRecord:
    [outcome] = outcomes
    if isinstance(outcome, Exception):
        raise outcome
    return outcome
