"""Everything a process was told, with the moment of each, held against what was there after a power cut.

Moments are places in a trace. A call that returned before another began must not be missing while the other is there.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from telha_queue import JobRecord
from tests.rocks.kill_ledger import BY_THE_REAPER, trail
from tests.torture.inspector import Seen

NEVER = 2**62


class Acknowledged(NamedTuple):
    """A call that returned."""

    verb: str
    tried: int
    returned: int
    steps: tuple[tuple[bytes, int], ...]
    """What it did: job id and length of that job's trail afterwards."""


class History:
    """All calls of one process, in the order in which they returned."""

    def __init__(self) -> None:
        self.calls: list[Acknowledged] = []
        self.opened = NEVER
        """When the queue was first open."""
        self.closed: list[int] = []
        """When the queue was closed: all that was acknowledged before is then on disk, in every mode."""
        self.wrong: list[str] = []
        self._told: dict[bytes, dict[int, tuple[int, JobRecord]]] = {}
        """By job id and length of trail: when it was asked for, and what was told."""
        self._under_way: dict[str, tuple[str, int]] = {}

    def take(self, line: str, moment: int) -> None:
        """Take in one line of workload.py."""
        words = line.split()
        if words[0] == "open":
            self.opened = min(self.opened, moment)
        if words[0] == "closed":
            self.closed.append(moment)
        if words[0] in ("refused", "wrong") or words[1:2] == ["err"]:
            self.wrong.append(line.strip())
        if words[1:2] == ["try"]:
            self._under_way[words[0]] = (words[2], moment)
        if words[1:2] == ["ok"]:
            self._returned(words, moment)

    def acknowledged_before(self, moment: int) -> int:
        return sum(call.returned < moment for call in self.calls)

    def judge(self, seen: Seen, cut: int, kept_until: int) -> list[str]:
        """What is wrong with what was seen after a cut at that moment.

        What returned before `kept_until` must be there; of the rest, nothing may be missing before what is there.
        """
        lengths = {job_id: len(trail(job)) for job_id, job in seen.jobs.items()}
        wrong = []
        first_missing, newest_there = NEVER, -1
        for call in self.calls:
            if not call.steps or call.tried > cut:
                continue
            there = {lengths.get(job_id, 0) >= length for job_id, length in call.steps}
            if there == {True, False}:
                wrong.append(f"half of {call.verb} is there")
            elif there == {True}:
                newest_there = max(newest_there, call.tried)
            elif call.returned < kept_until:
                wrong.append(f"lost: {call.verb} returned at {call.returned}, and must be kept")
            elif call.returned < cut:
                first_missing = min(first_missing, call.returned)
        if newest_there > first_missing:
            wrong.append(f"a hole: a call that returned at {first_missing} is lost, one of {newest_there} is there")
        return wrong + self._invented(seen, cut)

    def _returned(self, words: list[str], moment: int) -> None:
        verb, tried = self._under_way.pop(words[0])
        steps = []
        for key, value in zip(words[3::2], words[4::2], strict=True):
            job = JobRecord(bytes.fromhex(key), bytes.fromhex(value))
            length = len(trail(job))
            steps.append((job.job_id.bytes, length))
            self._told.setdefault(job.job_id.bytes, {})[length] = (tried, job)
        self.calls.append(Acknowledged(verb, tried, moment, tuple(steps)))

    def _invented(self, seen: Seen, cut: int) -> list[str]:
        wrong = []
        for job_id, job in seen.jobs.items():
            steps = trail(job)
            told = self._told.get(job_id, {})
            if len(steps) in told:
                tried, record = told[len(steps)]
                if record != job or tried > cut:
                    wrong.append(f"invented: {job!r} is stored, {record!r} was told")
            elif steps[-1] not in BY_THE_REAPER or len(steps) - 1 not in told:
                wrong.append(f"invented: nobody asked for {steps} of job {UUID(bytes=job_id)}")
        return wrong
