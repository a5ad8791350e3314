"""The state machine of one job as docs/state_machine.md has it, for checking histories. Shares no code with the queue.

`after(state, entry, rules)` is the state that a call must leave, or None when the call cannot have told what it did.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.torture.race_history import Entry, Refused, Seen

PENDING, LEASED, COMPLETED, DEAD = 0, 1, 2, 4
LAST_US = 2**63 - 1
HEARTBEATS = ("extend", "checkpoint", "stats")


class Rules(NamedTuple):
    """The settings that matter here; times in microseconds."""

    max_attempts: int
    base_us: int
    factor: int
    cap_us: int
    grace_us: int = 0

    def backoff_us(self, attempts: int) -> int:
        """How long a job waits that has lost so many attempts."""
        return min(self.base_us * self.factor ** (attempts - 1), self.cap_us)


class Job(NamedTuple):
    """A job between two calls."""

    state: int = -1
    """-1: it is not there yet."""
    generation: int = 0
    worker: str | None = None
    attempts: int = 0
    crashes: int = 0
    dead_reason: str | None = None
    deadline: int = 0
    gate: int = 0
    events: int = 0
    extending: bool = False
    """Whether the newest event is a heartbeat, with which the next one is counted together."""
    reaped_worker: str | None = None
    reaped_gate: bool = False
    """Whether the gate was set by the reaper: then it is not known exactly, and `gate` is the earliest it can be."""


def after(job: Job, entry: Entry, rules: Rules) -> Job | None:
    """What the job is after a call that told its caller this."""
    if isinstance(entry.told, Refused):
        return job if _may_refuse(job, entry) else None
    moved = _moved(job, entry, rules)
    return moved if moved is not None and _agrees(moved, entry.told) else None


def reaped(job: Job, low_us: int, high_us: int, rules: Rules) -> Job | None:
    """What a pass of the reaper between two times makes of it; None if it may not touch it."""
    due_us = later(job.deadline, rules.grace_us)
    if job.state != LEASED or due_us > high_us:
        return None
    attempts, crashes = job.attempts + 1, job.crashes + 1
    lost = _ended(job, PENDING)._replace(attempts=attempts, crashes=crashes, reaped_worker=job.worker)
    if attempts >= rules.max_attempts:
        return lost._replace(state=DEAD, dead_reason="poison" if crashes >= attempts else "attempts")
    return lost._replace(gate=later(max(low_us, due_us), rules.backoff_us(attempts)), reaped_gate=True)


def later(at_us: int, span_us: int) -> int:
    """A time and a span; time has an end."""
    return min(at_us + span_us, LAST_US)


def _moved(job: Job, entry: Entry, rules: Rules) -> Job | None:
    told = entry.told
    assert isinstance(told, Seen)
    held = _held(job, entry)
    if entry.verb == "enqueue":
        return Job(state=PENDING, events=1) if job.state == -1 else None
    if entry.verb == "get":
        return job if job.state != -1 else None
    if entry.verb == "retry":
        if job.state != DEAD:
            return None
        return _ended(job, PENDING)._replace(attempts=0, crashes=0, dead_reason=None, reaped_worker=None)
    if entry.verb == "lease":
        if job.state != PENDING or job.gate > told.at:
            return None
        return Job(
            LEASED, job.generation + 1, entry.worker, job.attempts, job.crashes,
            deadline=later(told.at, entry.ttl_us), events=job.events + 1,
        )  # fmt: skip
    if entry.verb == "complete late" and not held:
        return _ended(job, COMPLETED)._replace(dead_reason=None, reaped_worker=None) if _may_late(job, entry) else None
    if not held:
        return None
    if entry.verb in HEARTBEATS:
        return _heartbeat(job, entry, told.at)
    if entry.verb == "release":
        return _ended(job, PENDING)
    if entry.verb.startswith("complete"):
        return _ended(job, COMPLETED)
    lost = _ended(job, PENDING)._replace(attempts=job.attempts + 1)
    if entry.verb == "bury":
        return lost._replace(state=DEAD, dead_reason="not_retryable")
    if lost.attempts >= rules.max_attempts:
        return lost._replace(state=DEAD, dead_reason="attempts")
    return lost._replace(gate=later(told.at, rules.backoff_us(lost.attempts)))


def _heartbeat(job: Job, entry: Entry, at_us: int) -> Job:
    extends = entry.verb == "extend"
    merges = extends and job.extending
    deadline = job.deadline if entry.verb == "stats" else max(job.deadline, later(at_us, entry.ttl_us))
    return job._replace(deadline=deadline, events=job.events + (not merges), extending=extends)


def _ended(job: Job, state: int) -> Job:
    """Out of the lease, or out of death."""
    return job._replace(
        state=state, worker=None, deadline=0, gate=0, events=job.events + 1, extending=False, reaped_gate=False
    )


def _held(job: Job, entry: Entry) -> bool:
    return job.state == LEASED and job.worker == entry.worker and job.generation == entry.generation


def _may_late(job: Job, entry: Entry) -> bool:
    right = job.reaped_worker is not None and job.reaped_worker == entry.worker and job.generation == entry.generation
    return job.state in (PENDING, DEAD) and right


def _may_refuse(job: Job, entry: Entry) -> bool:
    told = entry.told
    if job.state != told.state or (isinstance(told, Refused) and told.held not in (None, job.generation)):
        return False
    if entry.verb == "retry":
        return job.state != DEAD
    return not _held(job, entry) and not (entry.verb == "complete late" and _may_late(job, entry))


def _agrees(job: Job, told: Seen) -> bool:
    gate, deadline = told.gate or 0, told.deadline or 0
    same = (job.state, job.generation, job.worker, job.attempts, job.crashes, job.dead_reason, job.deadline, job.events)
    if same != (*told[:6], deadline, told.events):
        return False
    return gate >= job.gate if job.reaped_gate else gate == job.gate
