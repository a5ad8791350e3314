"""T15: every verb as the first after every jump of the clock, while the queue is open, closed or crashed."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from telha_queue.testing import START_US
from tests.torture.clock_line import Line
from tests.torture.protocol import Harness, Request, Result
from tests.torture.race_rules import LAST_US

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
JUMPS: dict[str, tuple[int, int | None]] = {
    "stuck": (0, None),
    "-1 us": (-1, None),
    "-1 h": (-HOUR_US, None),
    "-1 day": (-DAY_US, None),
    "+61 s": (61_000_000, None),
    "+1 day": (DAY_US, None),
    "+10 y": (3650 * DAY_US, None),
    "to 0": (0, 0),
    "to the end": (0, LAST_US),
    "to just before the end": (0, LAST_US - 5),
}
"""By how much, or to what time."""
VERBS = (
    "enqueue", "lease", "reap", "retry", "extend", "checkpoint", "stats", "complete", "complete_late", "fail", "bury",
    "release",
)  # fmt: skip
USUAL = (6, 6, 2, 2, 1, 1, 1, 3, 1, 3, 1, 1)
RESTARTS = ("open", "close", "crash")
ALL = tuple(product(JUMPS, RESTARTS, VERBS))


def run(request: Request) -> Result:
    """One short life for each jump, restart and verb, all over again with other chances until there are so many."""
    faults: list[str] = []
    counted = Counter[str]()
    order = list(range(len(ALL)))
    request.chance("order").shuffle(order)
    for number in range(request.wanted):
        jump, restart, verb = ALL[order[number % len(ALL)]]
        found, acknowledged = live(request, number, jump, restart, verb)
        counted["acknowledged"] += acknowledged
        faults += [f"life {number}, {jump} while {restart}, then {verb}: {fault}" for fault in found]
        if faults:
            break
    return Result(request.wanted, counted["acknowledged"], counted={"combinations": len(ALL)}, faults=tuple(faults))


def live(request: Request, number: int, jump: str, restart: str, verb: str) -> tuple[list[str], int]:
    """Some usual steps, the jump, the verb, and a life after it with smaller jumps."""
    chance = request.chance("life", number)
    with TemporaryDirectory(dir=request.folder) as folder:
        line = Line(Path(folder), chance.choice((START_US, START_US, 0, LAST_US - 10 * DAY_US)))
        try:
            _live(line, chance, jump, restart, verb)
        except Exception as error:  # noqa: BLE001  # no jump may make a verb raise
            line.faults.append(f"{type(error).__name__}: {error}")
        return line.end(), line.recorder.acknowledged


def _live(line: Line, chance: Random, jump: str, restart: str, verb: str) -> None:
    _steps(line, chance, 25)
    by_us, to_us = JUMPS[jump]
    line.jump(line.clock() + by_us if to_us is None else to_us)
    if restart != "open":
        line.restart(restart)
    line.verb(verb, chance)
    _steps(line, chance, 15)
    line.jump(line.clock() + chance.choice((-HOUR_US, 0, 61_000_000, HOUR_US)))
    _steps(line, chance, 15)


def _steps(line: Line, chance: Random, steps: int) -> None:
    for _ in range(steps):
        line.verb(chance.choices(VERBS, USUAL)[0], chance)
        if chance.random() < 0.2:
            line.jump(line.clock() + chance.choice((1, 1_000_000, 11_000_000, 61_000_000)))


HARNESS = Harness(
    name="clock",
    tests="T15",
    about="every verb after every jump of the clock, from 0 to the end of time, over restarts and crashes too; time "
    "does not go back, order and deadlines hold, and nothing overflows",
    unit="lives",
    ci=120,
    nightly=3_600,
    run=run,
)
