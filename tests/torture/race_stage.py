"""Stops threads inside verbs at will, from outside: a verb asks the clock once, and the clock is ours.

Each actor is a thread with one verb. It has two steps: it goes as far as the clock, arguments checked and nothing done,
and then it does the rest. The stage makes actors take their steps one at a time in a given order, so that every order
of the steps of two or three actors can be played.
"""

from __future__ import annotations

import queue as queues
import threading
from collections.abc import Callable, Iterator
from itertools import permutations
from random import Random

from telha_queue.testing import ManualClock

PATIENCE_SECS = 60


class Stage:
    """A clock that holds actors up, and the actors. Threads that are no actors pass."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self._actors = threading.local()

    def __call__(self) -> int:
        """The time; for an actor in its first step, once the second has begun."""
        actor = getattr(self._actors, "me", None)
        if actor is not None:
            actor.at_clock()
        return self.clock()

    def subscribe(self, callback: Callable[[], object]) -> None:
        """The queue's way to hear of a moved clock."""
        self.clock.subscribe(callback)

    def play(self, groups: list[tuple[int, ...]], actors: list[Actor]) -> list[str]:
        """Have actors take their steps: those of a group at once, one group after the other. Returns what hangs."""
        for actor in actors:
            actor.begin(self._actors)
        for group in groups:
            for number in group:
                actors[number].go()
            hanging = [number for number in group if not actors[number].has_stopped()]
            if hanging:
                return [f"in the order {groups} actors {hanging} hang"]
        return []


class Actor:
    """One verb on a thread that is lent by a `Troupe`."""

    def __init__(self, call: Callable[[], object], thread: Lent) -> None:
        self._call = call
        self._thread = thread
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._entered = False

    def begin(self, actors: threading.local) -> None:
        """Take the thread; it waits for the first step."""
        self._thread.lend(lambda: self._run(actors))

    def go(self) -> None:
        """Take the next step."""
        self._go.release()

    def has_stopped(self) -> bool:
        """Wait for the end of the step; False when it does not come."""
        return self._stopped.acquire(timeout=PATIENCE_SECS)

    def at_clock(self) -> None:
        """Called by the actor's thread inside its verb: the first step is over."""
        if not self._entered:
            self._entered = True
            self._stopped.release()
            self._go.acquire()

    def _run(self, actors: threading.local) -> None:
        self._go.acquire()
        actors.me = self
        try:
            self._call()
        finally:
            actors.me = None
            if not self._entered:  # a verb that asks no clock has all done in its first step
                self._entered = True
                self._stopped.release()
                self._go.acquire()
            self._stopped.release()


class Lent:
    """A thread that runs what it is lent for, time and again."""

    def __init__(self) -> None:
        self._work: queues.SimpleQueue[Callable[[], object] | None] = queues.SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def lend(self, work: Callable[[], object] | None) -> None:
        """Run it when what came before is done; None ends the thread."""
        self._work.put(work)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()


def orders(actors: int) -> Iterator[list[tuple[int, ...]]]:
    """All orders in which so many actors can take two steps each, one step at a time."""
    for order in sorted(set(permutations([number for number in range(actors) for _ in range(2)]))):
        yield [(number,) for number in order]


def groups(actors: int, chance: Random) -> list[tuple[int, ...]]:
    """A random order in which some steps are taken at once."""
    steps = [number for number in range(actors) for _ in range(2)]
    chance.shuffle(steps)
    found: list[tuple[int, ...]] = [()]
    for number in steps:
        if number in found[-1] or chance.random() < 0.3:
            found.append(())
        found[-1] = (*found[-1], number)
    return [group for group in found if group]
