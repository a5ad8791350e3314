"""From figures to docs/performance.md: the table, how it was measured, and a plot. Text outside the marks stays."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from bench.load import Figure

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
PLOT = ROOT / "docs" / "performance.svg"
KEPT = ROOT / "build" / "bench" / "figures.json"
"""Every row's newest figures, so that a run of some rows leaves the others in the table."""
BEGIN, END = "<!-- written by make bench: begin -->", "<!-- written by make bench: end -->"
TITLE = "# Performance\n\n"
METHOD = """\
`make bench` makes this table and the plot, and `make bench ARGS="--only lifecycle,threads"` some rows of it. Every
figure is a ratio to something measured in the same run, because a second here is not a second elsewhere; the two sides
take turns, and the figure is the median of the ratios of 7 rounds (of the sums, where what happens seldom has to
count). A round of the life cycle has 100,000 jobs.

- **The floor** (`bench/floor.cc`) is a C++ program that writes to RocksDB what enqueue, lease and complete write: same
  column families, options, keys and record sizes, one write batch per call, nothing read, everything made beforehand.
  `tests/bench/test_floor.py` holds its rows to the queue's. The queue is measured from Python, on 300-byte records.
- *In phases*: all jobs enqueued, then all leased, then all completed. *Each in turn*: each job, or each batch, through
  all three. *By processor time* is the same ratio in time of the calling thread, which other programs do not lengthen.
- **Rows in front** stand at a better priority than the jobs that are leased. *Drained* rows were leased and
  completed through the same `Queue`, *completed* rows through one that was closed before. Background work of
  RocksDB is waited for before a row is timed.
- **The wake-up** is compared with a value handed over through `threading.Condition`.
- Durability is `os` where no other is named. Instruction counts of a life cycle stand in `bench/counts.json`;
  `make bench-check` compares them.
"""


def machine() -> str:
    """What it ran on, and how busy that was."""
    cpuinfo = Path("/proc/cpuinfo").read_text()
    model = next((line.split(":")[1].strip() for line in cpuinfo.splitlines() if line.startswith("model name")), "?")
    return (
        f"{os.cpu_count()} x {model}, Linux {platform.release()}, Python {platform.python_version()}, "
        f"load {os.getloadavg()[1]:.1f}"
    )


def line(figure: Figure) -> str:
    """One figure, for a terminal."""
    verdict = "meets" if figure.passes else "MISSES"
    return f"{figure.what}: {_value(figure)} {verdict} {_bar(figure)}{figure.detail and f'  [{figure.detail}]'}"


def write(done: dict[str, list[Figure]], order: list[str], rocksdb: str) -> None:
    """Keep the figures, and write the page and the plot from all that are kept."""
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for name, figures in done.items():
        kept[name] = {
            "figures": [figure._asdict() for figure in figures],
            "run": f"commit {_commit()}, RocksDB {rocksdb} bundled, {machine()}",
        }
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    KEPT.write_text(json.dumps(kept, indent=1))
    rows = {name: kept[name] for name in order if name in kept}
    figures = [Figure(**fields) for row in rows.values() for fields in row["figures"]]
    text = PAGE.read_text() if PAGE.exists() else f"{TITLE}{BEGIN}\n{END}\n"
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{_section(rows)}\n{END}{rest.partition(END)[2]}")
    PLOT.write_text(_plot(figures))


def _section(rows: dict[str, dict[str, Any]]) -> str:
    lines = ["![each figure as a share of its bar](performance.svg)", "", "| what | figure | bar | | |"]
    lines.append("|---|---|---|---|---|")
    runs: dict[str, list[str]] = {}
    for name, row in rows.items():
        runs.setdefault(row["run"], []).append(name)
        for fields in row["figures"]:
            figure = Figure(**fields)
            verdict = "met" if figure.passes else "**missed**"
            lines.append(f"| {figure.what} | {_value(figure)} | {_bar(figure)} | {verdict} | {figure.detail} |")
    lines += ["", *(f"- {', '.join(names)}: {run}" for run, names in runs.items()), "", METHOD]
    return "\n".join(lines)


def _value(figure: Figure) -> str:
    number = f"{figure.value:,.0f}" if figure.value >= 100 else f"{figure.value:.2f}"
    return f"{number} {figure.unit}"


def _bar(figure: Figure) -> str:
    return f"{'at least' if figure.at_least else 'at most'} {figure.limit:g}"


def _commit() -> str:
    """The commit, with a plus when files of the program differ from it."""
    found = subprocess.run(
        ["git", "--no-optional-locks", "describe", "--always", "--dirty=+"],
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=False,
    )
    return found.stdout.strip() or "unknown"


def _plot(figures: list[Figure]) -> str:
    """One bar per figure: how far it is from what is asked for. All are drawn so that the left of the line is good."""
    width, left, row, top, scale = 900, 430, 22, 40, 200
    height = top + row * len(figures) + 10
    limit_x = left + scale
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{limit_x}" y="16" text-anchor="middle">the bar</text>',
        f'<text x="{left}" y="30" fill="#555">better</text>',
        f'<text x="{width - 10}" y="30" fill="#555" text-anchor="end">worse</text>',
    ]
    for i, figure in enumerate(figures):
        share = figure.limit / figure.value if figure.at_least else figure.value / figure.limit
        length = min(share * scale, width - left - 80)
        y = top + i * row
        colour = "#2a7f4f" if figure.passes else "#b3372f"
        out += [
            f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{escape(figure.what)}</text>',
            f'<rect x="{left}" y="{y + 3}" width="{length:.1f}" height="{row - 8}" fill="{colour}"/>',
            f'<text x="{left + max(length, scale) + 6:.1f}" y="{y + 13}">{_value(figure)}</text>',
        ]
    out.append(
        f'<line x1="{limit_x}" x2="{limit_x}" y1="20" y2="{height - 6}" stroke="black" stroke-dasharray="3 3"/></svg>'
    )
    return "\n".join(out) + "\n"
