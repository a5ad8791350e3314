"""Instructions per job of a fixed life cycle, by callgrind: a cost that a noisy machine does not hide.

    python -m bench.counts             count, and compare with bench/counts.json; exit 1 beyond 3 %
    python -m bench.counts --update    count, and write that file

Each scenario runs twice, with some jobs and with more, and the difference counts, so that start-up cancels. The counts
are for the bundled RocksDB and for one version of Python; with another of either there is nothing to compare with.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import floor
from bench.load import Options, record_sizes
from bench.scenario import BATCH, PAYLOAD
from telha_queue.engines.rocks import build_info

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "bench" / "counts.json"
JOBS = {"single": (500, 1500), "batch": (2000, 6000)}
TOLERANCE = 0.03


def main() -> int:
    """Exit 0 when no count has grown by more than the tolerance."""
    parser = argparse.ArgumentParser(prog="python -m bench.counts", description=__doc__.partition("\n")[0])
    parser.add_argument("--update", action="store_true", help="write bench/counts.json instead of comparing with it")
    update = parser.parse_args().update
    info = build_info()
    if info["rocksdb_mode"] != "bundled":
        sys.exit('bench: counts are for the bundled RocksDB; run "make bench-check"')
    if shutil.which("valgrind") is None:
        sys.exit("bench: valgrind not found; install valgrind (Debian/Ubuntu)")
    built = {"rocksdb": info["rocksdb"], "python": ".".join(platform.python_version_tuple()[:2])}
    counted = {name: count(name, jobs) for name, jobs in JOBS.items()}
    if update:
        KEPT.write_text(json.dumps({"built": built, "instructions_per_job": counted}, indent=2) + "\n")
        print(_table(counted, {}))
        return 0
    if not KEPT.exists():
        sys.exit(f"bench: there is no {KEPT.name} yet; give --update")
    kept = json.loads(KEPT.read_text())
    if kept["built"] != built:
        print(f"bench: counts are kept for {kept['built']}, this is {built}: nothing to compare with", file=sys.stderr)
        print(_table(counted, {}))
        return 0
    print(_table(counted, kept["instructions_per_job"]))
    changes = [_change(now, kept["instructions_per_job"][name]) for name, now in counted.items()]
    if max(changes) <= TOLERANCE and min(changes) < -TOLERANCE:
        print("fewer than are kept: python -m bench.counts --update keeps the gain from being lost again")
    return 1 if max(changes) > TOLERANCE else 0


def count(name: str, jobs: tuple[int, int]) -> dict[str, int]:
    """Instructions per job, of the queue from Python and of the floor."""
    batch = str(BATCH if name == "batch" else 1)
    with tempfile.TemporaryDirectory(prefix="telha-counts-") as folder:
        queue = [_instructions(sys.executable, "-m", "bench.scenario", name, str(n), folder) for n in jobs]
        sizes = map(str, record_sizes(Options(quick=True, folder=Path(folder)), PAYLOAD))
        plan = [batch, "1", "os", "cycle", *sizes]
        base = [_instructions(str(floor.program()), "run", f"{folder}/floor-{n}", str(n), *plan) for n in jobs]
    more = jobs[1] - jobs[0]
    return {"queue": (queue[1] - queue[0]) // more, "floor": (base[1] - base[0]) // more}


def _instructions(*command: str) -> int:
    """Run a program under callgrind and return how many instructions its threads took."""
    environ = os.environ | {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command],
        cwd=ROOT, env=environ, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False,
    )  # fmt: skip
    found = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode != 0 or found is None:
        sys.exit(f"bench: callgrind failed on {' '.join(command)}:\n{run.stderr[-2000:]}")
    return int(found[1])


def _change(now: dict[str, int], kept: dict[str, int]) -> float:
    return now["queue"] / kept["queue"] - 1


def _table(counted: dict[str, dict[str, int]], kept: dict[str, dict[str, int]]) -> str:
    lines = []
    for name, now in counted.items():
        line = (
            f"{name}: {now['queue']:,} instructions per job; the floor takes {now['floor'] / now['queue']:.2f} of them"
        )
        if name in kept:
            change = _change(now, kept[name])
            line += f"; kept {kept[name]['queue']:,}: {change:+.1%}{' TOO MUCH' if change > TOLERANCE else ''}"
        lines.append(line)
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
