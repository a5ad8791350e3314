"""All cells, interleaved: one round measures each peer once in each shape, and the next starts with another peer.

A ratio compares two cells of one round and shape, so that what the machine does meanwhile falls on both.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from bench.peers.measure import Cell, Shape, measure
from bench.peers.protocol import Durability, Peer

BATCH = 50
CLIENTS = 8
ONE, MANY = "one at a time", f"in batches of {BATCH}"
SHAPES = {
    (Durability.SYNC, ONE): Shape(Durability.SYNC, 1, 1),
    (Durability.SYNC, MANY): Shape(Durability.SYNC, BATCH, 1),
    (Durability.SYNC, f"{CLIENTS} clients, {ONE}"): Shape(Durability.SYNC, 1, CLIENTS),
    (Durability.OS, ONE): Shape(Durability.OS, 1, 1),
    (Durability.OS, MANY): Shape(Durability.OS, BATCH, 1),
}
JOBS = 40_000  # for all but the fastest, the time limit comes first

Rounds = dict[tuple[Shape, str], list[Cell]]  # by shape and name of the peer, one cell per round


class Failures(dict[str, str]):
    """Why a peer is not in the table, or no longer, by its name."""

    def note(self, peer: Peer, error: Exception) -> None:
        self[peer.name] = f"{type(error).__name__}: {' '.join(str(error).split())}"


def run_rounds(
    subject: Peer,
    peers: Sequence[Peer],
    repeats: int,
    limit_s: float,
    parent: Path,
    failures: Failures,
    tell: Callable[[str], None],
) -> Rounds:
    """Measure. A peer that fails is left out from then on, and the reason is noted."""
    cells: Rounds = {}
    for number in range(repeats):
        for (durability, how), shape in SHAPES.items():
            for peer in rotated([subject, *peers], number):
                if peer.name in failures or not shape.fits(peer, is_subject=peer is subject):
                    continue
                tell(f"round {number + 1} of {repeats}: {durability}, {how}: {peer.name}")
                try:
                    with scratch(parent) as directory:
                        cell = measure(peer, shape, directory, JOBS, limit_s)
                except Exception as error:  # whatever a peer raises, the others can still be measured
                    if peer is subject:
                        raise
                    failures.note(peer, error)
                else:
                    cells.setdefault((shape, peer.name), []).append(cell)
    return cells


def ratios(cells: Rounds, shape: Shape, peer: str, subject: str, part: str = "life_s") -> list[float]:
    """How many times as long a job takes on the peer as on the subject, one figure a round, in order of size."""
    pairs = zip(cells.get((shape, peer), ()), cells[shape, subject], strict=False)
    return sorted(getattr(theirs, part) / getattr(ours, part) for theirs, ours in pairs)


def ratio(cells: Rounds, shape: Shape, peer: str, subject: str, part: str = "life_s") -> float | None:
    found = ratios(cells, shape, peer, subject, part)
    return median(found) if found else None


def rotated(peers: Sequence[Peer], by: int) -> Iterable[Peer]:
    start = by * 3 % len(peers)  # far enough for the subject to run early, late and in the middle
    return [*peers[start:], *peers[:start]]


@contextmanager
def scratch(parent: Path) -> Iterator[Path]:
    """An empty directory that goes again. Others may pass through it: a server may run as another user."""
    with tempfile.TemporaryDirectory(prefix="telha-peers-", dir=parent) as name:
        directory = Path(name)
        directory.chmod(0o711)
        yield directory
