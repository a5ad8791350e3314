"""From results to docs/torture.md. Results of an earlier run stay until their harness runs again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from telha_queue import __version__, build_info
from tests.torture.protocol import Harness, Result

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "build" / "torture" / "results.json"
BEGIN, END = "<!-- written by python -m tests.torture: begin -->", "<!-- written by python -m tests.torture: end -->"
TITLE = "# Torture\n\n"
COLUMNS = ("lost", "invented", "double_leases", "aborts", "hangs")


def keep(harness: Harness, result: Result, scale: str, seed: int) -> None:
    """Note a result for the page."""
    kept = _kept()
    info = build_info()
    kept[harness.name] = {
        **result._asdict(),
        "counted": dict(result.counted),
        "scale": scale,
        "seed": seed,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "run": f"telha-queue {__version__}, RocksDB {info['rocksdb']} {info['rocksdb_mode']}",
    }
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    KEPT.write_text(json.dumps(kept, indent=1))


def write(page: Path, harnesses: Iterable[Harness]) -> None:
    """Write the table of all that is kept; text outside the marks stays."""
    kept = _kept()
    rows = [(harness, kept[harness.name]) for harness in harnesses if harness.name in kept]
    text = page.read_text() if page.exists() else f"{TITLE}{BEGIN}\n{END}\n"
    before, _, rest = text.partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n\n{table(rows)}\n{END}{rest.partition(END)[2]}")


def table(rows: Iterable[tuple[Harness, dict[str, Any]]]) -> str:
    """The page's table, and what each row is about."""
    heads = ("harness", "nightly wants", "reached", "acknowledged", *(name.replace("_", " ") for name in COLUMNS))
    lines = [f"| {' | '.join(heads)} | also counted | verdict | run |", "|" + "---|" * (len(heads) + 3)]
    about = []
    for harness, row in rows:
        figures = [f"{harness.nightly:,} {harness.unit}", *_numbers(row, "cycles", "acknowledged", *COLUMNS)]
        also = ", ".join(f"{name} {count:,}" for name, count in row["counted"].items())
        verdict = "passed" if not row["faults"] else f"**failed**, {len(row['faults'])} faults"
        run = f"{row['date']}, seed {row['seed']}, {row['scale']}, {row['seconds']:.0f} s, {row['run']}"
        lines.append(f"| {harness.name} | {' | '.join(figures)} | {also} | {verdict} | {run} |")
        about.append(f"- **{harness.name}** ({harness.tests}): {harness.about}")
    return "\n".join([*lines, "", *about, ""])


def _numbers(row: dict[str, Any], *names: str) -> list[str]:
    return [f"{row[name]:,}" for name in names]


def _kept() -> dict[str, Any]:
    return json.loads(KEPT.read_text()) if KEPT.exists() else {}
