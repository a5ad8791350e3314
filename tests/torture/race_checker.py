"""T11: whether a job's history has an explanation: an order of its calls that the state machine allows.

The search of Wing and Gong: of the calls that may have come next (none that is left ended before they began), try each
that fits the state, and come back when it leads nowhere. What was tried is remembered. A pass of the reaper tells no
caller which jobs it took, so between any two calls it may have come, if one ran then and the deadline had passed.
"""

from __future__ import annotations

from bisect import bisect_right

from tests.torture.race_history import Entry, Pass
from tests.torture.race_rules import LEASED, Job, Rules, after, reaped

MOST_TRIED = 200_000
SHOWN = 40


class Checker:
    """Checks histories of one run, whose reaper passes came one after the other."""

    def __init__(self, rules: Rules, passes: list[Pass]) -> None:
        self.rules = rules
        self.passes = sorted(passes)
        self._ends = [each.end for each in self.passes]
        assert self._ends == sorted(self._ends), "one thread makes all passes of a history"

    def fault(self, history: list[Entry]) -> str | None:
        """What is wrong with a history, sorted by start; None if it can be explained."""
        best = self._explain(history)
        if best is None:
            return None
        told = "\n        ".join(entry.shown() for entry in history[:SHOWN])
        return f"no order explains this history; {best} of {len(history)} calls were placed:\n        {told}"

    def _explain(self, history: list[Entry]) -> int | None:
        """None when it is explained, else how many calls could be placed at most."""
        tried: set[tuple[int, Job, int]] = set()
        stack = [(0, Job(), -1)]  # a set of calls as bits, the job after them, and the earliest moment it can be
        everything, best = (1 << len(history)) - 1, 0
        while stack:
            node = stack.pop()
            if node in tried:
                continue
            tried.add(node)
            placed, job, moment = node
            if placed == everything:
                return None
            best = max(best, placed.bit_count())
            if len(tried) > MOST_TRIED:
                raise RuntimeError(f"too many orders of {len(history)} calls to try")
            must_end = _first_end(history, placed)
            if job.state == LEASED:
                stack += self._reaped(placed, job, moment, must_end)
            for number in _unplaced(history, placed):
                entry = history[number]
                if entry.start > must_end:
                    break
                moved = after(job, entry, self.rules)
                if moved is not None:
                    stack.append((placed | 1 << number, moved, max(moment, entry.start)))
        return best

    def _reaped(self, placed: int, job: Job, moment: int, must_end: int) -> list[tuple[int, Job, int]]:
        """The job after the first pass that may have taken it before the next call; a later one explains no more."""
        for number in range(bisect_right(self._ends, moment), len(self.passes)):
            each = self.passes[number]
            if each.start > must_end:
                break
            moved = reaped(job, each.low_us, each.high_us, self.rules)
            if moved is not None:
                return [(placed, moved, max(moment, each.start))]
        return []


def _first_end(history: list[Entry], placed: int) -> int:
    return min(history[number].end for number in _unplaced(history, placed))


def _unplaced(history: list[Entry], placed: int) -> list[int]:
    return [number for number in range(len(history)) if not placed >> number & 1]
