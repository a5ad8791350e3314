"""T18: calls with spoilt arguments: each is done or refused with a documented error, and a refusal changes no job.

In a process of its own, for what could crash it. Rows are compared after every few calls: those that have changed must
be rows that a call returned.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from telha_queue import JobRecord, Queue, QueueConfig
from telha_queue.errors import ConfigError, InvalidArgument, InvalidTransition, JobNotFound, LeaseConflict, NotEnded
from telha_queue.testing import ManualClock
from tests.torture import api_child
from tests.torture.api_calls import BUILDERS, VERBS, Known, draw, touched
from tests.torture.api_values import Mine, Restless, hostile
from tests.torture.protocol import Harness, Request, Result

LIMIT_SECS = 3000
STRETCH = 40
"""Calls between two looks at the rows."""
MOST_JOBS = 150
CONFIG = QueueConfig(durability="os", memtable_bytes=1024 * 1024, max_attempts=3, window_jobs=16)
REFUSALS = (InvalidArgument, JobNotFound, LeaseConflict, InvalidTransition, NotEnded)
EXACT = {"kind": str, "payload": bytes, "priority": int, "created_at": int, "attempts": int, "lease_generation": int}


class Attack:
    """One queue after the other, and calls on it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.seed = seed
        self.done = 0
        self.counted = Counter[str]()
        self.refused_by_verb = Counter[str]()
        self.faults: list[str] = []
        self.restless = Restless()

    def run(self, wanted: int) -> Result:
        """Calls until there were so many."""
        number = 0
        while self.done < wanted and not self.faults:
            with TemporaryDirectory(dir=self.folder) as own, Queue.open(f"{own}/queue", CONFIG, ManualClock()) as queue:
                self._on_one(queue, Random(f"{self.seed} {number}"), wanted)
            number += 1
        self.restless.stop()
        if wanted >= 10_000 and not self.faults and (idle := set(VERBS) - self.refused_by_verb.keys()):
            self.faults.append(f"never refused: {sorted(idle)}")
        faults = tuple(f"seed {self.seed}, queue {number - 1}: {fault}" for fault in self.faults)
        return Result(self.done, self.counted["done"], counted=dict(self.counted), faults=faults)

    def _on_one(self, queue: Queue, chance: Random, wanted: int) -> None:
        known, before = Known(), rows(queue)
        while self.done < wanted and len(before) < MOST_JOBS and not self.faults:
            may, told = set[bytes](), []
            for _ in range(STRETCH):
                changed, text = self._call(queue, chance, known)
                may |= changed
                told.append(text)
            self._build(chance)
            self.done += STRETCH
            after = rows(queue)
            strange = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)} - may
            if strange:
                self.faults.append(f"{len(strange)} jobs changed that no call returned, among {told}")
            before = after

    def _call(self, queue: Queue, chance: Random, known: Known) -> tuple[set[bytes], str]:
        verb, words, more, spoilt = draw(chance, known, lambda: hostile(chance, self.restless))
        try:
            outcome = getattr(queue, verb)(*words, **more)
        except REFUSALS as error:
            self.counted["refused"] += 1
            self.refused_by_verb[verb] += 1
            str(error)
            return set(), f"{verb} refused"
        except Mine:
            self.counted["raised by the value"] += 1
            return set(), f"{verb} raised by the value"
        except (TypeError, ValueError):  # Python's own, where a value lies about its class
            self.counted["refused by Python itself"] += 1
            self.refused_by_verb[verb] += 1
            return set(), f"{verb} refused by Python"
        except Exception as error:  # noqa: BLE001  # exactly what must not come out
            self.faults.append(f"{verb} with {shown([*words, *more.items()])} raised {type(error).__name__}: {error}")
            return set(), verb
        self.counted["done"] += 1
        self.counted["done though spoilt"] += spoilt
        for item in outcome if isinstance(outcome, list) else [outcome]:
            if isinstance(item, JobRecord):
                known.see(item)
                self._check(item, verb)
        return touched(queue, outcome), f"{verb} done"

    def _build(self, chance: Random) -> None:
        name = chance.choice(tuple(BUILDERS))
        value = hostile(chance, self.restless)
        try:
            BUILDERS[name](value)
        except (InvalidArgument, ConfigError, Mine):
            self.counted["not built"] += 1
        except Exception as error:  # noqa: BLE001  # as above
            self.faults.append(f"{name} with {shown([value])} raised {type(error).__name__}: {error}")

    def _check(self, job: JobRecord, verb: str) -> None:
        """What was stored is of the very type that it should be, and within its limits."""
        wrong = [name for name, kind in EXACT.items() if type(getattr(job, name)) is not kind]
        if wrong or not job.kind.isprintable() or len(job.kind.encode()) > 128 or len(job.payload) != job.payload_bytes:
            self.faults.append(f"{verb} stored {wrong} {job!r}")


def rows(queue: Queue) -> dict[bytes, tuple[bytes, bytes]]:
    """Every job, by id."""
    return {job.key[42:]: (job.key, job.value) for job in queue.list(limit=1000)}


def shown(values: list[Any]) -> str:
    """Arguments for a message, whatever they do when they are asked."""
    texts = []
    for value in values:
        try:
            text = repr(value)[:120]
        except Exception:  # noqa: BLE001  # they are made to raise
            text = f"a {type(value).__name__}"
        texts.append(text)
    return f"({', '.join(texts)})"


def run(request: Request) -> Result:
    """Have a child do it."""
    words: list[object] = [request.folder, request.wanted, request.seed]
    return api_child.result_of("tests.torture.api_mutation", words, LIMIT_SECS)


HARNESS = Harness(
    name="arguments",
    tests="T18",
    about="verbs with spoilt arguments, of wrong types, sizes and text, lying, endless, and changed by another thread; "
    "only documented errors come out, and a refused call changes no job",
    unit="calls",
    ci=50_000,
    nightly=5_000_000,
    run=run,
)

if __name__ == "__main__":
    api_child.answer(Attack(Path(sys.argv[1]), int(sys.argv[3])).run(int(sys.argv[2])))
