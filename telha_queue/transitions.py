"""The state machine, as a table to be read. The memory engine runs it; `ext/transitions.pxd` is held equal to it.

    step(record, command, now_us, policy) -> the record after the move, or the reason it was refused

Pure: no clock, no I/O, no key. docs/state_machine.md draws what this file says.
"""

from __future__ import annotations

from collections.abc import Callable

from telha_queue.backoff import Policy, backoff_us
from telha_queue.clock import MAX_TIME_US
from telha_queue.command import Command, Refusal, Verb
from telha_queue.job import Cause, JobEvent, JobState
from telha_queue.record import RecordFields

MAX_ATTEMPTS = 2**32 - 1
MAX_GENERATION = 2**64 - 1
TRAIL_EVENTS = 256
"""Newest events kept besides the first one; what falls out in between is counted in `events_dropped`."""
TRAIL_BYTES = 64 * 1024
"""And never more detail text than this in all; the oldest after the first go first."""


def step(record: RecordFields, command: Command, now_us: int, policy: Policy) -> RecordFields | Refusal:
    """Apply one verb to one job. Returns the new record, its event appended, or a Refusal and nothing changed."""
    return _RULES[command.verb](record, command, now_us, policy)


def _lease(record: RecordFields, command: Command, now_us: int, policy: Policy) -> RecordFields | Refusal:
    if record.state != JobState.PENDING or record.lease_generation == MAX_GENERATION:
        return Refusal.INVALID_TRANSITION
    if (record.not_before is not None and record.not_before > now_us) or is_expired(record, now_us):
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
        progress=None,
        progress_text=None,
    )
    return _log(leased, now_us, "leased", command.worker_id)


def _extend(record: RecordFields, command: Command, now_us: int, policy: Policy) -> RecordFields | Refusal:
    if not _held(record, command):
        return Refusal.LEASE_CONFLICT
    return _log(_prolong(record, command, now_us), now_us, "extended")


def _checkpoint(record: RecordFields, command: Command, now_us: int, policy: Policy) -> RecordFields | Refusal:
    if not _held(record, command):
        return Refusal.LEASE_CONFLICT
    kept = _prolong(record, command, now_us)
    size = f"{len(command.continuation)} bytes"
    if command.durable:
        durably = kept._replace(durable_continuation=command.continuation)
        return _log(durably, now_us, "checkpoint", f"durable, {size}")
    return _log(kept._replace(continuation=command.continuation), now_us, "checkpoint", size)


def _stats(record: RecordFields, command: Command, now_us: int, policy: Policy) -> RecordFields | Refusal:
    if not _held(record, command):
        return Refusal.LEASE_CONFLICT
    return _log(record, now_us, "stats", command.detail)


def _complete(record: RecordFields, command: Command, now_us: int, policy: Policy) -> RecordFields | Refusal:
    if _held(record, command):
        return _log(_finish(record, command), now_us, "completed")
    late = (
        command.accept_late
        and record.state in (JobState.PENDING, JobState.DEAD)
        and record.reaped_worker_id == command.worker_id
        and record.lease_generation == command.lease_generation
        and record.lease_generation >= policy.generation_floor
    )
    if not late:
        return Refusal.LEASE_CONFLICT
    done = _finish(record, command)._replace(not_before=None, dead_reason=None, reaped_worker_id=None)
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
    if _will_expire(waiting, now_us):
        return _bury(waiting, now_us, "expired", command.detail)
    return _log(waiting, now_us, "failed", command.detail)


def _release(record: RecordFields, command: Command, now_us: int, policy: Policy) -> RecordFields | Refusal:
    if not _held(record, command):
        return Refusal.LEASE_CONFLICT
    waiting = _gate(record, now_us, command.delay_us or 0)
    if _will_expire(waiting, now_us):
        return _bury(waiting, now_us, "expired", None)
    return _log(waiting, now_us, "released")


