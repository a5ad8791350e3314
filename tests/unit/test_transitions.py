"""The compiled state machine writes the very bytes that the readable one says, whatever the job and the command."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import PLAIN, held, job, outcome
from samples import NOW, records, uint32, uint64, words

from telha_queue import _codec, transitions
from telha_queue.backoff import Policy
from telha_queue.clock import MAX_TIME_US
from telha_queue.command import Command, Refusal, Verb
from telha_queue.errors import CorruptRecord, InvalidArgument, InvalidType
from telha_queue.job import Cause, JobEvent, JobState
from telha_queue.record import WHOLE_PROGRESS, encode
from telha_queue.transitions import MAX_ATTEMPTS, MAX_GENERATION

GRACE_US = 10
TTL_US = 60_000_000
MERGED = (*PLAIN, JobEvent(3, "extended", None, 4, 5))
GATES = [None, NOW, NOW + 1]
ENDS = [None, NOW, NOW + 1, NOW + TTL_US]
"""When a job expires: each against the gates, and against what a failed attempt or a release waits for."""
DEADLINES = [NOW - GRACE_US - 1, NOW - GRACE_US, NOW - GRACE_US + 1, NOW + TTL_US + 1]
DELAYS = [None, 0, 5]
HOW = {Verb.RELEASE: list(product(DELAYS, [Cause.ERROR])), Verb.FAIL: list(product(DELAYS, Cause))}
"""Delays and causes of the verbs that look at them."""
EXPIRING = {Verb.LEASE, Verb.RELEASE, Verb.REAP, Verb.RETRY, Verb.EXPIRE}
BUDGETS = dict.fromkeys(Verb, (0,)) | {Verb.FAIL: (0, 2), Verb.REAP: (0, 1, 2)}
COUNTS = [(0, 0), (3, 3), (4, 1), (MAX_ATTEMPTS, MAX_ATTEMPTS)]


@pytest.mark.parametrize("state", JobState)
@pytest.mark.parametrize("verb", Verb)
def test_every_guard_of_every_verb_in_every_state(state, verb):
    deadlines = DEADLINES if state == JobState.LEASED else [None]
    ends = ENDS if verb in EXPIRING else [None]
    records = [
        job(state, not_before=gate, lease_deadline=deadline, attempts=attempts, crashes=crashes, max_attempts=ceiling,
            reaped_worker_id=reaped, events=events, expires_at=end)
        for gate, deadline, (attempts, crashes), ceiling, reaped, events, end in product(
            GATES, deadlines, COUNTS, [None, 1, 5], [None, "w1", "w2"], [PLAIN, MERGED], ends
        )
    ]  # fmt: skip
    commands = [
        Command(verb, worker, generation, TTL_US, "it broke", b"so far", retryable, accept_late, *how)
        for worker, generation, retryable, accept_late in product(["w1", "w2"], [7, 6], [True, False], [True, False])
        for how in HOW.get(verb, [(None, Cause.ERROR)])
    ]
    policies = [Policy(max_attempts=5, lease_grace_us=GRACE_US, max_crashes=budget) for budget in BUDGETS[verb]]
    for record, command, policy in product(records, commands, policies):
        outcome(record, command, policy=policy)


@given(
    records(),
    st.sampled_from(Verb),
    st.tuples(words, uint64, st.none() | words, st.binary(max_size=300), st.booleans(), st.booleans()),
    st.booleans(),
    st.tuples(st.integers(0, MAX_TIME_US), st.integers(0, MAX_TIME_US), st.none() | st.integers(0, MAX_TIME_US)),
    st.sampled_from(Cause),
    st.builds(Policy, uint32, st.integers(0, MAX_TIME_US), uint64, uint64, uint64, uint32, uint64),
    st.fixed_dictionaries(
        {
            "not_before": st.none() | st.integers(0, MAX_TIME_US),
            "priority": st.none() | st.integers(0, 255),
            "durable": st.booleans(),
            "progress": st.integers(0, WHOLE_PROGRESS),
            "result": st.none() | st.binary(max_size=300),
            "result_bytes": st.none() | st.integers(0, MAX_TIME_US),
        }
    ),
)
def test_any_record_under_any_command(record, verb, arguments, holds, times, cause, policy, further):
    worker_id, generation, detail, continuation, retryable, accept_late = arguments
    if holds:
        worker_id, generation = record.worker_id or record.reaped_worker_id or worker_id, record.lease_generation
    now_us, ttl_us, delay_us = times
    command = Command(
        verb, worker_id, generation, ttl_us, detail, continuation, retryable, accept_late, delay_us, cause, **further
    )
    outcome(record, command, now_us, policy)


@pytest.mark.parametrize("floor", [0, 7, 8, 9, 10**15, MAX_GENERATION])
def test_a_lease_starts_at_the_floor_and_what_was_reaped_below_it_is_not_finished_late(floor):
    policy = Policy(generation_floor=floor)
    leased = outcome(job(JobState.PENDING), Command(Verb.LEASE, "w2", ttl_us=1), policy=policy)
    assert leased.lease_generation == max(8, floor)
    for state in (JobState.PENDING, JobState.DEAD):
        late = outcome(job(state, reaped_worker_id="w1"), held(Verb.COMPLETE, accept_late=True), policy=policy)
        assert late is Refusal.LEASE_CONFLICT if floor > 7 else late.state == JobState.COMPLETED


def test_a_restore_ends_a_lease_whoever_has_it_and_counts_no_attempt():
    before = job(JobState.LEASED, attempts=2)
    moved = outcome(before, Command(Verb.RESTORE))
    assert (moved.state, moved.worker_id, moved.not_before) == (JobState.PENDING, None, None)
    assert (moved.attempts, moved.crashes, moved.lease_generation) == (2, 0, before.lease_generation)
    assert moved.events[-1][:3] == (NOW, "restored", "w1")


def test_the_last_generation_is_never_leased_past():
    lease = Command(Verb.LEASE, "w2", ttl_us=1)
    assert outcome(job(JobState.PENDING, lease_generation=MAX_GENERATION), lease) is Refusal.INVALID_TRANSITION
    last = outcome(job(JobState.PENDING, lease_generation=MAX_GENERATION - 1), lease)
    assert last.lease_generation == MAX_GENERATION


@pytest.mark.parametrize("verb", [Verb.EXTEND, Verb.CHECKPOINT, Verb.RELEASE, Verb.FAIL])
def test_times_saturate_at_the_end_of_time(verb):
    command = held(verb, ttl_us=MAX_TIME_US, delay_us=MAX_TIME_US)
    moved = outcome(job(JobState.LEASED), command, MAX_TIME_US)
    assert MAX_TIME_US in (moved.lease_deadline, moved.not_before)


def test_a_grace_without_end_is_never_over():
    policy = Policy(lease_grace_us=MAX_TIME_US)
    assert outcome(job(JobState.LEASED), Command(Verb.REAP), MAX_TIME_US - 1, policy) is Refusal.NOT_DUE
    assert outcome(job(JobState.LEASED), Command(Verb.REAP), MAX_TIME_US, policy).state == JobState.PENDING


@pytest.mark.parametrize("size", [0, 1, 9, 10, 255, 256, 65_536])
def test_a_checkpoint_tells_its_length(size):
    moved = outcome(job(JobState.LEASED), held(Verb.CHECKPOINT, continuation=bytes(size)))
    assert moved.events[-1].detail == f"{size} bytes"


def test_a_buried_job_tells_whose_lease_it_was():
    for worker_id in ("", "w1", "wörker" * 40, "x" * 70_000):
        record = job(JobState.LEASED, worker_id=worker_id, attempts=9)
        assert outcome(record, Command(Verb.REAP)).events[-1].detail == f"lease of {worker_id} expired"


def test_nobody_is_not_the_worker_with_no_name():
    late = Command(Verb.COMPLETE, "", 7, accept_late=True)
    assert outcome(job(JobState.PENDING), late) is Refusal.LEASE_CONFLICT
    assert outcome(job(JobState.PENDING, reaped_worker_id=""), late).state == JobState.COMPLETED


def test_a_merged_heartbeat_counts_up_to_its_limit():
    for count in (1, 2, MAX_ATTEMPTS - 1, MAX_ATTEMPTS, MAX_GENERATION):
        events = (*PLAIN, JobEvent(3, "extended", "why", count, 5))
        assert outcome(job(JobState.LEASED, events=events), held(Verb.EXTEND)).events[-1].detail == "why"


@pytest.mark.parametrize("count", [0, 1, 2, 15, 16, 255, 256, 257, 258, 400])
def test_a_trail_keeps_its_first_event_and_the_newest(count):
    events = tuple(JobEvent(at, "stats", f"line {at}") for at in range(count))
    moved = outcome(job(JobState.LEASED, events=events), held(Verb.STATS, detail="newest"))
    assert len(moved.events) == min(count + 1, 257)
    assert len(moved.events) + moved.events_dropped == count + 1
    assert moved.events[0] == (*events, moved.events[-1])[0]


@pytest.mark.parametrize("size", [1, 1000, 16_384, 32_767, 32_768, 65_535, 65_536, 65_537, 200_000])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 70])
def test_a_trail_keeps_at_most_64_kib_of_text(count, size):
    events = tuple(JobEvent(at, "stats", "é" * (size // 2)) for at in range(count))
    moved = outcome(job(JobState.LEASED, events=events), held(Verb.STATS, detail="x" * size))
    assert moved.events[-1].detail == "x" * size


def test_a_trail_grown_by_many_steps_stays_equal_to_the_readable_one():
    record = job(JobState.PENDING, lease_generation=0, events=(JobEvent(0, "enqueued"),))
    value, now_us = encode(record), 1
    verbs = [Verb.LEASE, Verb.EXTEND, Verb.EXTEND, Verb.STATS, Verb.CHECKPOINT, Verb.EXTEND, Verb.RELEASE]
    for _ in range(120):
        for verb in verbs:
            command = Command(verb, "w1", record.lease_generation, TTL_US, "a line of text", b"continuation")
            record = transitions.step(record, command, now_us, Policy())
            value = _codec.step(value, command, now_us, Policy())
            now_us += 1
        assert value == encode(record)
    assert record.events_dropped > 0


@pytest.mark.parametrize("name", ["lease_generation", "ttl_us", "delay_us", "cause"])
def test_arguments_of_another_type_or_range_are_refused(name):
    value = encode(job(JobState.LEASED))
    for bad in (True, 1.0, "1", *([None] if name != "delay_us" else [])):
        with pytest.raises(InvalidType):
            _codec.step(value, held(Verb.EXTEND, **{name: bad}), NOW, Policy())
    for bad in (-1, 2**64):
        with pytest.raises(InvalidArgument):
            _codec.step(value, held(Verb.EXTEND, **{name: bad}), NOW, Policy())


def test_text_that_is_no_text_is_refused():
    value = encode(job(JobState.LEASED))
    with pytest.raises(InvalidArgument):
        _codec.step(value, held(Verb.STATS, detail="\udc80"), NOW, Policy())
    with pytest.raises(InvalidType):
        _codec.step(value, held(Verb.CHECKPOINT, continuation="text"), NOW, Policy())


def test_a_corrupt_record_is_never_moved():
    with pytest.raises(CorruptRecord):
        _codec.step(encode(job(JobState.LEASED))[:-1], held(Verb.EXTEND), NOW, Policy())
