"""Write docs/performance-peers.md: ratios, a plot, and how they were come by. No seconds: they are the machine's."""

from __future__ import annotations

import math
import os
import platform
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.peers.measure import PAYLOAD_BYTES, Shape
from bench.peers.plot import draw
from bench.peers.protocol import Durability, Peer
from bench.peers.rounds import BATCH, CLIENTS, ONE, SHAPES, Rounds, ratio, ratios

BAR = 5
HEAD = """\
<!-- Written by `make bench-peers`; changes made by hand are lost. -->

# telha-queue beside its peers

How many times as long a job takes on each peer as on telha-queue, from enqueue over lease to completion: **7 means
that telha-queue is seven times as fast.** Every peer runs in the durability class of the column. All figures are
medians of {repeats} rounds, with the smallest and the largest; a ratio compares two measurements of one round.
"""
METHOD = """\
## Method

One command, `make bench-peers`, installs what is missing, starts each server on a unix socket in a temporary directory,
stops it, and writes this page. `python -m bench.peers --smoke` checks every adapter: each payload comes back once, a
leased job is kept until it is acknowledged, and an acknowledged job is gone.

- **A cell of the table**: the peer starts on an empty directory; {warm_up} calls of each kind warm it up; `sync(2)`
  clears the disk's queue; then one client enqueues jobs of {payload} random bytes, and after that leases and completes
  them until none is left. Each of the two halves stops after {limit:g} s. A peer that is stopped so has had fewer jobs
  in its store than the faster ones, which is in its favour.
- **Rounds**: each round measures every peer in every column, telha-queue among them; the next begins with another peer.
- **Clients** are threads of one Python process. A server has a process of its own, hence a second core; an embedded
  queue shares the one interpreter with its client. {clients} clients have one connection each, or share one `Queue`.
- **Batches** are what the peer has for many jobs, see below. Where it has none, the column is empty.
- **Durability**: `sync` means that an acknowledged call has been fsynced, `os` that it survives a killed process but
  not a power cut. Counted with strace on one client that makes one call at a time: in `sync` every peer fsyncs once for
  each enqueue, lease and completion, save for beanstalkd's lease and Huey's completion, which write nothing; in `os`
  none waits for an fsync. What else differs is named below.
- **Payloads** are read at the lease by every client.

{machine}
"""


@dataclass(frozen=True)
class Run:
    """What was measured, of whom, and how."""

    subject: Peer
    peers: Sequence[Peer]
    versions: dict[str, str]
    left_out: dict[str, str]
    cells: Rounds
    repeats: int
    limit_s: float
    warm_up: int
    load: float
    file_system: str

    def measured(self) -> list[Peer]:
        return [peer for peer in self.peers if any(name == peer.name for _, name in self.cells)]


def write(run: Run, page: Path) -> str:
    """Write the page, and the plot beside it; return the page."""
    parts = [HEAD.format(repeats=run.repeats), lives(run)]
    picture = page.with_suffix(".svg")
    if draw(bars(run), picture):
        parts.append(f"![The same as bars; one is telha-queue, and the scale is logarithmic]({picture.name})\n")
    parts += [bar(run), halves(run)]
    parts.append(
        METHOD.format(
            payload=PAYLOAD_BYTES, limit=run.limit_s, clients=CLIENTS, warm_up=run.warm_up, machine=machine(run)
        )
    )
    parts += [settings(run), apart(run), left_out(run)]
    text = "\n".join(part for part in parts if part)
    page.write_text(text)
    return text


def lives(run: Run) -> str:
    rows = []
    for peer in run.measured():
        row = [f"{peer.name}{'' if peer.acknowledges else ' (no acknowledgement)'}"]
        for shape in SHAPES.values():
            found = ratios(run.cells, shape, peer.name, run.subject.name)
            row.append(f"**{figure(median(found))}** ({figure(found[0])} to {figure(found[-1])})" if found else "")
        rows.append(row)
    return table(["whole life of a job", *headings()], rows) + magnitude(run)


