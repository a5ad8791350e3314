"""One harness as a program: python -m tests.torture.alone, with a request as JSON. Its answer is a result as JSON.

So a harness that dies or hangs ends itself and not the run, and several can run side by side.
"""

from __future__ import annotations

import ctypes
import json
import signal
import sys
from pathlib import Path
from typing import NamedTuple

from tests.torture import api_child, runner
from tests.torture.harnesses import named
from tests.torture.protocol import Harness, Result

LIMIT_SECS = 3600
"""Catches a hang, and judges no speed."""
PR_SET_PDEATHSIG = 1


class Order(NamedTuple):
    """What every harness of a run is asked."""

    scale: str
    seed: int
    wanted: int | None
    folder: Path
    keep: Path | None


def run(harness: Harness, order: Order) -> Result:
    """Run it in a process of its own, to its end or for LIMIT_SECS."""
    words = json.dumps([harness.name, *(str(word) if isinstance(word, Path) else word for word in order)])
    return api_child.result_of("tests.torture.alone", [words], LIMIT_SECS)


def main(text: str) -> None:
    """Carry an order out; dies with the process that gave it."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    name, scale, seed, wanted, folder, keep = json.loads(text)
    keep = None if keep is None else Path(keep)
    api_child.answer(runner.run(named(name), scale, seed, wanted=wanted, folder=Path(folder), keep=keep))


if __name__ == "__main__":
    main(sys.argv[1])
