"""Backoff: S1's schedule, and no input that overflows."""

from __future__ import annotations

import random
from itertools import product

import pytest

from telha_queue import backoff
from telha_queue._codec import backoff_us
from telha_queue.backoff import Policy
from telha_queue.clock import MAX_TIME_US
from telha_queue.errors import InvalidArgument, InvalidType

BACKOFFS = [pytest.param(backoff_us, id="compiled"), pytest.param(backoff.backoff_us, id="python")]
HUGE = 2**63 - 1


@pytest.mark.parametrize("backoff", BACKOFFS)
def test_the_default_schedule_in_seconds(backoff):
    secs = [backoff(Policy(), attempts) // 1_000_000 for attempts in range(1, 10)]
    assert secs == [10, 40, 160, 640, 2560, 3600, 3600, 3600, 3600]


@pytest.mark.parametrize("backoff", BACKOFFS)
def test_no_attempt_yet_waits_like_the_first(backoff):
    assert backoff(Policy(), 0) == backoff(Policy(), 1) == 10_000_000


@pytest.mark.parametrize("backoff", BACKOFFS)
def test_the_cap_holds_from_the_first_attempt(backoff):
    assert backoff(Policy(backoff_base_secs=100, backoff_cap_secs=7), 1) == 7_000_000


@pytest.mark.parametrize("backoff", BACKOFFS)
def test_a_factor_of_one_never_grows_and_of_zero_never_waits_twice(backoff):
    assert backoff(Policy(backoff_factor=1), 2**32 - 1) == 10_000_000
    assert [backoff(Policy(backoff_factor=0), attempts) for attempts in (0, 1, 2, 3)] == [10_000_000, 10_000_000, 0, 0]


@pytest.mark.parametrize("backoff", BACKOFFS)
def test_it_saturates_at_the_end_of_time(backoff):
    policy = Policy(backoff_base_secs=HUGE, backoff_factor=2**32, backoff_cap_secs=HUGE)
    assert backoff(policy, 2**32 - 1) == MAX_TIME_US


def test_compiled_and_python_agree_at_the_edges():
    attempts = [0, 1, 2, 3, 63, 64, 65, 66, 1024, 2**32 - 1]
    bases = [0, 1, 10, 2**32, HUGE // 1_000_000, HUGE // 1_000_000 + 1, HUGE, 2**64 - 1]
    factors = [0, 1, 2, 4, 2**32, HUGE, 2**64 - 1]
    for count, base, factor, cap in product(attempts, bases, factors, bases):
        policy = Policy(backoff_base_secs=base, backoff_factor=factor, backoff_cap_secs=cap)
        assert backoff_us(policy, count) == backoff.backoff_us(policy, count), (policy, count)


def test_compiled_and_python_agree_anywhere():
    rng = random.Random(7)
    for _ in range(5_000):
        base, factor, cap = (rng.getrandbits(rng.randrange(65)) for _ in range(3))
        policy = Policy(backoff_base_secs=base, backoff_factor=factor, backoff_cap_secs=cap)
        attempts = rng.getrandbits(rng.randrange(33))
        assert backoff_us(policy, attempts) == backoff.backoff_us(policy, attempts), (policy, attempts)


@pytest.mark.parametrize("attempts", [-1, 2**32])
def test_attempts_outside_their_range_are_refused(attempts):
    with pytest.raises(InvalidArgument):
        backoff_us(Policy(), attempts)


@pytest.mark.parametrize("bad", [True, 1.0, "1", None])
def test_only_an_int_is_an_int(bad):
    with pytest.raises(InvalidType):
        backoff_us(Policy(), bad)
    with pytest.raises(InvalidType):
        backoff_us(Policy(backoff_factor=bad), 1)
