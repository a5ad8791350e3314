"""What ends a job or moves it without its holder, and what a holder says of it: the same by both state machines."""

from __future__ import annotations

import pytest
from machines import PLAIN, held, job, outcome
from samples import NOW

from telha_queue.backoff import Policy
from telha_queue.command import Command, Refusal, Verb
from telha_queue.job import JobEvent, JobState

MERGED = (*PLAIN, JobEvent(3, "extended", None, 4, 5))


def test_a_cancelled_job_is_dead_whoever_held_it_and_is_finished_by_nobody():
    for state in (JobState.PENDING, JobState.LEASED):
        dead = outcome(job(state, reaped_worker_id="w1"), Command(Verb.CANCEL, detail="a typo"))
        assert (dead.state, dead.dead_reason) == (JobState.DEAD, "cancelled")
        assert (dead.worker_id, dead.not_before) == (None, None)
        assert dead.events[-1][:3] == (NOW, "cancelled", "a typo")
        for late in (False, True):
            assert outcome(dead, held(Verb.COMPLETE, accept_late=late)) is Refusal.LEASE_CONFLICT
    for state in (JobState.COMPLETED, JobState.DEAD):
        assert outcome(job(state), Command(Verb.CANCEL)) is Refusal.INVALID_TRANSITION


def test_an_expired_job_is_never_leased():
    lease = Command(Verb.LEASE, "w2", ttl_us=1)
    assert outcome(job(JobState.PENDING, expires_at=NOW), lease) is Refusal.NOT_DUE
    assert outcome(job(JobState.PENDING, expires_at=NOW + 1), lease).state == JobState.LEASED
    assert outcome(job(JobState.PENDING, expires_at=NOW + 1), Command(Verb.EXPIRE)) is Refusal.NOT_DUE
    dead = outcome(job(JobState.PENDING, expires_at=NOW), Command(Verb.EXPIRE))
    assert (dead.state, dead.dead_reason, dead.events[-1].transition) == (JobState.DEAD, "expired", "expired")


@pytest.mark.parametrize("command", [
    held(Verb.FAIL, detail="it broke", delay_us=10), held(Verb.RELEASE, delay_us=10), Command(Verb.REAP),
])  # fmt: skip
def test_a_job_that_would_be_due_when_it_has_expired_is_dead_at_once(command):
    policy = Policy(backoff_base_secs=0, max_attempts=9)
    back_at = NOW if command.verb == Verb.REAP else NOW + 10
    dead = outcome(job(JobState.LEASED, expires_at=back_at), command, policy=policy)
    assert (dead.state, dead.dead_reason, dead.not_before) == (JobState.DEAD, "expired", None)
    assert outcome(job(JobState.LEASED, expires_at=back_at + 1), command, policy=policy).state == JobState.PENDING


def test_a_retry_gives_an_expired_job_its_time_back():
    assert outcome(job(JobState.DEAD, expires_at=NOW), Command(Verb.RETRY)).expires_at is None
    assert outcome(job(JobState.DEAD, expires_at=NOW + 1), Command(Verb.RETRY)).expires_at == NOW + 1


def test_a_pending_job_gets_another_place_and_time():
    pending = job(JobState.PENDING, not_before=NOW + 5)
    assert outcome(pending, Command(Verb.RESCHEDULE, priority=0)).not_before == NOW + 5
    moved = outcome(pending, Command(Verb.RESCHEDULE, priority=0, not_before=NOW + 9, detail="why"))
    assert (moved.priority, moved.not_before, moved.events[-1][:3]) == (0, NOW + 9, (NOW, "rescheduled", "why"))
    now = outcome(pending, Command(Verb.RESCHEDULE, not_before=0))
    assert (now.priority, now.not_before) == (128, None)
    for state in (JobState.LEASED, JobState.COMPLETED, JobState.DEAD):
        assert outcome(job(state), Command(Verb.RESCHEDULE, priority=0)) is Refusal.INVALID_TRANSITION


def test_progress_is_a_heartbeat_that_the_next_lease_forgets():
    command = held(Verb.PROGRESS, progress=500_000, detail="page 7", ttl_us=9)
    told = outcome(job(JobState.LEASED, events=MERGED), command)
    assert (told.progress, told.progress_text, told.lease_deadline) == (500_000, "page 7", NOW + 9)
    assert (len(told.events), told.events[-1].count) == (len(MERGED), 5)
    back = outcome(told, held(Verb.RELEASE))
    assert back.progress == 500_000
    again = outcome(back, Command(Verb.LEASE, "w2", ttl_us=1))
    assert (again.progress, again.progress_text) == (None, None)


def test_a_durable_checkpoint_lasts_until_the_job_is_completed():
    kept = outcome(job(JobState.LEASED), held(Verb.CHECKPOINT, continuation=b"page 7", durable=True))
    assert (kept.continuation, kept.durable_continuation) == (b"half way", b"page 7")
    assert kept.events[-1].detail == "durable, 6 bytes"
    back = outcome(kept, held(Verb.FAIL, detail="it broke"))
    assert (back.continuation, back.durable_continuation) == (None, b"page 7")
    done = outcome(kept, held(Verb.COMPLETE, result=b"four", result_bytes=4))
    assert (done.durable_continuation, done.result, done.result_bytes) == (None, b"four", 4)
