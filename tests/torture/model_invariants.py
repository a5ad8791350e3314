"""What holds of a job from one look to the next, whatever verbs came between. Knows no queue, only records.

Written from the published promises, not from the code of either engine.
"""

from __future__ import annotations

from telha_queue import Exact, JobRecord, JobState

PENDING, LEASED, COMPLETED, DEAD = JobState.PENDING, JobState.LEASED, JobState.COMPLETED, JobState.DEAD
NEXT = {
    PENDING: {LEASED, COMPLETED},
    LEASED: {PENDING, COMPLETED, DEAD},
    DEAD: {PENDING, COMPLETED},
    COMPLETED: set[JobState](),
}
"""Where one write may lead, besides back to the same state."""


def row_faults(job: JobRecord, ceiling: int) -> list[str]:
    """What is wrong with one record by itself; `ceiling` is the attempts that the settings allow."""
    leased = job.state == LEASED
    allowed = ceiling if job.max_attempts is None else job.max_attempts
    checks = {
        "a worker is named exactly while the job is leased": (job.worker_id is not None) == leased,
        "a deadline is set exactly while the job is leased": (job.lease_deadline is not None) == leased,
        "a continuation lasts no longer than the lease": job.continuation is None or leased,
        "a durable continuation lasts until the job is completed": job.durable_continuation is None
        or job.state != COMPLETED,
        "only a completed job has a result": job.result_bytes is None or job.state == COMPLETED,
        "a dead job has a reason, and no other has one": (job.dead_reason is not None) == (job.state == DEAD),
        "a job whose attempts are used up is over": job.attempts < allowed or job.state in (DEAD, COMPLETED),
        "a dead job has used up its attempts, or was not retryable": job.state != DEAD
        or job.attempts >= allowed
        or job.dead_reason == "not_retryable",
        "crashes are attempts": job.crashes <= job.attempts,
        "poison means that every attempt crashed": job.dead_reason != "poison" or job.crashes == job.attempts,
        "what was never leased is pending": job.lease_generation > 0 or job.state == PENDING,
        "the trail opens with the enqueueing": job.events[0].transition == "enqueued",
        "the trail does not go back in time": _in_order(job),
    }
    return [f"{text}: {shown(job)}" for text, holds in checks.items() if not holds]


def change_faults(old: JobRecord, new: JobRecord, writes: int | None) -> list[str]:
    """What is wrong with a change; `writes` is how many verbs it took, None for any number."""
    checks = {
        "what was given at enqueueing stays": _given(old) == _given(new),
        "a generation never falls": new.lease_generation >= old.lease_generation,
        "a completed job never changes": old.state != COMPLETED or old.value == new.value,
    }
    if writes == 1:
        checks["one verb makes one allowed move"] = old.state == new.state or new.state in NEXT[old.state]
        became = old.state != LEASED and new.state == LEASED
        checks["a lease, and nothing else, raises the generation by 1"] = (
            new.lease_generation == old.lease_generation + became
        )
    return [f"{text}: {shown(old)} -> {shown(new)}" for text, holds in checks.items() if not holds]


def first_due(jobs: list[JobRecord], kinds: object, now_us: int) -> list[JobRecord]:
    """The jobs that may be leased, in the order in which they must be: by priority, then as they came."""
    due = [job for job in jobs if job.state == PENDING and (job.not_before or 0) <= now_us and wanted(job.kind, kinds)]
    return sorted(due, key=lambda job: (job.priority, job.created_at))


def wanted(kind: str, kinds: object) -> bool:
    """Whether a filter takes a kind."""
    if kinds is None:
        return True
    texts = (kinds,) if isinstance(kinds, str) else kinds
    assert isinstance(texts, tuple)
    return any(kind == text if isinstance(text, Exact) else kind.startswith(text) for text in texts)


def shown(job: JobRecord) -> str:
    """A record for a message."""
    return (
        f"{job.job_id} {job.state} generation {job.lease_generation} worker {job.worker_id} attempts {job.attempts} "
        f"crashes {job.crashes} reason {job.dead_reason} gate {job.not_before} deadline {job.lease_deadline}"
    )


def _given(job: JobRecord) -> tuple[object, ...]:
    return job.kind, job.priority, job.created_at, job.idempotency_key, job.max_attempts, job.payload_bytes, job.scope


def _in_order(job: JobRecord) -> bool:
    times = [at for event in job.events for at in (event.at, event.last_at or event.at)]
    return times == sorted(times)
