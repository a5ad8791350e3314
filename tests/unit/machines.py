"""Both state machines, asked together: a job, what is asked of it, and what they agree comes of it."""

from __future__ import annotations

from samples import JOB_ID, NOW

from telha_queue import _codec, transitions
from telha_queue.backoff import Policy
from telha_queue.command import Command, Refusal, Verb
from telha_queue.job import JobEvent, JobState
from telha_queue.record import RecordFields

DEFAULTS = Policy()
PLAIN = (JobEvent(1, "enqueued"), JobEvent(2, "leased", "w1"))


def job(state: JobState, **changes: object) -> RecordFields:
    is_leased = state == JobState.LEASED
    record = RecordFields(
        job_id=JOB_ID,
        kind="embed",
        payload=b"payload",
        priority=128,
        created_at=1,
        state=state,
        lease_generation=7,
        worker_id="w1" if is_leased else None,
        lease_deadline=NOW if is_leased else None,
        continuation=b"half way" if is_leased else None,
        events=PLAIN,
        payload_bytes=7,
        dead_reason="attempts" if state == JobState.DEAD else None,
    )
    return record._replace(**changes)


def outcome(
    record: RecordFields, command: Command, now_us: int = NOW, policy: Policy = DEFAULTS
) -> RecordFields | Refusal:
    """Ask both machines; return what they agree on."""
    said = transitions.step(record, command, now_us, policy)
    done = _codec.step(_codec.encode_record(record), command, now_us, policy)
    assert done == (said if isinstance(said, Refusal) else _codec.encode_record(said)), (record, command, policy)
    return said


def held(verb: Verb, **arguments: object) -> Command:
    return Command(verb, worker_id="w1", lease_generation=7)._replace(**arguments)
