"""A job in words for people and as a JSON object for programs. Pure: the time is an argument, nothing is printed."""

from __future__ import annotations

import base64
import codecs
from typing import Any

from telha_queue.cli import scopes
from telha_queue.cli.text import age, clipped, instant, size, span
from telha_queue.job import DeadJob, JobEvent, JobRecord, JobState
from telha_queue.scope import Scope

_SHOWN_CHARS = 200
_SHOWN_SPACE = "\t\n\r"
_REASONS = {"attempts": "out of attempts", "poison": "no worker survived it"}


def state_of(job: JobRecord) -> str:
    """The name of its state."""
    return job.state.name.lower()


def ready_us(job: JobRecord) -> int:
    """Since when a pending job could be leased, or from when it can."""
    return max(job.created_at, job.not_before or 0)


def age_of(job: JobRecord, now_us: int) -> str:
    """How long ago it was enqueued, for a narrow column."""
    return age(now_us - job.created_at)


def outlook(job: JobRecord, now_us: int) -> str:
    """What the job waits for, or who has it; empty when there is nothing to say."""
    if job.state == JobState.PENDING:
        gated = job.not_before is not None and job.not_before > now_us
        due = f"due in {span(job.not_before - now_us)}" if gated and job.not_before else ""
        return ", ".join(filter(None, (due, _expiry(job, now_us))))
    if job.state == JobState.LEASED:
        left_us = (job.lease_deadline or 0) - now_us
        ends = f"ends in {span(left_us)}" if left_us >= 0 else f"ended {span(-left_us)} ago"
        return f"worker {job.worker_id}, lease {ends}"
    if job.state == JobState.DEAD:
        return _reason(job.dead_reason or "")
    return ""


def _expiry(job: JobRecord, now_us: int) -> str:
    if job.expires_at is None:
        return ""
    left_us = job.expires_at - now_us
    return f"expires in {span(left_us)}" if left_us > 0 else f"expired {span(-left_us)} ago"


def death_of(job: DeadJob, scope: Scope) -> str:
    """Whose job the reaper gave up and why, and who had it last. The scope is the job's, with its name."""
    tries = "1 attempt" if job.attempts == 1 else f"{job.attempts} attempts"
    return f"scope {scopes.label(scope)}; {_reason(job.dead_reason)}: {tries}, last held by {job.worker_id}"


def _reason(dead_reason: str) -> str:
    return _REASONS.get(dead_reason, dead_reason.replace("_", " "))


def last_error(job: JobRecord) -> str | None:
    """Why its latest attempt came to nothing, or it was cancelled; None when it was retried since, or is done."""
    if job.state == JobState.COMPLETED:
        return None
    for event in reversed(job.events):
        if event.transition == "retried":
            return None
        if event.transition == "reaped":
            return f"lease of {event.detail} expired"
        if event.transition in ("failed", "dead", "cancelled") and event.detail:
            return event.detail
    return None


def error_line(job: JobRecord) -> str:
    """The line of its last error that says most: the first, or the last one of a traceback."""
    lines = (last_error(job) or "").strip().splitlines()
    if not lines:
        return ""
    return clipped(lines[-1].strip() if lines[0].startswith("Traceback ") else lines[0], _SHOWN_CHARS)


