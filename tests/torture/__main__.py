"""Runs the harnesses at length: python -m tests.torture [--seed N] [--scale ci|nightly] [--only NAME,...].

Prints the seed first. With --report it writes the page; harnesses that are not run keep the figures of an earlier run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.torture import report, runner
from tests.torture.harnesses import HARNESSES, named
from tests.torture.protocol import SCALES


def main() -> int:
    """Exit 0 when every harness that ran passed, else 1."""
    arguments = _parse()
    seed = runner.new_seed() if arguments.seed is None else arguments.seed
    _say(f"seed {seed}, scale {arguments.scale}")
    failed = 0
    for name in arguments.only or [harness.name for harness in HARNESSES]:
        harness = named(name)
        result = runner.run(
            harness, arguments.scale, seed, wanted=arguments.count, folder=arguments.folder, keep=arguments.keep
        )
        _say(runner.told(harness, result, seed))
        failed += not result.passed
        if arguments.report is not None:
            report.keep(harness, result, arguments.scale, seed)
            report.write(arguments.report, HARNESSES)
    return 1 if failed else 0


def _parse() -> argparse.Namespace:
    names = ", ".join(harness.name for harness in HARNESSES)
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, help="decides everything that is random here; another each time without it")
    parser.add_argument("--scale", choices=SCALES, default="nightly", help="how much (default: nightly)")
    parser.add_argument("--only", type=_names, help=f"from: {names}")
    parser.add_argument("--count", type=int, help="so many cycles of each, in place of the scale's")
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
