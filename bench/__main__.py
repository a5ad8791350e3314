"""Runs the rows of the table: python -m bench [--only lifecycle,flat] [--quick].

A full run writes docs/performance.md and its plot; rows that are not run keep the figures of an earlier run. A quick
run is smaller by ten and writes nothing but what it prints.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench import backlog, contention, lifecycle, payloads, report, scale, wakeup, worker
from bench.load import Figure, Options
from telha_queue.engines.rocks import build_info

ROWS: dict[str, Callable[[Options], list[Figure]]] = {
    "lifecycle": lifecycle.run,
    "threads": contention.run,
    "flat": scale.flat,
    "poll": scale.empty_poll,
    "payload": payloads.run,
    "heartbeats": scale.heartbeats,
    "backlog": backlog.run,
    "wakeup": wakeup.run,
    "worker": worker.run,
}


def main() -> int:
    """Exit 0 when every bar of the rows that ran is met, 1 when one is missed."""
    arguments = _parse()
    info = build_info()
    if info["rocksdb_mode"] != "bundled" and not arguments.any_rocksdb:
        sys.exit(
            f"bench: this build links the system's RocksDB {info['rocksdb']}; figures are for the bundled one: "
            'run "make bench" (or give --any-rocksdb and keep the figures to yourself)'
        )
    arguments.folder.mkdir(parents=True, exist_ok=True)
    names = arguments.only or list(ROWS)
    done: dict[str, list[Figure]] = {}
    with tempfile.TemporaryDirectory(prefix="telha-bench-", dir=arguments.folder) as folder:
        options = Options(arguments.quick, Path(folder))
        for name in names:
            started = time.perf_counter()
            done[name] = ROWS[name](options)
            for figure in done[name]:
                print(report.line(figure), flush=True)
            print(f"    {name}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    if not arguments.quick and info["rocksdb_mode"] == "bundled":
        report.write(done, list(ROWS), str(info["rocksdb"]))
    missed = sum(not figure.passes for figures in done.values() for figure in figures)
    total = sum(map(len, done.values()))
    print(f"{total - missed} of {total} bars met; {report.machine()}")
    return 1 if missed else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", type=_names, help=f"rows to run, from: {', '.join(ROWS)}")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, fewer rounds; docs stay as they are")
    parser.add_argument("--any-rocksdb", action="store_true", help="run on the system's RocksDB; docs stay as they are")
    parser.add_argument(
        "--folder", type=Path, default=Path("build/bench"), help="where stores are made: on the disk to be measured"
    )
    return parser.parse_args()


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := set(names) - set(ROWS):
        raise argparse.ArgumentTypeError(f"no such row: {', '.join(sorted(unknown))}")
    return names


if __name__ == "__main__":
    sys.exit(main())
