"""What a process of workload.py had been told, held against its queue: the ledger of the kill test, with errors.

A ledger collects what is wrong instead of raising it, so that a harness can go on with the next cycle.
"""

from __future__ import annotations

from pathlib import Path

from telha_queue import Queue, QueueConfig
from telha_queue.errors import JobError
from tests.rocks.kill_ledger import Ledger

STEPS = ("try", "ok", "no", "err")


class FaultyLedger(Ledger):
    """A ledger that also knows calls that failed, whose outcome may be unknown."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.errors: list[tuple[str, str]] = []
        """What was refused, and with which error."""
        self.is_done = False
        self._unknown = 0
        self._processes = 0

    def take(self, lines: list[str]) -> None:
        """Take in all lines of one process. What an earlier one had under way when it died stays under way."""
        self._processes += 1
        self.under_way = {f"{self._processes} {thread}": call for thread, call in self.under_way.items()}
        for line in lines:
            words = line.split()
            if len(words) > 1 and words[1] in STEPS:
                self._take_call(line, words)
            elif words[0] == "refused":
                self.errors.append((words[1], words[2]))
            elif words[0] == "wrong":
                self.wrong.append(line)
            self.is_done = words[0] == "done"

    def hold(self, path: Path) -> None:
        """Open the queue in this process, without a shim, and hold it to what was told."""
        try:
            with Queue.open(path, QueueConfig(durability="os")) as queue:
                self.check(queue)
        except (AssertionError, JobError) as error:
            self.wrong.append(_one_line(error))

    @property
    def calls(self) -> int:
        """How many were acknowledged."""
        return sum(self.acknowledged.values())

    def _take_call(self, line: str, words: list[str]) -> None:
        if words[1] == "err":
            under_way = self.under_way.pop(words[0])
            self.errors.append((words[2], words[3]))
            if words[4] == "unknown":
                self._unknown += 1
                self.under_way[f"unknown {self._unknown}"] = under_way
            return
        try:
            self.read(line)
        except AssertionError as error:
            self.wrong.append(_one_line(error))


def sort_out(wrong: list[str]) -> tuple[int, int]:
    """How many of the faults are losses, and how many inventions."""
    lost = sum(any(mark in text for mark in ("are gone", "was acknowledged", "has lost")) for text in wrong)
    return lost, sum("nobody asked for" in text for text in wrong)


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0][:500]
