"""Ten million pending jobs: how soon a process that opens them has its first lease, and what they cost in memory.

Each store is opened by a process of its own, this module run as a program, because memory that was once used stays.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.load import SCOPE, WORKER, Figure, Options, fill, us
from telha_queue import Queue, QueueConfig

LEASES = 1000
PAYLOAD = b"x" * 150


def run(options: Options) -> list[Figure]:
    """The absolute bars of the table; the processor's share of the time stands beside."""
    n = options.of(10_000_000, 1_000_000)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        full, fresh = Path(folder) / "full", Path(folder) / "fresh"
        for path, jobs in ((full, n), (fresh, LEASES + 1)):
            _ask("fill", path, jobs)
        opened = [_ask("open", full) for _ in range(3)]
        base = _ask("open", fresh)
    first = sorted(opened, key=lambda one: one["first_lease_secs"])[1]
    grown = [(one["rss_bytes"] - base["rss_bytes"]) / 2**20 for one in opened]
    detail = f"open {us(first['open_secs'])}; processor time {us(first['cpu_secs'])}; median of 3"
    return [
        Figure(f"{n:,} pending jobs: open to first lease", first["first_lease_secs"], 1.0, unit="s", detail=detail),
        Figure(
            f"{n:,} pending jobs: memory above a fresh store", max(grown), 300, unit="MiB",
            detail=f"after {LEASES:,} leases; {base['rss_bytes'] / 2**20:,.0f} MiB with a fresh one",
        ),
    ]  # fmt: skip


def _ask(*arguments: object) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.backlog", *map(str, arguments)]
    printed: dict[str, float] = json.loads(
        subprocess.run(command, text=True, stdout=subprocess.PIPE, check=True).stdout
    )
    return printed


def _fill(path: str, n: int) -> dict[str, float]:
    with Queue.open(path, QueueConfig(durability="os")) as queue:
        fill(queue, n, payload=PAYLOAD)
    return {}


def _open(path: str) -> dict[str, float]:
    started, cpu = time.perf_counter(), time.process_time()
    with Queue.open(path, QueueConfig(durability="os")) as queue:
        opened = time.perf_counter()
        queue.lease_next(SCOPE, worker_id=WORKER)
        leased, cpu_secs = time.perf_counter(), time.process_time() - cpu
        for _ in range(LEASES):
            assert queue.lease_next(SCOPE, worker_id=WORKER) is not None
        return {
            "open_secs": opened - started,
            "first_lease_secs": leased - started,
            "cpu_secs": cpu_secs,
            "rss_bytes": _rss_bytes(),
        }


def _rss_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


if __name__ == "__main__":
    verb, path, *rest = sys.argv[1:]
    print(json.dumps(_fill(path, int(rest[0])) if verb == "fill" else _open(path)))
