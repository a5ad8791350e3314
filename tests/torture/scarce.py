"""T5 and T6: the disk is full, or no descriptor is left; at opening, at work, at closing, at every level of want.

Writes are refused with a typed error, reads are whole or refused and never come back short, and once there is room the
queue opens again, works, and has all that was acknowledged.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

from tests.torture import children, mounts
from tests.torture.ledger import FaultyLedger, sort_out
from tests.torture.protocol import Harness, Request, Result, total

DISK_BYTES = 12 * 2**20
PAYLOADS = (100, 4096, 200 * 1024)
MEMTABLES = (64 * 1024, 512 * 1024, 64 * 2**20)
"""With the smallest it is a flush, a compaction or the MANIFEST that meets the full disk, with the largest the log."""
MODES = ("sync", "group", "os")


def run_disk(request: Request) -> Result:
    """Fill `request.wanted` disks."""
    if not mounts.are_permitted():
        return Result(0, counted={"not run, this process may not mount": 1})
    results = []
    for number in range(request.wanted):
        chance = request.chance("disk", number)
        when = ("work", "work", "work", "work", "open", "close")[number % 6]
        payload = chance.choice(PAYLOADS)
        left = _level(chance, when, payload)
        words = [when, left, payload, chance.choice(MEMTABLES), chance.choice(MODES)]
        with mounts.tmpfs(request.folder / f"disk{number}", DISK_BYTES) as disk:
            place = disk / "queue"
            what = f"full at {when}, {left} bytes left, payload {payload}, memtable {words[3]}, {words[4]}"
            results.append(
                _judged(["disk", place, disk / "ballast", *words], place, request.folder, what, "StorageFull")
            )
    return total(results)


def run_descriptors(request: Request) -> Result:
    """Run out of descriptors `request.wanted` times."""
    results = []
    for number in range(request.wanted):
        chance = request.chance("descriptors", number)
        when = ("work", "open")[number % 2]
        more = chance.randrange(0, 6) if when == "work" else chance.randrange(0, 40)
        words = [when, more, chance.choice((400, 4096)), chance.choice(MODES)]
        place = request.folder / f"queue{number}"
        what = f"descriptors at {when}, {more} more, payload {words[2]}, {words[3]}"
        results.append(_judged(["descriptors", place, *words], place, request.folder, what, "StorageError"))
        children.remove(place)
    return total(results)


def _level(chance: Random, when: str, payload: int) -> int:
    """How much is left: from nothing, over a page or two, to a few hundred jobs."""
    if when != "work":
        return chance.choice((0, 0, 1, 4096, 8192, chance.randrange(200_000)))
    return chance.randrange(0, min(3 * 2**20, 300 * (payload + 1500)))


def _judged(words: list[object], place: Path, folder: Path, what: str, expected: str) -> Result:
    child = children.ended("scarcity", words, folder / "errors")
    ledger = FaultyLedger()
    ledger.take(child.lines)
    if child.hung or child.code != 0 or not ledger.is_done:
        ledger.wrong.append(f"{'hangs' if child.hung else f'ended with {child.code}'}: {child.errors[-600:]}")
    ledger.wrong += [f"{verb} raised {error}" for verb, error in ledger.errors if error != expected]
    if ("rich", "StorageFull") in ledger.errors or not any(line.startswith("closed rich") for line in child.lines):
        ledger.wrong.append("with room again it does not open, work and close")
    if place.exists():
        ledger.hold(place)
    counted: Counter[str] = Counter(error for _, error in set(ledger.errors))
    counted["never refused"] += "never refused poor" in child.lines
    return Result(
        1,
        ledger.calls,
        *sort_out(ledger.wrong),
        aborts=child.aborted,
        hangs=child.hung,
        counted=counted,
        faults=tuple(f"{what}: {text}" for text in ledger.wrong),
    )


DISK = Harness(
    name="full-disk",
    tests="T5",
    about="a disk of 12 MiB fills up while the queue opens, works or closes, at random levels; StorageFull, reads go "
    "on, with space again it opens and works, nothing acknowledged is lost.",
    unit="disks",
    ci=6,
    nightly=600,
    run=run_disk,
)
DESCRIPTORS = Harness(
    name="descriptors",
    tests="T6",
    about="a process has no descriptor left when it opens a queue or works with one: StorageError, a scan is whole or "
    "refused, and with descriptors again the queue opens and has everything.",
    unit="processes",
    ci=4,
    nightly=40,
    run=run_descriptors,
)