def halves(run: Run) -> str:
    rows = []
    for peer in run.measured():
        row = [peer.name]
        for shape in SHAPES.values():
            parts = [ratio(run.cells, shape, peer.name, run.subject.name, part) for part in ("enqueue_s", "finish_s")]
            row.append(" / ".join(figure(part) for part in parts if part is not None))
        rows.append(row)
    return "## Enqueue, and lease + complete\n\n" + table(["enqueue / lease + complete", *headings()], rows)


def bar(run: Run) -> str:
    """Hold the fastest peer that has leases and acknowledgement to the bar."""
    lines = [f"Against the fastest peer that has leases and acknowledgement; the bar is {BAR}:\n"]
    for (durability, how), shape in SHAPES.items():
        found = {peer.name: ratio(run.cells, shape, peer.name, run.subject.name) for peer in comparable(run)}
        known = {name: value for name, value in found.items() if value is not None}
        if known:
            fastest = min(known, key=lambda name: known[name])
            met = "met" if known[fastest] >= BAR else "not met"
            lines.append(f"- `{durability}`, {how}: {fastest}, {figure(known[fastest])} times: {met}.")
    return "\n".join(lines) + "\n"


def comparable(run: Run) -> list[Peer]:
    return [peer for peer in run.measured() if peer.acknowledges]


def settings(run: Run) -> str:
    rows = [
        [
            peer.name,
            run.versions[peer.name],
            "unix socket" if peer.is_server else "in process",
            peer.settings.sync,
            peer.settings.os,
            peer.batch_means,
        ]
        for peer in [run.subject, *run.measured()]
    ]
    return "## Settings\n\n" + table(["", "version", "reached", "`sync`", "`os`", "batches"], rows)


def apart(run: Run) -> str:
    lines = [wrapped(f"- **{peer.name}**: {peer.apart}.") for peer in [run.subject, *run.measured()]]
    return "## What the ratios do not show\n\n" + "\n".join(lines) + "\n"


def left_out(run: Run) -> str:
    if not run.left_out:
        return ""
    lines = [wrapped(f"- **{name}**: {why}") for name, why in run.left_out.items()]
    return "## Not measured\n\n" + "\n".join(lines) + "\n"


def machine(run: Run) -> str:
    busy = " **The machine was busy with other work, so take these figures as provisional.**" if run.load > 1 else ""
    return wrapped(
        f"Measured on {os.cpu_count()} cores ({platform.machine()}), {platform.system()} {platform.release()}, "
        f"{run.file_system}, Python {platform.python_version()}; load average at the start {run.load:.1f}.{busy}",
        indent="",
    )


def magnitude(run: Run) -> str:
    """Give the one absolute figure, as an order of magnitude."""
    shape = SHAPES[Durability.OS, ONE]
    rate = 1 / median(cell.life_s for cell in run.cells[shape, run.subject.name])
    told = (
        f"Order of magnitude: telha-queue took about 10^{round(math.log10(rate))} jobs a second through their life "
        f"here (`os`, {ONE}). Peers without a form for {BATCH} jobs have no figure in that column."
    )
    return f"\n{wrapped(told, indent='')}\n"


def headings() -> list[str]:
    return [f"`{durability}`, {how}" for durability, how in SHAPES]


def bars(run: Run) -> dict[Durability, dict[str, list[tuple[str, float]]]]:
    """By durability and way of calling: peers with their ratios."""
    found: dict[Durability, dict[str, list[tuple[str, float]]]] = {}
    for (durability, how), shape in SHAPES.items():
        found.setdefault(durability, {})[how] = [
            (peer.name, value) for peer in run.measured() if (value := whole(run, shape, peer)) is not None
        ]
    return found


def whole(run: Run, shape: Shape, peer: Peer) -> float | None:
    return ratio(run.cells, shape, peer.name, run.subject.name)


def figure(value: float) -> str:
    """Two digits: there is no more in it."""
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def wrapped(text: str, indent: str = "  ") -> str:
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
