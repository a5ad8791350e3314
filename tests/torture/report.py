"""From results to docs/torture.md. Results of an earlier run stay until their harness runs again."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from telha_queue import __version__, build_info
from tests.torture.plan import NOT_HELD, PLAN
from tests.torture.protocol import Harness, Result

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "build" / "torture" / "results.json"
BEGIN, END = "<!-- written by python -m tests.torture: begin -->", "<!-- written by python -m tests.torture: end -->"
TITLE = "# Torture\n\n"
COLUMNS = ("acknowledged", "lost", "invented", "double_leases", "aborts", "hangs")
HEADS = ("test", "a night in the plan", "harness", "run", *(name.replace("_", " ") for name in COLUMNS), "verdict")
SUMMED = {
    "acknowledged": "calls acknowledged",
    "lost": "of these lost",
    "invented": "jobs or changes that nobody asked for",
    "double_leases": "leases that two had at once",
    "aborts": "processes that crashed",
    "hangs": "processes that hung",
}
KNOWN_GAP = "known gap"
"""What counts of a harness begin with that are no fault only because nobody has mended it yet."""
SOURCES = {".hpp", ".pxd", ".pxi", ".py", ".pyx"}
Row = dict[str, Any]


def keep(harness: Harness, result: Result, scale: str, seed: int) -> None:
    """Note a result for the page; whole or not at all."""
    kept = read()
    info = build_info()
    asserts = "with" if info["rocksdb_asserts"] else "without"
    kept[harness.name] = {
        **result._asdict(),
        "counted": dict(result.counted),
        "scale": scale,
        "seed": seed,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "run": f"telha-queue {__version__}, RocksDB {info['rocksdb']} ({info['rocksdb_mode']}, {asserts} assertions)",
        "code": code(),
    }
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    unfinished = KEPT.with_suffix(".new")
    unfinished.write_text(json.dumps(kept, indent=1))
    unfinished.replace(KEPT)


def code() -> str:
    """What was run, in 12 digits: of the SHA-256 over names and contents of the sources in ext/ and telha_queue/."""
    digest = hashlib.sha256()
    for path in sorted(path for folder in ("ext", "telha_queue") for path in (ROOT / folder).rglob("*")):
        if path.suffix in SOURCES:
            digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def write(page: Path, harnesses: Iterable[Harness]) -> None:
    """Write what is kept; text outside the marks stays."""
    text = page.read_text() if page.exists() else f"{TITLE}{BEGIN}\n{END}\n"
    before, _, rest = text.partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n\n{told(list(harnesses), read())}\n{END}{rest.partition(END)[2]}")


def told(harnesses: list[Harness], kept: dict[str, Row]) -> str:
    """The page's sums, its table in the order of the plan, and what each harness is about."""
    rows = {harness.name: kept[harness.name] for harness in harnesses if harness.name in kept}
    lines = [*_sums(harnesses, rows), "", f"| {' | '.join(HEADS)} |", "|" + "---|" * len(HEADS)]
    for number, wanted in PLAN.items():
        holding = [harness for harness in harnesses if number in harness.tests.split(", ")]
        cells = [_cells(harness, rows.get(harness.name)) for harness in holding]
        cells = cells or [["", "", *[""] * len(COLUMNS), NOT_HELD.get(number, "**no harness**")]]
        lines += [f"| {' | '.join([number, wanted, *each])} |" for each in cells]
    return "\n".join([*lines, "", *(_about(each, rows[each.name]) for each in harnesses if each.name in rows), ""])


def _sums(harnesses: list[Harness], rows: dict[str, Row]) -> Iterable[str]:
    """What is the same for all rows, or else the several; and what all of it comes to."""
    for what, name in (("date", "date"), ("version", "run"), ("seed", "seed"), ("scale", "scale")):
        yield f"- {what}: {', '.join(sorted({str(row[name]) for row in rows.values()})) or 'none yet'}"
    by_code: dict[str, list[str]] = {}
    for name, row in rows.items():
        by_code.setdefault(row["code"], []).append(name)
    parts = [f"`{digest}` ({', '.join(names)})" for digest, names in by_code.items()]
    yield f"- code: {'; '.join(parts) if len(parts) > 1 else ''.join(f'`{digest}`' for digest in by_code)}"
    failed = [name for name, row in rows.items() if row["faults"]]
    skipped = [name for name, row in rows.items() if row["skipped"]]
    missing = [harness.name for harness in harnesses if harness.name not in rows]
    passed = len(rows) - len(failed) - len(skipped)
    yield f"- harnesses that passed: {passed} of {len(harnesses)}" + "".join(
        f"; {what}: {', '.join(names)}"
        for what, names in (("**failed**", failed), ("skipped", skipped), ("not run", missing))
        if names
    )
    for name, words in SUMMED.items():
        yield f"- {words}: **{sum(row[name] for row in rows.values()):,}**"
    done = Counter[str]()
    for harness in harnesses:
        if harness.name in rows:
            done[harness.unit] += rows[harness.name]["cycles"]
    yield f"- done: {', '.join(f'{count:,} {unit}' for unit, count in done.most_common())}"


def _cells(harness: Harness, row: Row | None) -> list[str]:
    if row is None:
        return [harness.name, "", *[""] * len(COLUMNS), "not run"]
    run = f"{row['cycles']:,} {harness.unit}"
    wanted = harness.planned or harness.nightly
    if row["cycles"] < wanted and not row["skipped"]:
        why = harness.lowered if row["scale"] == "nightly" else f"scale {row['scale']}"
        run += f" of {wanted:,}: {why or 'it ended early'}"
    return [harness.name, run, *(f"{row[name]:,}" for name in COLUMNS), _verdict(row)]


def _verdict(row: Row) -> str:
    if row["faults"]:
        return f"**failed**, {len(row['faults'])} faults"
    if row["skipped"]:
        return f"skipped: {row['skipped']}"
    gaps = sum(count for name, count in row["counted"].items() if name.startswith(KNOWN_GAP))
    return f"passed but for {gaps:,} times a known gap" if gaps else "passed"


def _about(harness: Harness, row: Row) -> str:
    counted = ", ".join(f"{count:,} {name}" for name, count in row["counted"].items())
    faults = "".join(f"\n  - {' '.join(fault.split())[:300]}" for fault in row["faults"][:3])
    about = f"- **{harness.name}** ({harness.tests}; {row['seconds']:.0f} s): {harness.about.rstrip('.')}."
    return f"{about}{f' Counted: {counted}.' if counted else ''}{faults}"


def read() -> dict[str, Row]:
    """What is kept, by the name of the harness."""
    kept: dict[str, Row] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    return {name: {"skipped": "", "code": "", **row} for name, row in kept.items()}