def facts(job: JobRecord, scope: Scope, payload: bytes, now_us: int) -> list[tuple[str, str]]:
    """What `telha jobs show` says above the trail: label and text, in reading order. The scope brings its name."""
    said = outlook(job, now_us)
    ceiling = "" if job.max_attempts is None else f" of {job.max_attempts} allowed"
    crashed = f", {job.crashes} of them by a crash" if job.crashes else ""
    found = [
        ("job", str(job.job_id)),
        *scopes.facts(scope),
        ("kind", job.kind),
        ("state", f"{state_of(job)}, {said}" if said else state_of(job)),
        ("priority", str(job.priority)),
        ("attempts", f"{job.attempts} lost{ceiling}{crashed}"),
        ("created", f"{instant(job.created_at)}, {span(max(now_us - job.created_at, 0))} ago"),
        ("payload", payload_summary(payload)),
    ]
    if job.expires_at is not None:
        found.append(("expires", instant(job.expires_at)))
    if job.lease_generation:
        found.append(("leases", f"the latest is generation {job.lease_generation}"))
    if job.idempotency_key is not None:
        found.append(("key", job.idempotency_key))
    found += [("header", f"{name}: {value}") for name, value in job.headers.items()]
    if job.continuation is not None:
        found.append(("checkpoint", size(len(job.continuation))))
    if job.durable_continuation is not None:
        found.append(("durable", f"checkpoint, {size(len(job.durable_continuation))}"))
    if job.progress is not None:
        text = f": {clipped(job.progress_text, _SHOWN_CHARS)}" if job.progress_text else ""
        found.append(("progress", f"{100 * job.progress:.4g} %{text}"))
    if job.result_bytes is not None:
        found.append(("result", size(job.result_bytes)))
    return found


def payload_summary(payload: bytes) -> str:
    """Its size, and its start when it is text."""
    text = _as_text(payload)
    if not payload or text is None:
        return size(len(payload)) + (", not text" if payload else "")
    return f"{size(len(payload))}: {clipped(text, _SHOWN_CHARS)}"


def _as_text(payload: bytes) -> str | None:
    head = payload[: 4 * _SHOWN_CHARS + 8]
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head, final=len(head) == len(payload))
    except UnicodeDecodeError:
        return None
    return text if all(char.isprintable() or char in _SHOWN_SPACE for char in text) else None


def steps(job: JobRecord) -> list[tuple[str, str, str, str]]:
    """The trail: time, time since the step before, step, detail; further lines of a detail have rows of their own."""
    rows: list[tuple[str, str, str, str]] = []
    before: JobEvent | None = None
    for event in job.events:
        gap = "" if before is None else _signed(event.at - _end(before))
        first, *more = _detail(event).splitlines() or [""]
        rows.append((instant(event.at), gap, event.transition, first))
        rows.extend(("", "", "", line) for line in more)
        if before is None and job.events_dropped:
            rows.append(("", "", "…", f"{job.events_dropped} steps dropped here"))
        before = event
    return rows


def _end(event: JobEvent) -> int:
    return event.at if event.last_at is None else event.last_at


def _signed(us: int) -> str:
    return span(us) if us < 0 else f"+{span(us)}"


def _detail(event: JobEvent) -> str:
    if event.count == 1:
        return event.detail or ""
    merged = f"{event.count} times in {span(_end(event) - event.at)}"
    return f"{merged}; {event.detail}" if event.detail else merged


def as_json(job: JobRecord, scope: Scope, payload: bytes | None = None) -> dict[str, Any]:
    """A job as a JSON object, times in µs since the epoch; with payload, checkpoint and trail if given its payload.

    The scope is the job's, with its name.
    """
    document: dict[str, Any] = {
        "job_id": str(job.job_id),
        **scopes.as_json(scope),
        "kind": job.kind,
        "state": state_of(job),
        "priority": job.priority,
        "created_at": job.created_at,
        "attempts": job.attempts,
        "crashes": job.crashes,
        "max_attempts": job.max_attempts,
        "lease_generation": job.lease_generation,
        "worker_id": job.worker_id,
        "lease_deadline": job.lease_deadline,
        "not_before": job.not_before,
        "expires_at": job.expires_at,
        "idempotency_key": job.idempotency_key,
        "dead_reason": job.dead_reason,
        "last_error": last_error(job),
        "payload_bytes": job.payload_bytes,
        "progress": job.progress,
        "progress_text": job.progress_text,
        "result_bytes": job.result_bytes,
    }
    if payload is not None:
        continuation, durable = job.continuation, job.durable_continuation
        document |= {
            "payload_base64": _base64(payload),
            "headers": dict(job.headers),
            "continuation_base64": None if continuation is None else _base64(continuation),
            "durable_continuation_base64": None if durable is None else _base64(durable),
            "events": [event._asdict() for event in job.events],
            "events_dropped": job.events_dropped,
        }
    return document


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
