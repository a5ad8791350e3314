"""What the configuration says for a job: its budget, and how long it waits after an attempt was lost."""

from __future__ import annotations

from typing import NamedTuple

from telha_queue.clock import MAX_TIME_US
from telha_queue.config import QueueConfig


class Policy(NamedTuple):
    """What the configuration says for a job of this kind, and the store for all. Times in microseconds."""

    max_attempts: int = 5
    lease_grace_us: int = 0
    backoff_base_secs: int = 10
    backoff_factor: int = 4
    backoff_cap_secs: int = 3600
    max_crashes: int = 0
    """Crashes after which a job is given up though it has attempts left; 0 is no such number."""
    generation_floor: int = 0
    """The least generation that a lease gets: above all that were given out before the store was restored."""


def policy_for(config: QueueConfig, kind: str) -> Policy:
    """What the configuration says for a kind; one with a base of its own has the cap max(base, cap)."""
    own_base = config.backoff_base_secs_by_kind.get(kind)
    base, cap = config.backoff_base_secs, config.backoff_cap_secs
    if own_base is not None:
        base, cap = own_base, max(own_base, cap)
    grace_us = round(config.lease_grace_secs * 1_000_000)
    return Policy(config.max_attempts, grace_us, base, config.backoff_factor, cap, config.max_crashes)


def backoff_us(policy: Policy, attempts: int) -> int:
    """Delay before attempt number `attempts` + 1: base * factor^(attempts - 1), at most the cap; never overflows.

    The cap given in the policy is already max(base, cap) for kinds with a base of their own.
    """
    secs: int = policy.backoff_base_secs * policy.backoff_factor ** min(max(attempts, 1) - 1, 64)
    return min(min(secs, policy.backoff_cap_secs) * 1_000_000, MAX_TIME_US)
