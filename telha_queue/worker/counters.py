"""What a worker counts: by kind, how jobs ended and how long they took. Knows no way of showing it.

One thread writes (the settler); readers see numbers that may be one batch old.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from telha_queue.errors import LeaseConflict
from telha_queue.job import JobRecord, JobState
from telha_queue.worker.verdict import Done, Failed

if TYPE_CHECKING:
    from telha_queue.worker.settle import Settled

BOUNDS_SECS = (0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 1800)
"""Upper ends of a histogram's buckets; what is longer has one of its own."""
ENDINGS = ("completed", "failed", "dead", "timeout", "crashed", "released", "cancelled", "lost", "unwritten")
"""Ways in which a job leaves a worker's hands. `failed` is tried again; `timeout` and `crashed` are counted besides
`failed` or `dead`; `cancelled` is one that somebody cancelled while it ran, `lost` any other outcome that was refused,
`unwritten` one that the store did not take."""


class Histogram:
    """How often a span was how long."""

    __slots__ = ("buckets", "count", "sum_secs")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS_SECS) + 1)
        self.count = 0
        self.sum_secs = 0.0

    def add(self, secs: float) -> None:
        self.buckets[bisect_left(BOUNDS_SECS, secs)] += 1
        self.count += 1
        self.sum_secs += secs


class Kind:
    """The figures of one kind."""

    __slots__ = ("endings", "run", "wait")

    def __init__(self) -> None:
        self.endings = dict.fromkeys(ENDINGS, 0)
        self.run = Histogram()
        """From the start of the handler to its end."""
        self.wait = Histogram()
        """From enqueue to lease, of first attempts."""


class Counters:
    """The figures of one worker."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self.kinds: Mapping[str, Kind] = {kind: Kind() for kind in kinds}

    def add(self, batch: Sequence[Settled]) -> None:
        """Count outcomes that were settled."""
        for one in batch:
            figures = self.kinds[one.claim.task.kind]
            endings, result = figures.endings, one.result
            if isinstance(result, JobRecord):
                endings[_ending(one.outcome, result)] += 1
                if isinstance(one.outcome, Failed) and one.outcome.cause != "error":
                    endings["timeout" if one.outcome.cause == "timeout" else "crashed"] += 1
            else:
                endings[_loss(one) if isinstance(result, LeaseConflict) else "unwritten"] += 1
            if one.claim.started_ns:
                figures.run.add(one.run_ns / 1e9)
            if one.claim.wait_us >= 0:
                figures.wait.add(one.claim.wait_us / 1e6)

    def total(self, ending: str) -> int:
        """Over all kinds."""
        return sum(kind.endings[ending] for kind in self.kinds.values())


def _loss(one: Settled) -> str:
    return "cancelled" if one.claim.job.lost.reason == "cancelled" else "lost"


def _ending(outcome: object, result: JobRecord) -> str:
    if isinstance(outcome, Done):
        return "completed"
    if isinstance(outcome, Failed):
        return "dead" if result.state is JobState.DEAD else "failed"
    return "released"
