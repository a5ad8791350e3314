"""Runs the harnesses at length: python -m tests.torture [--seed N] [--scale ci|nightly] [--only NAME,...] [--jobs 2].

Prints the seed first. Each harness is a process of its own; what it found is kept as soon as it is over, so a run that
is killed has what it had so far. With --report the page is written anew then; harnesses that were not run keep the
figures of an earlier run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.torture import alone, report, runner
from tests.torture.harnesses import HARNESSES, named
from tests.torture.protocol import SCALES


def main() -> int:
    """Exit 0 when no harness that ran failed, else 1."""
    arguments = _parse()
    seed = runner.new_seed() if arguments.seed is None else arguments.seed
    _say(f"seed {seed}, scale {arguments.scale}")
    harnesses = [named(name) for name in arguments.only] if arguments.only else HARNESSES
    failed = 0
    place = arguments.folder or runner.default_folder()
    with (
        TemporaryDirectory(prefix="telha-torture-", dir=place, ignore_cleanup_errors=True) as folder,
        ThreadPoolExecutor(arguments.jobs) as pool,
    ):
        _end_when_told(Path(folder))
        order = alone.Order(arguments.scale, seed, arguments.count, Path(folder), arguments.keep)
        running = {pool.submit(alone.run, harness, order): harness for harness in harnesses}
        for future in as_completed(running):
            harness, result = running[future], future.result()
            _say(runner.told(harness, result, seed))
            failed += bool(result.faults)
            report.keep(harness, result, arguments.scale, seed)
            if arguments.report is not None:
                report.write(arguments.report, HARNESSES)
    return 1 if failed else 0


def _end_when_told(folder: Path) -> None:
    """At Ctrl-C: at once. Harnesses end with this process, and what they have on disk or in memory goes too."""

    def end(*_: object) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(130)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)


def _parse() -> argparse.Namespace:
    names = ", ".join(harness.name for harness in HARNESSES)
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, help="decides everything that is random here; another each time without it")
    parser.add_argument("--scale", choices=SCALES, default="nightly", help="how much (default: nightly)")
    parser.add_argument("--only", type=_names, help=f"from: {names}")
    parser.add_argument("--count", type=int, help="so many cycles of each, in place of the scale's")
    parser.add_argument("--jobs", type=int, default=1, help="so many harnesses side by side (default: 1)")
    parser.add_argument("--folder", type=Path, help="where queues are made (default: in memory where there is room)")
    parser.add_argument("--keep", type=Path, help="copy directories that show a fault to this folder")
    parser.add_argument("--report", type=Path, help="write the results to this page, such as docs/torture.md")
    return parser.parse_args()


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := set(names) - {harness.name for harness in HARNESSES}:
        raise argparse.ArgumentTypeError(f"no such harness: {', '.join(sorted(unknown))}")
    return names


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
