"""What a power cut took is judged rightly: the newest calls may go where the mode says so, and nothing else."""

from __future__ import annotations

import pytest

from telha_queue import JobRecord, JobSpec, Queue, Scope
from tests.torture.history import History
from tests.torture.inspector import Seen

ACME = Scope.named("acme")
CUT = 100

Told = list[list[JobRecord]]


@pytest.fixture
def told(queue: Queue) -> Told:
    """Four calls on three jobs: two are enqueued one by one, one is leased, and two come in a batch."""
    first = queue.enqueue(ACME, "first")
    leased = queue.lease_next(ACME, worker_id="w")
    assert leased is not None
    second = queue.enqueue(ACME, "second")
    batch = queue.enqueue_many(ACME, [JobSpec("third"), JobSpec("fourth")])
    return [[first], [leased], [second], [*batch]]


@pytest.fixture
def history(told: Told) -> History:
    history = History()
    for n, jobs in enumerate(told):
        history.take("t0 try verb -", 10 * n)
        rows = " ".join(f"{job.key.hex()} {job.value.hex()}" for job in jobs)
        history.take(f"t0 ok verb {rows}", 10 * n + 5)
    return history


def seen(*jobs: JobRecord) -> Seen:
    return Seen({job.job_id.bytes: job for job in jobs})


def test_all_is_well_when_all_is_there(history: History, told: Told) -> None:
    (_,), (leased,), (second,), batch = told
    assert history.judge(seen(leased, second, *batch), CUT, kept_until=CUT) == []


def test_the_newest_may_go_only_where_nothing_is_promised(history: History, told: Told) -> None:
    (_,), (leased,), _, _ = told
    assert history.judge(seen(leased), CUT, kept_until=0) == []
    assert history.judge(seen(), CUT, kept_until=0) == []
    assert any("lost" in text for text in history.judge(seen(leased), CUT, kept_until=CUT))


def test_a_call_that_was_under_way_at_the_cut_may_be_there_or_not(history: History, told: Told) -> None:
    (_,), (leased,), (second,), _ = told
    assert history.judge(seen(leased), 23, kept_until=23) == []
    assert history.judge(seen(leased, second), 23, kept_until=23) == []


def test_a_hole_is_found(history: History, told: Told) -> None:
    (_,), (leased,), (second,), batch = told
    assert any("hole" in text for text in history.judge(seen(leased, *batch), CUT, kept_until=0))
    assert any("hole" in text for text in history.judge(seen(second, *batch), CUT, kept_until=0))


def test_a_lost_transition_of_a_job_that_is_there_is_found(history: History, told: Told) -> None:
    (first,), _, (second,), batch = told
    assert any("hole" in text for text in history.judge(seen(first, second, *batch), CUT, kept_until=0))


def test_half_a_batch_is_found(history: History, told: Told) -> None:
    (_,), (leased,), (second,), batch = told
    assert any("half" in text for text in history.judge(seen(leased, second, batch[0]), CUT, kept_until=0))


def test_what_nobody_asked_for_is_found(history: History, told: Told, queue: Queue) -> None:
    (_,), (leased,), (second,), batch = told
    other = queue.enqueue(ACME, "other")
    assert any("invented" in text for text in history.judge(seen(leased, second, *batch, other), CUT, kept_until=0))
    assert any("invented" in text for text in history.judge(seen(leased), 5, kept_until=0))
