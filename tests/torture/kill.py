"""T1: kill -9 at random times, while threads do every verb; then the queue is held to all that was acknowledged.

A queue lives through a few kills, so that what one kill left behind meets the next; some kills come while the queue
recovers from the one before.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.torture import children
from tests.torture.ledger import FaultyLedger, sort_out
from tests.torture.protocol import Harness, Request, Result, total

KILLS_OF_ONE_QUEUE = 8
MODES = ("sync", "group", "os")
MEMTABLES = (64 * 1024, 64 * 1024 * 1024)
THREADS = (1, 4, 6)
MAX_LINES = 1500
ENDLESS = 10**9


def run(request: Request) -> Result:
    """Kill `request.wanted` processes."""
    results = []
    for number, first in enumerate(range(0, request.wanted, KILLS_OF_ONE_QUEUE)):
        kills = min(KILLS_OF_ONE_QUEUE, request.wanted - first)
        folder = request.folder / f"queue{number}"
        results.append(_one_queue(request.chance("queue", number), kills, folder, number))
        children.remove(folder)
    return total(results)


def _one_queue(chance: Random, kills: int, folder: Path, number: int) -> Result:
    folder.mkdir()
    mode, memtable, threads = MODES[number % 3], chance.choice(MEMTABLES), chance.choice(THREADS)
    ledger = FaultyLedger()
    aborts = hangs = done = 0
    for kill in range(kills):
        words = [folder / "queue", mode, memtable, f"{number}.{kill}", threads, ENDLESS, 1]
        lines = 1 if kill and chance.random() < 0.2 else chance.randrange(2, MAX_LINES)  # 1: while it opens the queue
        child = children.killed("workload", words, folder / "errors", lines)
        done += 1
        aborts += child.aborted
        hangs += child.hung
        if child.code != -9 or child.hung:
            ledger.wrong.append(f"it ended by itself with {child.code}: {child.errors[-500:]}")
        ledger.take(child.lines)
        if lines > 1 and not ledger.wrong:
            ledger.hold(folder / "queue")
        if ledger.wrong:
            break
    where = f"queue {number} ({mode}, memtable {memtable}, {threads} threads), kill {done}"
    faults = tuple(f"{where}: {text}" for text in ledger.wrong)
    return Result(done, ledger.calls, *sort_out(ledger.wrong), aborts=aborts, hangs=hangs, faults=faults)


HARNESS = Harness(
    name="kill",
    tests="T1",
    about="kill -9 at random times while threads do every verb, in each durability mode; nothing acknowledged is "
    "missing, nothing is invented, counts equal a full list, generations never fall, order is kept.",
    unit="kills",
    ci=60,
    nightly=2000,
    run=run,
)
