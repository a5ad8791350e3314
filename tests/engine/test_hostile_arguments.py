"""Values that are not what they say: what is checked is what is stored, and what cannot be read is refused."""

from __future__ import annotations

from itertools import count, repeat
from uuid import UUID

import pytest

from telha_queue.errors import InvalidArgument, InvalidScope, InvalidType, JobNotFound, PayloadTooLarge
from telha_queue.job import JobSpec, Lease
from telha_queue.queue import Queue
from telha_queue.scope import Scope
from telha_queue.testing import ManualClock

ACME = Scope.named("acme")
HUGE = 10**5000  # Python refuses to print it
LAST_US = 2**63 - 1
TEN_YEARS_US = 10 * 365 * 24 * 3600 * 10**6
LIMIT_BYTES = 1024 * 1024


class Liar(str):
    """A str that passes every check of its own making."""

    def isprintable(self):
        return True

    def isascii(self):
        return True

    def __len__(self):
        return 1

    def __bool__(self):
        return True

    def __str__(self):
        return "fine"

    def __repr__(self):
        raise RuntimeError

    def encode(self, *_, **__):
        return b"x"

    def __contains__(self, _):
        return False


class Other(UUID):
    """A UUID that says other bytes than it is."""

    bytes = b"short"


class Unborn(UUID):
    """A UUID that was never given its number."""

    def __init__(self):
        pass


class Blob(bytes):
    """Bytes that turn into others."""

    def __len__(self):
        return 1

    def __bytes__(self):
        return Blob(b"other")


def grown(number):
    """A UUID with a number that no UUID has."""
    made = UUID(int=0)
    object.__setattr__(made, "int", number)
    return made


@pytest.fixture
def lease(queue):
    queue.enqueue(ACME, "embed")
    return queue.lease_next(ACME, worker_id="w")


NAMED = {
    "kind": lambda q, lease, bad: q.enqueue(ACME, bad),
    "idempotency_key": lambda q, lease, bad: q.enqueue(ACME, "embed", idempotency_key=bad),
    "worker_id": lambda q, lease, bad: q.lease_next(ACME, worker_id=bad),
    "kinds": lambda q, lease, bad: q.lease_next(ACME, bad, worker_id="w"),
    "holder": lambda q, lease, bad: q.complete(Lease(ACME, lease.job_id, bad, 1)),
}


@pytest.mark.parametrize("what", NAMED)
def test_a_text_is_judged_by_its_characters_and_not_by_what_it_says(queue, lease, refused, what):
    for text in ("", "a\0b", "\ud800", "\x1b[2J", "k" * 256, "ä" * 128):
        with refused(queue, InvalidArgument, case=ascii(text)):
            NAMED[what](queue, lease, Liar(text))


def test_a_liar_with_honest_text_is_stored_as_its_text(queue):
    job = queue.enqueue(ACME, Liar("embed"), idempotency_key=Liar("one"))
    assert (job.kind, job.idempotency_key) == ("embed", "one")
    lease = queue.lease_next(ACME, Liar("embed"), worker_id=Liar("w"))
    assert lease.worker_id == "w"
    assert queue.stats(lease, Liar("line")).events[-1].detail == "line"
    assert queue.fail(lease, Liar("broken\0")).events[-1].detail == "broken?"


def test_a_line_of_the_trail_is_measured_and_not_asked(queue, lease, refused):
    for text in ("a\0b", "x" * 4097):
        with refused(queue, InvalidArgument):
            queue.stats(lease, Liar(text))
    failed = queue.fail(lease, Liar("\ud800" + "x" * 10_000))
    assert len(failed.events[-1].detail.encode()) <= 4096


def test_a_scope_is_named_by_the_characters_of_its_name(queue):
    assert (Scope.named(Liar("acme")), type(Scope.named(Liar("acme")).name)) == (ACME, str)
    assert type(Scope(ACME.key, Liar("acme")).name) is str
    for text in ("", "a\0b", "\ud800", "x" * 256):
        with pytest.raises(InvalidScope):
            Scope.named(Liar(text))
        with pytest.raises(InvalidScope):
            Scope(ACME.key, Liar(text))


def test_an_id_is_its_number(queue, lease, refused):
    assert queue.get(ACME, Other(int=lease.job_id.int)).job_id == lease.job_id
    assert Scope.tenant(Other(int=7), Other(int=8)) == Scope.tenant(UUID(int=7), UUID(int=8))
    with refused(queue, JobNotFound):
        queue.find(Other(int=1))
    for bad in (Unborn(), grown(2**128), grown(-1), grown("7"), grown(None)):
        for verb in (queue.find, lambda bad: queue.retry(ACME, bad), lambda bad: queue.extend_any(bad, "w", 1)):
            with refused(queue, InvalidArgument):
                verb(bad)
        with pytest.raises(InvalidScope):
            Scope.tenant(bad)
        with pytest.raises(InvalidScope):
            Scope.tenant(UUID(int=1), bad)


