"""Progress: how much of a job is done, as its holder says; a heartbeat that leaves the trail as it is."""

from __future__ import annotations

import math

import pytest

from telha_queue.errors import InvalidArgument
from telha_queue.scope import Scope

ACME = Scope.named("acme")


@pytest.fixture
def lease(queue):
    """The first lease of a job."""
    queue.enqueue(ACME, "embed")
    return queue.lease_next(ACME, worker_id="w")


@pytest.mark.parametrize("fraction", [0, 0.0, 0.25, 1 / 3, 1e-9, 0.9999999, 1, 1.0])
def test_it_is_kept_to_the_millionth(queue, lease, fraction):
    job = queue.progress(lease, fraction)
    assert job.progress == queue.get(ACME, lease.job_id).progress == round(fraction, 6)
    assert job.progress_text is None


def test_a_text_goes_with_it_and_the_newest_counts(queue, lease):
    assert queue.progress(lease, 0.5, "page 40 of 80").progress_text == "page 40 of 80"
    job = queue.progress(lease, 0.25)
    assert (job.progress, job.progress_text) == (0.25, None)
    assert queue.progress(lease, 0.3, "x" * 4096).progress_text == "x" * 4096


def test_a_job_of_which_nothing_was_said_has_none(queue, lease):
    assert (lease.progress, lease.progress_text) == (None, None)


def test_it_is_a_heartbeat(queue, clock, lease):
    clock.advance(secs=200)
    assert queue.progress(lease, 0.5).lease_deadline == clock() + 300_000_000
    assert queue.progress(lease, 0.5, lease_ttl_secs=400).lease_deadline == clock() + 400_000_000
    assert queue.progress(lease, 0.5, lease_ttl_secs=1).lease_deadline == clock() + 400_000_000


def test_the_trail_does_not_grow(queue, clock, lease):
    for step in range(50):
        clock.advance(secs=1)
        job = queue.progress(lease, step / 50, f"step {step}")
    queue.extend(lease)
    told = [(event.transition, event.count) for event in queue.get(ACME, job.job_id).events]
    assert told == [("enqueued", 1), ("leased", 1), ("extended", 51)]


def test_it_stays_with_a_job_that_waits_or_has_ended_and_goes_with_the_next_lease(queue, lease):
    queue.progress(lease, 0.75, "nearly")
    released = queue.release(lease)
    assert (released.progress, released.progress_text) == (0.75, "nearly")
    second = queue.lease_next(ACME, worker_id="w2")
    assert (second.progress, second.progress_text) == (None, None)
    queue.progress(second, 1, "all")
    done = queue.complete(second)
    assert (done.progress, done.progress_text) == (1.0, "all")


@pytest.mark.parametrize("fraction", [-1e-9, 1.0000001, 2, -1, math.nan, math.inf, -math.inf, True, "0.5", None, b"1"])
def test_what_is_no_fraction_is_refused(queue, lease, refused, fraction):
    with refused(queue, InvalidArgument):
        queue.progress(lease, fraction)


@pytest.mark.parametrize("text", ["x" * 4097, "ä" * 2049, "a\0b", b"bytes", 7])
def test_what_is_no_line_is_refused(queue, lease, refused, text):
    with refused(queue, InvalidArgument):
        queue.progress(lease, 0.5, text)


def test_it_survives_a_restart(queue, reopen, lease):
    queue.progress(lease, 0.5, "half")
    job = reopen(queue).get(ACME, lease.job_id)
    assert (job.progress, job.progress_text) == (0.5, "half")
