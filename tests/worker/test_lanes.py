"""Lanes: reserved shares of a worker, over random loads."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telha_queue import Exact, Scope
from telha_queue.errors import ConfigError
from telha_queue.worker import Job, task
from telha_queue.worker.lanes import Lane, Permits

KINDS = ("a", "b", "c")


@st.composite
def workers(draw):
    lanes = [
        Lane(kind, [kind], draw(st.integers(1, 4)), borrow=draw(st.booleans()))
        for kind in draw(st.sets(st.sampled_from(KINDS[:2])))
    ]
    return lanes, sum(lane.reserved for lane in lanes) + draw(st.integers(0 if lanes else 1, 4))


class Load:
    """A queue and what runs of it: jobs wait by kind, and are filled in as a worker does."""

    def __init__(self, permits):
        self.permits = permits
        self.waiting = []
        self.running = []

    def fill(self):
        for share in self.permits.shares:
            while self.permits.room(share) and (kind := next((k for k in self.waiting if k in share.kinds), None)):
                self.waiting.remove(kind)
                self.permits.take(share)
                self.running.append((share, kind))

    def end(self, number):
        share, _ = self.running.pop(number % len(self.running))
        self.permits.give(share)


@given(
    workers(),
    st.lists(st.one_of(st.sampled_from(KINDS), st.integers(0, 99)), max_size=60),
)
def test_no_lane_with_work_has_less_than_its_reservation(worker, steps):
    lanes, concurrency = worker
    load = Load(Permits(concurrency, lanes, KINDS))
    for step in steps:
        if isinstance(step, str):
            load.waiting.append(step)
        elif load.running:
            load.end(step)
        load.fill()
        assert len(load.running) <= concurrency
        at_work, waiting = Counter(kind for _, kind in load.running), Counter(load.waiting)
        lent = any(lane.lends for lane in load.permits.lanes)
        for lane in lanes:
            if waiting[lane.name] and not lane.borrow:
                assert at_work[lane.name] >= lane.reserved
            if waiting[lane.name]:  # a permit that was lent may be out, but none lies idle
                assert load.permits.room(load.permits.general) == 0
                assert next(s for s in load.permits.lanes if s.name == lane.name).free == 0
        idle = concurrency - len(load.running)
        if waiting["c"] and not lent:  # what lanes do not use stays unused
            assert idle == sum(share.free for share in load.permits.lanes)
        if waiting["c"] and all(lane.borrow for lane in lanes):
            assert idle == 0


@given(st.lists(st.integers(0, 99), min_size=2, max_size=2))
def test_what_was_borrowed_goes_back_to_its_lane_first(ends):
    load = Load(Permits(4, [Lane("a", ["a"], 2, borrow=True)], KINDS))
    load.waiting = ["b"] * 50
    load.fill()
    assert [kind for _, kind in load.running] == ["b"] * 4
    load.waiting += ["a", "a"]  # behind all the others
    for at_work, number in enumerate(ends, start=1):
        load.end(number % (5 - at_work))  # one of those that borrow
        load.fill()
        assert [kind for _, kind in load.running].count("a") == at_work


def test_what_was_leased_ahead_is_not_overtaken_through_a_lent_permit(queue, work):
    """Of general jobs that wait in line the first starts in a permit that a lane lends."""
    go, order = threading.Event(), []

    @task("hang")
    def hang(job: Job) -> None:
        go.wait(20)

    @task("b")
    def b(job: Job) -> None:
        order.append(int(job.payload))
        if len(order) == 6:
            go.set()

    @task("a")
    def a(job: Job) -> None: ...

    hang.enqueue(queue, Scope.SYSTEM)
    queue.enqueue_many(Scope.SYSTEM, [b.spec(b"%d" % n) for n in range(6)])
    worker = work(hang, b, a, concurrency=2, prefetch=2, lanes=[Lane("a", ["a"], 1, borrow=True)])
    assert worker.wait_idle()
    assert order == sorted(order)


def test_a_lane_takes_the_kinds_of_its_filters_and_the_rest_is_filled_in_order():
    permits = Permits(3, [Lane("extraction", ["ext", Exact("b")], 2)], ["extract", "ext", "b", "bb", "c"])
    [lane] = permits.lanes
    assert lane.kinds == ("extract", "ext", "b")
    assert permits.general.kinds == ("extract", "ext", "b", "bb", "c")
    assert [permits.room(share) for share in permits.shares] == [2, 1]


@pytest.mark.parametrize(
    ("concurrency", "lanes"),
    [
        (0, []),
        (True, []),
        (10_001, []),
        (4, [Lane("a", ["a"], 5)]),
        (4, [Lane("a", ["a"], 3), Lane("b", ["b"], 2)]),
        (4, [Lane("a", ["a"], 1), Lane("a", ["b"], 1)]),
        (4, [Lane("general", ["a"], 1)]),
        (4, [Lane("a", ["a"], 0)]),
        (4, [Lane("a", ["nobody's"], 1)]),
        (4, [Lane("a", "a", 1)]),
    ],
)
def test_a_division_that_does_not_come_out_is_refused(concurrency, lanes):
    with pytest.raises(ConfigError):
        Permits(concurrency, lanes, KINDS)