NUMBERS = {
    "priority": lambda q, lease, bad: q.enqueue(ACME, "embed", priority=bad),
    "max_attempts": lambda q, lease, bad: q.enqueue(ACME, "embed", max_attempts=bad),
    "not_before": lambda q, lease, bad: q.enqueue(ACME, "embed", not_before=bad),
    "delay_secs": lambda q, lease, bad: q.enqueue(ACME, "embed", delay_secs=bad),
    "lease_ttl_secs": lambda q, lease, bad: q.extend(lease, lease_ttl_secs=bad),
    "wait_secs": lambda q, lease, bad: q.lease_next(ACME, worker_id="w", wait_secs=bad),
    "n": lambda q, lease, bad: q.lease_many(ACME, bad, worker_id="w"),
    "generation": lambda q, lease, bad: q.complete(Lease(ACME, lease.job_id, "w", bad)),
    "release": lambda q, lease, bad: q.release(lease, delay_secs=bad),
    "limit": lambda q, lease, bad: q.list(limit=bad),
    "now_us": lambda q, lease, bad: q.reap_expired(bad),
    "late": lambda q, lease, bad: q.complete(lease, late=bad),
}


@pytest.mark.parametrize("what", NUMBERS)
def test_a_number_too_long_to_print_is_refused_like_any_other(queue, lease, refused, what):
    for bad in (HUGE, -HUGE):
        with refused(queue, InvalidArgument) as caught:
            NUMBERS[what](queue, lease, bad)
        assert f"not an int of {HUGE.bit_length()} bits" in str(caught.value)


def test_iterables_without_an_end_are_refused(queue, lease, refused):
    for call in (
        lambda: queue.enqueue_many(ACME, repeat(JobSpec("embed"))),
        lambda: queue.complete_many(repeat(lease)),
        lambda: queue.lease_next(ACME, (f"k{n}" for n in count()), worker_id="w"),
        lambda: queue.list(kinds=(f"k{n}" for n in count())),
    ):
        with refused(queue, InvalidArgument):
            call()


def test_bytes_are_the_bytes_in_memory(queue):
    for value in (Blob(b"data"), bytearray(b"data"), memoryview(b"data"), memoryview(b"data").cast("I")):
        assert queue.enqueue(ACME, "embed", value).payload == b"data"


def test_bytes_are_measured_before_they_are_copied(queue, lease, refused):
    sparse = memoryview(bytearray(LIMIT_BYTES + 4)).cast("I")
    for value in (Blob(LIMIT_BYTES + 4), bytearray(LIMIT_BYTES + 4), sparse):
        for call in (lambda v: queue.enqueue(ACME, "embed", v), lambda v: queue.checkpoint(lease, v)):
            with refused(queue, PayloadTooLarge) as caught:
                call(value)
            assert caught.value.size_bytes == LIMIT_BYTES + 4


def test_the_reaper_is_told_of_no_time_more_than_ten_years_ahead(queue, clock, lease, refused):
    for at_us in (clock() * 1000, clock() + TEN_YEARS_US + 1, LAST_US):
        with refused(queue, InvalidArgument):
            queue.reap_expired(at_us)
    assert queue.enqueue(ACME, "embed").created_at < clock() + 10
    assert queue.reap_expired(clock() + TEN_YEARS_US).reclaimed == 1


def test_delays_and_gates_end_at_the_end_of_time(engine):
    clock = ManualClock(LAST_US - 5)
    queue = Queue(engine, None, clock)
    job = queue.enqueue(ACME, "embed", delay_secs=3600)
    assert job.not_before == LAST_US
    assert queue.enqueue(ACME, "embed", not_before=LAST_US).not_before == LAST_US
    with pytest.raises(InvalidArgument):
        queue.enqueue(ACME, "embed", not_before=LAST_US + 1)
    assert queue.reap_expired(LAST_US).reclaimed == 0
    lease = queue.lease_next(ACME, worker_id="w")
    assert queue.release(lease, delay_secs=3600).not_before == LAST_US


@pytest.mark.parametrize("read", [None, "7", 1.5, True, b"", 1e15])
def test_a_clock_that_tells_no_time_is_named(engine, read):
    queue = Queue(engine, None, lambda: read)
    with pytest.raises(InvalidType, match="the clock returns"):
        queue.enqueue(ACME, "embed")


def test_a_clock_before_the_epoch_is_refused_and_one_after_the_end_of_time_stops_there(engine):
    for read in (-1, -HUGE):
        with pytest.raises(InvalidArgument, match="the clock returns"):
            Queue(engine, None, lambda read=read: read).enqueue(ACME, "embed")
    assert Queue(engine, None, lambda: HUGE).enqueue(ACME, "embed").created_at == LAST_US
