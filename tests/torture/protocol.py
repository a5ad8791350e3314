"""What a harness is, what it is asked for, and what it answers. Knows no harness and no queue."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

SCALES = ("ci", "nightly")


class Request(NamedTuple):
    """One run of one harness."""

    scale: str
    """One of SCALES; for what a harness does otherwise than by number."""
    wanted: int
    """How many cycles, in the unit of the harness."""
    seed: int
    folder: Path
    """Empty, its own, and removed by whoever asks."""
    keep: Path | None = None
    """Where to put a copy of what shows a fault, if anywhere."""

    def chance(self, *words: object) -> random.Random:
        """Randomness decided by the seed and the words alone: cycle 7 is the same without cycles 1 to 6."""
        return random.Random(" ".join(map(str, (self.seed, *words))))


class Result(NamedTuple):
    """What one run did and found. A field that a harness does not look at stays 0."""

    cycles: int
    """In the unit of the harness; may be more than was asked for."""
    acknowledged: int = 0
    """Calls that returned without raising, over all cycles."""
    lost: int = 0
    """Acknowledged operations that are gone although the promise holds them."""
    invented: int = 0
    """Jobs or transitions that nobody asked for."""
    double_leases: int = 0
    aborts: int = 0
    """Processes that ended by a signal that nobody sent them."""
    hangs: int = 0
    """Processes that had to be killed when their time was over."""
    seconds: float = 0
    counted: Mapping[str, int] = MappingProxyType({})
    """What else was counted, by name: known gaps, and figures that say how far the harness reached."""
    faults: tuple[str, ...] = ()
    """What was wrong, one text for each case, with what is needed to see it again. None means that it passed."""

    skipped: str = ""
    """Why nothing was done, if nothing was: neither passed nor failed."""

    @property
    def passed(self) -> bool:
        return not self.faults and not self.skipped

    @property
    def verdict(self) -> str:
        if self.faults:
            return f"FAILED with {len(self.faults)} faults"
        return f"skipped: {self.skipped}" if self.skipped else "passed"


def total(results: Iterable[Result]) -> Result:
    """One result for many: figures are added up, faults follow one another."""
    kept = list(results)
    counted: Counter[str] = Counter()
    for result in kept:
        counted.update({what: count for what, count in result.counted.items() if count})
    figures = {
        field: sum(getattr(result, field) for result in kept)
        for field in ("cycles", "acknowledged", "lost", "invented", "double_leases", "aborts", "hangs", "seconds")
    }
    return Result(**figures, counted=dict(counted), faults=tuple(fault for result in kept for fault in result.faults))


class Harness(NamedTuple):
    """One way to torture the queue. The list of all is in harnesses.py."""

    name: str
    tests: str
    """Numbers in the test plan: "T1, T2"."""
    about: str
    """One line: what is done, and what must hold."""
    unit: str
    """What one cycle is: "kills"."""
    ci: int
    nightly: int
    """Cycles wanted at each scale. CI takes seconds, nightly minutes."""
    run: Callable[[Request], Result]
    """Does not raise for a fault that it finds: it goes on, and tells it in the result."""
    planned: int = 0
    """What the test plan wants of a night, where that is more than `nightly`."""
    lowered: str = ""
    """Why it is more."""

    def wanted(self, scale: str) -> int:
        return {"ci": self.ci, "nightly": self.nightly}[scale]
