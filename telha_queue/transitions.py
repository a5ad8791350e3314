"""The state machine, as a table to be read. The memory engine runs it; `ext/transitions.pxd` is held equal to it.

    step(record, command, now_us, policy) -> the record after the move, or the reason it was refused

Pure: no clock, no I/O, no key. docs/state_machine.md draws what this file says.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

from telha_queue.config import QueueConfig
from telha_queue.job import Cause, JobEvent, JobState
from telha_queue.record import RecordFields

MAX_TIME_US = 2**63 - 1
MAX_ATTEMPTS = 2**32 - 1
MAX_GENERATION = 2**64 - 1
TRAIL_EVENTS = 256
"""Newest events kept besides the first one; what falls out in between is counted in `events_dropped`."""
TRAIL_BYTES = 64 * 1024
"""And never more detail text than this in all; the oldest after the first go first."""


class Verb(IntEnum):
    """What may be asked of a job that exists."""

    LEASE = 0
    EXTEND = 1
    CHECKPOINT = 2
    STATS = 3
    COMPLETE = 4
    FAIL = 5
    RELEASE = 6
    REAP = 7
    RETRY = 8
    RESTORE = 9


class Refusal(IntEnum):
    """Why a verb did nothing."""

    LEASE_CONFLICT = 1
    """Not leased, or not by this worker under this generation."""
    INVALID_TRANSITION = 2
    """The state does not allow the verb."""
    NOT_DUE = 3
    """Lease: the gate is still closed. Reap: the deadline, grace included, has not passed."""


class Command(NamedTuple):
    """A verb with its arguments; only those that the verb uses are looked at."""

    verb: Verb
    worker_id: str = ""
    lease_generation: int = 0
    ttl_us: int = 0
    detail: str | None = None
    continuation: bytes = b""
    retryable: bool = True
    accept_late: bool = False
    delay_us: int | None = None
    """Until the job is due again; None is what the verb has for it: no delay after a release, backoff after fail."""
    cause: Cause = Cause.ERROR


class Policy(NamedTuple):
    """What the configuration says for a job of this kind, and the store for all. Times in microseconds."""

    max_attempts: int = 5
    lease_grace_us: int = 0
    backoff_base_secs: int = 10
    backoff_factor: int = 4
    backoff_cap_secs: int = 3600
    max_crashes: int = 0
    """Crashes after which a job is given up though it has attempts left; 0 is no such number."""
    generation_floor: int = 0
    """The least generation that a lease gets: above all that were given out before the store was restored."""


def policy_for(config: QueueConfig, kind: str) -> Policy:
    """What the configuration says for a kind; one with a base of its own has the cap max(base, cap)."""
    own_base = config.backoff_base_secs_by_kind.get(kind)
    base, cap = config.backoff_base_secs, config.backoff_cap_secs
    if own_base is not None:
        base, cap = own_base, max(own_base, cap)
    grace_us = round(config.lease_grace_secs * 1_000_000)
    return Policy(config.max_attempts, grace_us, base, config.backoff_factor, cap, config.max_crashes)


def backoff_us(policy: Policy, attempts: int) -> int:
    """Delay before attempt number `attempts` + 1: base * factor^(attempts - 1), at most the cap; never overflows.

    The cap given in the policy is already max(base, cap) for kinds with a base of their own.
    """
    secs: int = policy.backoff_base_secs * policy.backoff_factor ** min(max(attempts, 1) - 1, 64)
    return min(min(secs, policy.backoff_cap_secs) * 1_000_000, MAX_TIME_US)


def step(record: RecordFields, command: Command, now_us: int, policy: Policy) -> RecordFields | Refusal:
    """Apply one verb to one job. Returns the new record, its event appended, or a Refusal and nothing changed."""
    return _RULES[command.verb](record, command, now_us, policy)


def _lease(record: RecordFields, command: Command, now_us: int, policy: Policy) -> RecordFields | Refusal:
    if record.state != JobState.PENDING or record.lease_generation == MAX_GENERATION:
        return Refusal.INVALID_TRANSITION
    if record.not_before is not None and record.not_before > now_us:
        return Refusal.NOT_DUE
    leased = record._replace(
        state=JobState.LEASED,
        lease_generation=max(record.lease_generation + 1, policy.generation_floor),
        worker_id=command.worker_id,
        lease_deadline=_later(now_us, command.ttl_us),
        lease_ttl_us=command.ttl_us,
        not_before=None,
        continuation=None,
        reaped_worker_id=None,
    )
    return _log(leased, now_us, "leased", command.worker_id)


def _extend(record: RecordFields, command: Command, now_us: int, policy: Policy) -> RecordFields | Refusal:
    if not _held(record, command):
        return Refusal.LEASE_CONFLICT
    return _log(_prolong(record, command, now_us), now_us, "extended")


def _checkpoint(record: RecordFields, command: Command, now_us: int, policy: Policy) -> RecordFields | Refusal:
    if not _held(record, command):
        return Refusal.LEASE_CONFLICT
    kept = _prolong(record, command, now_us)._replace(continuation=command.continuation)
    return _log(kept, now_us, "checkpoint", f"{len(command.continuation)} bytes")


def _stats(record: RecordFields, command: Command, now_us: int, policy: Policy) -> RecordFields | Refusal:
    if not _held(record, command):
        return Refusal.LEASE_CONFLICT
    return _log(record, now_us, "stats", command.detail)


def _complete(record: RecordFields, command: Command, now_us: int, policy: Policy) -> RecordFields | Refusal:
    if _held(record, command):
        return _log(_unlease(record, JobState.COMPLETED), now_us, "completed")
    late = (
        command.accept_late
        and record.state in (JobState.PENDING, JobState.DEAD)
        and record.reaped_worker_id == command.worker_id
        and record.lease_generation == command.lease_generation
        and record.lease_generation >= policy.generation_floor
    )
    if not late:
        return Refusal.LEASE_CONFLICT
    done = _unlease(record, JobState.COMPLETED)._replace(not_before=None, dead_reason=None, reaped_worker_id=None)
    return _log(done, now_us, "completed", "late")


def _fail(record: RecordFields, command: Command, now_us: int, policy: Policy) -> RecordFields | Refusal:
    if not _held(record, command):
        return Refusal.LEASE_CONFLICT
    has_crashed = command.cause == Cause.CRASH
    failed = _lose(record, has_crashed)
    reason = _reason_to_die(failed, has_crashed, policy) if command.retryable else "not_retryable"
    if reason is not None:
        return _bury(failed, now_us, "timeout" if command.cause == Cause.TIMEOUT else reason, command.detail)
    own_us = command.delay_us
    waiting = _back_off(failed, now_us, policy) if own_us is None else _gate(failed, now_us, own_us)
    return _log(waiting, now_us, "failed", command.detail)


def _release(record: RecordFields, command: Command, now_us: int, policy: Policy) -> RecordFields | Refusal:
    if not _held(record, command):
        return Refusal.LEASE_CONFLICT
    return _log(_gate(record, now_us, command.delay_us or 0), now_us, "released")


def _reap(record: RecordFields, command: Command, now_us: int, policy: Policy) -> RecordFields | Refusal:
    if record.state != JobState.LEASED or record.lease_deadline is None:
        return Refusal.INVALID_TRANSITION
    if _later(record.lease_deadline, policy.lease_grace_us) > now_us:
        return Refusal.NOT_DUE
    lost = _lose(record, has_crashed=True)._replace(reaped_worker_id=record.worker_id)
    reason = _reason_to_die(lost, has_crashed=True, policy=policy)
    if reason is not None:
        return _bury(lost, now_us, reason, f"lease of {record.worker_id} expired")
    return _log(_back_off(lost, now_us, policy), now_us, "reaped", record.worker_id)


def _retry(record: RecordFields, command: Command, now_us: int, policy: Policy) -> RecordFields | Refusal:
    if record.state != JobState.DEAD:
        return Refusal.INVALID_TRANSITION
    fresh = record._replace(
        state=JobState.PENDING, attempts=0, crashes=0, not_before=None, dead_reason=None, reaped_worker_id=None
    )
    return _log(fresh, now_us, "retried")


def _restore(record: RecordFields, command: Command, now_us: int, policy: Policy) -> RecordFields | Refusal:
    if record.state != JobState.LEASED:
        return Refusal.INVALID_TRANSITION
    return _log(_unlease(record, JobState.PENDING), now_us, "restored", record.worker_id)


_RULES: dict[Verb, Callable[[RecordFields, Command, int, Policy], RecordFields | Refusal]] = {
    Verb.LEASE: _lease,
    Verb.EXTEND: _extend,
    Verb.CHECKPOINT: _checkpoint,
    Verb.STATS: _stats,
    Verb.COMPLETE: _complete,
    Verb.FAIL: _fail,
    Verb.RELEASE: _release,
    Verb.REAP: _reap,
    Verb.RETRY: _retry,
    Verb.RESTORE: _restore,
}


def _held(record: RecordFields, command: Command) -> bool:
    """Whether the presented lease is the one in force. An expired one is, until the reaper or a new lease ends it."""
    return (
        record.state == JobState.LEASED
        and record.worker_id == command.worker_id
        and record.lease_generation == command.lease_generation
    )


def _prolong(record: RecordFields, command: Command, now_us: int) -> RecordFields:
    """Move the deadline to now + ttl, never to an earlier time than it has. A ttl of 0 is the one of the lease."""
    ttl_us = command.ttl_us or record.lease_ttl_us or 0
    return record._replace(lease_deadline=max(record.lease_deadline or 0, _later(now_us, ttl_us)))


def _unlease(record: RecordFields, state: JobState) -> RecordFields:
    """Leave the Leased state; whatever was scoped to the lease goes with it."""
    return record._replace(state=state, worker_id=None, lease_deadline=None, lease_ttl_us=None, continuation=None)


def _lose(record: RecordFields, has_crashed: bool) -> RecordFields:
    """Count a lost attempt, and its crash."""
    return record._replace(
        attempts=min(record.attempts + 1, MAX_ATTEMPTS),
        crashes=min(record.crashes + has_crashed, MAX_ATTEMPTS),
    )


def _gate(record: RecordFields, now_us: int, delay_us: int) -> RecordFields:
    """Back to Pending, due after the delay."""
    return _unlease(record, JobState.PENDING)._replace(not_before=_later(now_us, delay_us) if delay_us else None)


def _back_off(record: RecordFields, now_us: int, policy: Policy) -> RecordFields:
    gate = _later(now_us, backoff_us(policy, record.attempts))
    return _unlease(record, JobState.PENDING)._replace(not_before=gate)


def _bury(record: RecordFields, now_us: int, reason: str, detail: str | None) -> RecordFields:
    return _log(_unlease(record, JobState.DEAD)._replace(dead_reason=reason), now_us, "dead", detail)


def _reason_to_die(record: RecordFields, has_crashed: bool, policy: Policy) -> str | None:
    """Why a job that has just lost an attempt gets no other one; None when it does."""
    if has_crashed and 0 < policy.max_crashes <= record.crashes:
        return "poison"
    ceiling = policy.max_attempts if record.max_attempts is None else record.max_attempts
    if record.attempts < ceiling:
        return None
    # Poison: not one attempt ever reported back, so the job itself is the likely killer of its workers.
    return "poison" if has_crashed and record.crashes >= record.attempts else "attempts"


def _later(at_us: int, span_us: int) -> int:
    return min(at_us + span_us, MAX_TIME_US)


def _log(record: RecordFields, now_us: int, transition: str, detail: str | None = None) -> RecordFields:
    """Append an event; consecutive heartbeats become one, and the trail stays bounded."""
    events = record.events
    last = events[-1] if events else None
    if transition == "extended" and last is not None and last.transition == "extended":
        merged = last._replace(count=min(last.count + 1, MAX_ATTEMPTS), last_at=now_us)
        return record._replace(events=(*events[:-1], merged))
    kept = [*events, JobEvent(now_us, transition, detail)]
    dropped = 0
    while len(kept) > 2 and (len(kept) > TRAIL_EVENTS + 1 or _detail_bytes(kept) > TRAIL_BYTES):
        del kept[1]
        dropped += 1
    return record._replace(events=tuple(kept), events_dropped=record.events_dropped + dropped)


def _detail_bytes(events: list[JobEvent]) -> int:
    return sum(len(event.detail.encode()) for event in events if event.detail is not None)
