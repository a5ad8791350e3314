"""Shares of a worker's capacity: who may start how many jobs. Pure counting; knows no queue and no threads.

A worker has `concurrency` permits. A lane reserves some for its kinds; what nobody reserved is general, and goes to all
kinds in the order of the queue. A permit that a job ends goes back to where it came from, so that no lane with work
ever has less than its reservation. A lane with `borrow` lends what it does not use; what it lent comes back to it
before anybody else gets a permit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from telha_queue.errors import ConfigError
from telha_queue.job import Exact


@dataclass(frozen=True, slots=True)
class Lane:
    """A reserved share of a worker: at least `reserved` permits for jobs of `kinds`.

    `kinds` are filters as in `Queue.lease_next`. With `borrow`, others may use what the lane does not need now; it
    then waits, when it needs it, for the first of them that ends.
    """

    name: str
    kinds: Sequence[str]
    reserved: int
    borrow: bool = False

    def covers(self, kind: str) -> bool:
        """Whether jobs of this kind are the lane's."""
        return any(kind == text if isinstance(text, Exact) else kind.startswith(text) for text in self.kinds)


@dataclass(slots=True)
class Share:
    """One lane's permits, or the general ones."""

    name: str
    kinds: tuple[Exact, ...]
    """Of the worker's tasks, those that it takes."""
    total: int
    lends: bool = False
    free: int = field(init=False)
    lent: int = 0

    def __post_init__(self) -> None:
        self.free = self.total


class Permits:
    """All shares of one worker. Not safe for threads: its owner has a lock."""

    def __init__(self, concurrency: int, lanes: Iterable[Lane], kinds: Sequence[str]) -> None:
        listed = list(lanes)
        _check(concurrency, listed, kinds)
        self.lanes = [
            Share(lane.name, tuple(Exact(kind) for kind in kinds if lane.covers(kind)), lane.reserved, lane.borrow)
            for lane in listed
        ]
        reserved = sum(lane.reserved for lane in listed)
        self.general = Share("general", tuple(map(Exact, kinds)), concurrency - reserved)
        self.shares = [*self.lanes, self.general]
        """In the order in which they are filled."""

    def room(self, share: Share) -> int:
        """How many jobs the share may start now."""
        return share.free + (sum(lane.free for lane in self.lanes if lane.lends) if share is self.general else 0)

    def take(self, share: Share) -> None:
        """Spend a permit of the share. There must be room."""
        if share.free:
            share.free -= 1
            return
        lender = next(lane for lane in self.lanes if lane.lends and lane.free)
        lender.free -= 1
        lender.lent += 1

    def give(self, share: Share) -> Share:
        """Take back a permit that a job of this share has ended; returns the share that has it now."""
        if share is self.general:
            for lane in self.lanes:
                if lane.lent:  # what was borrowed goes back first
                    lane.lent -= 1
                    lane.free += 1
                    return lane
        share.free += 1
        return share


def _check(concurrency: int, lanes: Sequence[Lane], kinds: Sequence[str]) -> None:
    if type(concurrency) is not int or not 1 <= concurrency <= 10_000:
        raise ConfigError(f"concurrency is from 1 to 10,000, not {concurrency!r}")
    names = [lane.name for lane in lanes]
    if len(set(names)) != len(names) or "general" in names:
        raise ConfigError("lanes have names of their own, and none is called general")
    for lane in lanes:
        if isinstance(lane.kinds, str):
            raise ConfigError(f"lane {lane.name}: kinds is a list of kinds, not one of them")
        if type(lane.reserved) is not int or lane.reserved < 1:
            raise ConfigError(f"lane {lane.name}: it reserves at least one permit, not {lane.reserved!r}")
        if not any(lane.covers(kind) for kind in kinds):
            raise ConfigError(f"lane {lane.name}: no task is of its kinds")
    if (reserved := sum(lane.reserved for lane in lanes)) > concurrency:
        raise ConfigError(f"lanes reserve {reserved} permits together, and there are {concurrency}")
