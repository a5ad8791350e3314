"""T3: the power goes at any call that reaches the file system, above all around every sync.

A process works behind the shim, which writes down every call with its bytes, and what was acknowledged, in one order.
From that record the disk is made again as it may look after a cut at a chosen place: many disks from one run, each
opened by a queue and held to the promise of the durability mode. That is sounder than cutting a live process: the
record is proved complete, by comparing what it makes with the files that are there, and every cut can be made again.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tests.torture import children, trace
from tests.torture.disk import ENTRIES, TAILS, Disk, lay_out
from tests.torture.history import History
from tests.torture.inspector import Inspector
from tests.torture.protocol import Harness, Request, Result, total
from tests.torture.shim import Shim

CUTS_OF_ONE_RUN = 50
SHARE_AT_SYNCS = 0.7
MODES = ("sync", "group", "os")
THREADS = (1, 4)
MEMTABLES = (64 * 1024, 1024 * 1024)
STEPS, SESSIONS = 60, 2


class Promise(NamedTuple):
    """Until when a call must have returned to be kept whatever happens."""

    mode: str
    barrier: int
    """When all that had been written to the log was last known to be synced."""
    closed: int
    """When the queue was last closed."""

    def kept_until(self, cut: int) -> int:
        if self.mode == "sync":
            return cut
        return max(self.closed, self.barrier if self.mode == "group" else 0)


def run(request: Request) -> Result:
    """Make and look at `request.wanted` disks."""
    results = []
    with Inspector(request.folder) as inspector:
        for number, first in enumerate(range(0, request.wanted, CUTS_OF_ONE_RUN)):
            folder = request.folder / f"run{number}"
            recording = _Recording(request, number, folder, inspector)
            results.append(recording.run(min(CUTS_OF_ONE_RUN, request.wanted - first)))
            children.remove(folder)
    return total(results)


class _Recording:
    """One run of the workload, and the disks that are made from it."""

    def __init__(self, request: Request, number: int, folder: Path, inspector: Inspector) -> None:
        self._request = request
        self._chance = request.chance("run", number)
        self._mode = MODES[number % 3]
        self._threads = THREADS[number // 3 % 2]
        self._memtable = self._chance.choice(MEMTABLES)
        self._name = f"run {number} ({self._mode}, {self._threads} threads, memtable {self._memtable})"
        self._seed = f"{request.seed}.{number}"
        self._folder = folder
        self._queue = folder / "root" / "queue"
        self._inspector = inspector

    def run(self, cuts: int) -> Result:
        calls = self._record()
        history = History()
        for moment, call in enumerate(calls):
            if call.kind == b"A":
                history.take(call.data.decode(), moment)
        faults = [f"{self._name}: {text}" for text in history.wrong]
        chosen = self._chosen(calls, cuts)
        disk, found, newest_log, barrier = Disk(), Counter[str](), "", 0
        acknowledged = 0
        for moment, call in enumerate(calls):
            disk.carry_out(call)
            if call.kind == b"O" and call.path.endswith(".log") and call.a & 3:
                newest_log = call.path
            if call.kind == b"S" and disk.is_certain(newest_log):
                barrier = moment
            for _ in range(chosen[moment]):
                closed = max((at for at in history.closed if at < moment), default=0)
                wrong = self._cut(disk, history, moment, Promise(self._mode, barrier, closed), found)
                acknowledged += history.acknowledged_before(moment)
                faults += [f"{self._name}, cut at {moment}, {text}" for text in wrong]
        faults += [f"{self._name}: {text}" for text in self._incomplete(disk)]
        return Result(
            sum(chosen.values()),
            acknowledged,
            lost=sum("lost:" in fault or "a hole:" in fault for fault in faults),
            invented=sum("invented:" in fault for fault in faults),
            aborts=found.pop("died", 0),
            hangs=found.pop("hung", 0),
            counted=dict(found),
            faults=tuple(faults),
        )

    def _record(self) -> list[trace.Call]:
        root, file = self._queue.parent, self._folder / "trace"
        root.mkdir(parents=True)
        words = [self._queue, self._mode, self._memtable, self._seed, self._threads, STEPS, SESSIONS]
        environment = Shim(self._folder, root).environment(trace=file)
        child = children.ended("workload", words, self._folder / "errors", environment)
        assert child.code == 0, f"the run that is recorded failed: {child.errors}"
        return list(trace.read(file))

    def _chosen(self, calls: list[trace.Call], cuts: int) -> Counter[int]:
        """Where the power goes: just before and after syncs, and anywhere."""
        syncs = [moment for moment, call in enumerate(calls) if call.kind == b"S"]
        around = [moment - before for moment in syncs for before in (0, 1)]
        at_syncs = round(cuts * SHARE_AT_SYNCS)
        chosen = self._chance.choices(around, k=at_syncs) + self._chance.choices(range(len(calls)), k=cuts - at_syncs)
        return Counter(chosen)

    def _cut(self, disk: Disk, history: History, moment: int, promise: Promise, found: Counter[str]) -> list[str]:
        tail, entries = self._chance.choice(TAILS), self._chance.choice(ENTRIES)
        image, files = self._folder / "image", disk.after_cut(tail, entries, self._chance)
        lay_out(files, self._queue, image)
        seen = self._inspector.look(image)
        children.remove(image)
        found[f"cuts in mode {self._mode}"] += 1
        if seen.error in ("died", "hung"):
            found[seen.error] += 1
        if seen.error:
            wrong = [f"{seen.error}: {seen.text}"]
        else:
            wrong = [*seen.complaints, *history.judge(seen, moment, promise.kept_until(moment))]
        if moment >= history.opened and str(self._queue) not in disk.synced_folders:
            wrong.append("lost: the folder's own entry was not synced")
        if wrong and self._request.keep is not None:
            lay_out(files, self._queue, self._request.keep / f"{self._folder.name}-{moment}")
            shutil.copy(self._folder / "trace", self._request.keep / f"{self._folder.name}-{moment}.trace")
        return [f"tails {tail}, entries {entries}: {text}" for text in wrong[:3]]

    def _incomplete(self, disk: Disk) -> list[str]:
        """Files that are not as the record makes them: then the record is not to be trusted."""
        there = {str(path): path.read_bytes() for path in self._queue.iterdir()}
        made = {path: bytes(file.bytes) for path, file in disk.names.items()}
        return [
            f"the record is incomplete: {path}"
            for path in there.keys() | made.keys()
            if there.get(path) != made.get(path)
        ]


HARNESS = Harness(
    name="power",
    tests="T3",
    about="the disk as a power cut may leave it, at every kind of sync and between: tails not synced dropped, cut, "
    "zeroed by pages; entries of files made, renamed and removed lost or not. Mode `sync` loses nothing acknowledged, "
    "`group` nothing below a barrier, all lose only the newest calls, and the queue opens and works.",
    unit="cuts",
    ci=300,
    nightly=10_000,
    run=run,
)