def _reap(record: RecordFields, command: Command, now_us: int, policy: Policy) -> RecordFields | Refusal:
    if record.state != JobState.LEASED or record.lease_deadline is None:
        return Refusal.INVALID_TRANSITION
    if _later(record.lease_deadline, policy.lease_grace_us) > now_us:
        return Refusal.NOT_DUE
    lost = _lose(record, has_crashed=True)._replace(reaped_worker_id=record.worker_id)
    reason = _reason_to_die(lost, has_crashed=True, policy=policy)
    waiting = _back_off(lost, now_us, policy)
    if reason is None and _will_expire(waiting, now_us):
        reason = "expired"
    if reason is not None:
        return _bury(lost, now_us, reason, f"lease of {record.worker_id} expired")
    return _log(waiting, now_us, "reaped", record.worker_id)


def _retry(record: RecordFields, command: Command, now_us: int, policy: Policy) -> RecordFields | Refusal:
    if record.state != JobState.DEAD:
        return Refusal.INVALID_TRANSITION
    fresh = record._replace(
        state=JobState.PENDING, attempts=0, crashes=0, not_before=None, dead_reason=None, reaped_worker_id=None
    )
    if is_expired(record, now_us):
        fresh = fresh._replace(expires_at=None)  # whoever retries it wants it done nevertheless
    return _log(fresh, now_us, "retried")


def _restore(record: RecordFields, command: Command, now_us: int, policy: Policy) -> RecordFields | Refusal:
    if record.state != JobState.LEASED:
        return Refusal.INVALID_TRANSITION
    return _log(_unlease(record, JobState.PENDING), now_us, "restored", record.worker_id)


def _cancel(record: RecordFields, command: Command, now_us: int, policy: Policy) -> RecordFields | Refusal:
    if record.state not in (JobState.PENDING, JobState.LEASED):
        return Refusal.INVALID_TRANSITION
    return _give_up(record, now_us, "cancelled", command.detail)


def _expire(record: RecordFields, command: Command, now_us: int, policy: Policy) -> RecordFields | Refusal:
    if record.state != JobState.PENDING:
        return Refusal.INVALID_TRANSITION
    return _give_up(record, now_us, "expired", None) if is_expired(record, now_us) else Refusal.NOT_DUE


def _reschedule(record: RecordFields, command: Command, now_us: int, policy: Policy) -> RecordFields | Refusal:
    if record.state != JobState.PENDING:
        return Refusal.INVALID_TRANSITION
    moved = record
    if command.priority is not None:
        moved = moved._replace(priority=command.priority)
    if command.not_before is not None:
        moved = moved._replace(not_before=command.not_before or None)
    return _log(moved, now_us, "rescheduled", command.detail)


def _progress(record: RecordFields, command: Command, now_us: int, policy: Policy) -> RecordFields | Refusal:
    if not _held(record, command):
        return Refusal.LEASE_CONFLICT
    told = _prolong(record, command, now_us)._replace(progress=command.progress, progress_text=command.detail)
    return _log(told, now_us, "extended")


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
    Verb.CANCEL: _cancel,
    Verb.EXPIRE: _expire,
    Verb.RESCHEDULE: _reschedule,
    Verb.PROGRESS: _progress,
}


def is_expired(record: RecordFields, now_us: int) -> bool:
    """Whether it is too late to lease a job."""
    return record.expires_at is not None and record.expires_at <= now_us


def _will_expire(record: RecordFields, now_us: int) -> bool:
    """Whether a job that waits is over before its gate opens."""
    return is_expired(record, max(record.not_before or 0, now_us))


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


def _finish(record: RecordFields, command: Command) -> RecordFields:
    return _unlease(record, JobState.COMPLETED)._replace(
        durable_continuation=None, result=command.result, result_bytes=command.result_bytes
    )


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
    dead = _unlease(record, JobState.DEAD)._replace(not_before=None, dead_reason=reason)
    return _log(dead, now_us, "dead", detail)


def _give_up(record: RecordFields, now_us: int, reason: str, detail: str | None) -> RecordFields:
    """A verb of its own ends the job, whose name is the event. Nobody may finish it late."""
    dead = _unlease(record, JobState.DEAD)._replace(not_before=None, dead_reason=reason, reaped_worker_id=None)
    return _log(dead, now_us, reason, detail)


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
