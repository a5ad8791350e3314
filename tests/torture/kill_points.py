"""T2: a kill at every call that reaches the file system: while a queue is made, written, flushed, closed and opened.

A trace of one undisturbed run says how many calls there are. Then the same work is killed before, in the middle of and
after each: at all of them when there is time, else at as many as asked for, spread evenly. Each queue is killed once
more at an early call, mostly while it recovers, before it is looked at.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.torture import children, trace
from tests.torture.ledger import FaultyLedger, sort_out
from tests.torture.protocol import Harness, Request, Result, total
from tests.torture.shim import Shim

ACTIONS = ("before", "torn", "after")
SCRIPTS = (("sync", 1), ("group", 1), ("os", 1), ("sync", 3))
"""Durability and threads. With one thread the calls are nearly the same each time."""
STEPS, SESSIONS = 50, 2
MEMTABLE_BYTES = 64 * 1024
RECOVERY_CALLS = 60
"""A queue makes about so many calls while it opens."""


def run(request: Request) -> Result:
    """Kill `request.wanted` processes."""
    share = max(1, request.wanted // len(SCRIPTS))
    return total(_Script(request, n, mode, threads).run(share) for n, (mode, threads) in enumerate(SCRIPTS))


class _Script:
    """One run of the workload, killed again and again at other calls."""

    def __init__(self, request: Request, number: int, mode: str, threads: int) -> None:
        self._folder = request.folder / f"script{number}"
        self._root = self._folder / "root"
        self._root.mkdir(parents=True)
        self._errors = self._folder / "errors"
        self._shim = Shim(self._folder, self._root)
        self._chance = request.chance("script", number)
        self._name = f"script {number} ({mode}, {threads} threads)"
        self._mode, self._threads = mode, threads
        self._seed = f"{request.seed}.{number}"

    def run(self, kills: int) -> Result:
        kinds = self._call_kinds()
        points = [(at, action) for at in range(1, len(kinds) + 1) for action in ACTIONS]
        step = len(points) / kills
        offset = self._chance.random() * step
        chosen = [points[int(n * step + offset) % len(points)] for n in range(kills)]
        results = [self._killed_at(n, at, action) for n, (at, action) in enumerate(chosen)]
        reached: Counter[str] = Counter(kinds[at - 1] for at, _ in chosen)
        children.remove(self._folder)
        return total(results)._replace(counted={f"at {kind}": count for kind, count in reached.items()})

    def _call_kinds(self) -> list[str]:
        """What each numbered call does, from an undisturbed run."""
        file = self._folder / "trace"
        words = self._words(self._root / "first", "")
        children.ended("workload", words, self._errors, self._shim.environment(trace=file))
        kinds = trace.kinds(file)
        assert kinds, f"the shim saw nothing: {self._errors.read_text()}"
        return kinds

    def _killed_at(self, number: int, at: int, action: str) -> Result:
        path = self._root / f"queue{number}"
        ledger = FaultyLedger()
        first = self._one_kill(self._words(path, ""), ledger, at, action)
        second = self._one_kill(self._words(path, "again"), ledger, self._chance.randrange(1, RECOVERY_CALLS), "after")
        ledger.hold(path)
        children.remove(path)
        where = f"{self._name}, call {at}, {action}"
        return Result(
            1,
            ledger.calls,
            *sort_out(ledger.wrong),
            aborts=first.aborted + second.aborted,
            hangs=first.hung + second.hung,
            faults=tuple(f"{where}: {text}" for text in ledger.wrong),
        )

    def _words(self, path: Path, more_seed: str) -> children.Words:
        """The work; with another seed in the second process, which must not ask for the same jobs once more."""
        return [path, self._mode, MEMTABLE_BYTES, f"{self._seed}{more_seed}", self._threads, STEPS, SESSIONS]

    def _one_kill(self, words: children.Words, ledger: FaultyLedger, at: int, action: str) -> children.Ended:
        environment = self._shim.environment(at=at, action=action)
        child = children.ended("workload", words, self._errors, environment)
        if child.aborted or child.hung:
            ledger.wrong.append(f"ended with {child.code}: {child.errors[-500:]}")
        ledger.take(child.lines)
        return child


HARNESS = Harness(
    name="kill-points",
    tests="T2",
    about="a kill before, within and after each call that reaches the file system, while the queue is made, written, "
    "flushed, closed, opened; and a second one while it recovers. The same must hold as for T1.",
    unit="kills",
    ci=40,
    nightly=1500,
    planned=1_068_000,
    lowered="there are 10,680 points, and each seed reaches others",
    run=run,
)
