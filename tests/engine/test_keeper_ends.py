"""A keeper of leases under many threads, closed, and given what it cannot use."""

from __future__ import annotations

import pytest

from telha_queue.errors import InvalidArgument, StoreClosed
from telha_queue.job import JobRecord, JobState
from telha_queue.scope import Scope

ACME = Scope.named("acme")
LONG_SECS = 60


@pytest.fixture
def queue(kept_queue):
    return kept_queue


def test_each_hold_is_told_to_one_of_those_who_wait(queue, keeper, take, together, until):
    leases = take(60)
    holds = keeper.hold(leases)
    told = []

    def wait():
        while len(told) < len(holds):
            told.extend(keeper.wait(0.01))

    def lose():
        for lease in leases:
            queue.release(lease)
        until(lambda: len(told) >= len(holds))

    together(lose, *[wait] * 4)
    assert sorted(map(id, told)) == sorted(map(id, holds))


def test_holds_and_ends_from_many_threads_lose_nothing_and_tell_of_nothing(queue, keeper, take, together):
    leases = take(400)
    sizes = (1, 2, 16)

    def work(n):
        mine = leases[50 * n : 50 * n + 50]
        for turn in range(60):
            size = sizes[turn % 3]
            for at in range(0, 50, size):
                holds = keeper.hold(mine[at : at + size])
                if turn < 59:
                    keeper.end(holds)
                    assert {held.over for held in holds} == {"ended"}
                else:
                    keeper.end(holds)
                    outcomes = queue.complete_many(mine[at : at + size])
                    assert all(isinstance(outcome, JobRecord) for outcome in outcomes)

    together(*[lambda n=n: work(n) for n in range(8)])
    assert keeper.wait(0) == []
    assert queue.counts()[JobState.COMPLETED] == 400


@pytest.mark.parametrize("closes", ["keeper", "queue"])
def test_close_ends_holds_and_wakes_those_who_wait(queue, keeper, take, together, closes):
    holds = keeper.hold(take(3))

    def wait():
        with pytest.raises(StoreClosed):
            keeper.wait(LONG_SECS)

    together(keeper.close if closes == "keeper" else queue.close, *[wait] * 3)
    assert [held.over for held in holds] == ["ended"] * 3
    for call in (lambda: keeper.hold([]), lambda: keeper.wait(0)):
        with pytest.raises(StoreClosed):
            call()
    keeper.end(holds)
    keeper.close()
    if closes == "keeper":
        [lease] = take(1)
        assert [held.over for held in queue.keeper().hold([lease])] == [None]


def test_close_waits_for_no_renewal_that_is_to_come_and_may_come_from_many_threads(queue, take, together):
    for _ in range(20):
        keeper = queue.keeper()
        keeper.hold(take(5))
        together(*[keeper.close] * 4)


def test_a_closed_queue_makes_no_keeper(queue):
    queue.close()
    with pytest.raises(StoreClosed):
        queue.keeper()


def test_a_wait_in_vain_ends_in_time(keeper):
    assert keeper.wait(0) == []
    assert keeper.wait(0.01) == []


def test_what_is_wrong_is_said_and_nothing_is_kept(queue, keeper, take):
    [lease, other] = take(2)
    done = queue.complete(other)
    wrong = [
        *[lambda bad=bad: keeper.hold(bad) for bad in (None, lease, "leases", [lease, None], [done], [lease] * 1001)],
        *[lambda bad=bad: keeper.hold([lease], timeout_secs=bad) for bad in (-1, float("nan"), "1", None)],
        *[lambda bad=bad: keeper.hold([lease], progress_secs=bad) for bad in (-1, float("inf"), True)],
        *[lambda bad=bad: keeper.end(bad) for bad in (None, lease, [lease], [None], 7)],
        *[lambda bad=bad: keeper.wait(bad) for bad in (-1, None, "1")],
    ]
    for call in wrong:
        with pytest.raises(InvalidArgument):
            call()
    assert keeper.hold([]) == []
    keeper.end([])


def test_the_end_of_a_hold_of_another_keeper_is_nobodys_end(queue, keeper, take):
    holds = keeper.hold(take(2))
    queue.keeper().end(holds)
    assert [held.over for held in holds] == [None, None]
