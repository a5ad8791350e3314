"""RocksDB's options, each beside what was chosen instead: python -m bench.options writes docs/performance-options.md.

Every trial is the floor with one option changed, in turns with the floor as it is: the figures are ratios of the two.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench import floor, report
from bench.load import Options, payload_for_records
from telha_queue.engines.rocks import build_info

PAGE = report.ROOT / "docs" / "performance-options.md"
ROUNDS = 3
JOBS = {1: 40_000, 50: 200_000}
HEAD = """# RocksDB's options, and the figures that chose them

The queue sets these in `ext/database.hpp`. Each line of the table is the life cycle of jobs as RocksDB alone writes it
(`bench/floor.cc`, durability `os`) with one option changed, as a ratio to the same with the options as they are, in the
same run: 0.90 is a tenth slower. *Seek* is the first look at the pending rows when all of them are gone, which is what
a scan without a window would pay at every lease; *disk* is what the jobs then take. Ratios of those: more is worse.

| option | instead of | one at a time | batches of 50 | seek | disk | so |
|---|---|---|---|---|---|---|
"""


class Trial(NamedTuple):
    """One option, as RocksDB reads it from text."""

    option: str
    instead_of: str
    why: str
    database: str = ""
    family: str = ""


HINT = "memtable_insert_with_hint_prefix_extractor"
TRIALS = (
    Trial("none", "none", "how far two runs of the same differ"),
    Trial("no insert hint", "on 34 bytes", "rows of one priority band are inserted in order", family=f"{HINT}=nullptr"),
    Trial("hint on 33 bytes", "34", "worth less when priorities mix", family=f"{HINT}=rocksdb.FixedPrefix.33"),
    Trial("memtable of 16 MiB", "64 MiB", "`memtable_bytes`, for small machines", family="write_buffer_size=16777216"),
    Trial("memtable of 256 MiB", "64 MiB", "four times the memory", family="write_buffer_size=268435456"),
    Trial(
        "universal compaction",
        "levels",
        "levels keep reads and space bounded",
        family="compaction_style=kCompactionStyleUniversal",
    ),
    Trial("compaction at 8 files", "4", "more files to look into", family="level0_file_num_compaction_trigger=8"),
    Trial("tombstones compacted early", "no", "windows pass them by, so nothing waits", family="deletions"),
    Trial(
        "no compression",
        "LZ4",
        "LZ4 costs the writer nothing; payloads are noise here",
        family="compression=kNoCompression",
    ),
    Trial("ZSTD", "LZ4", "more work for compactions", family="compression=kZSTD"),
    Trial("1 background job", "2", "a flush waits for a compaction", database="max_background_jobs=1"),
    Trial("4 background jobs", "2", "two processors", database="max_background_jobs=4"),
    Trial("log of 64 MiB", "256 MiB", "memtables are flushed early", database="max_total_wal_size=67108864"),
    Trial("log synced by the MiB", "by the system", "bursts of the disk", database="wal_bytes_per_sync=1048576"),
    Trial("pipelined writes", "no", "one thread writes at a time anyhow", database="enable_pipelined_write=true"),
    Trial("one writer", "several", "what turns and groups leave", database="allow_concurrent_memtable_write=false"),
    Trial("no spinning writers", "yes", "the same", database="enable_write_thread_adaptive_yield=false"),
)


def main() -> int:
    """Measure every trial and write the page."""
    info = build_info()
    if info["rocksdb_mode"] != "bundled":
        sys.exit('bench: figures are for the bundled RocksDB; run "make bench-options"')
    lines = []
    with tempfile.TemporaryDirectory(prefix="telha-options-", dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        options = Options(quick=False, folder=Path(folder))
        sizes = payload_for_records(options)[1]
        for trial in TRIALS:
            single = _ratios(options, trial, 1, sizes)
            batch = _ratios(options, trial, 50, sizes)
            figures = (single[0], batch[0], batch[1], batch[2])
            shown = " | ".join(f"{figure:.2f}" for figure in figures)
            lines.append(f"| {trial.option} | {trial.instead_of} | {shown} | {trial.why} |")
            print(lines[-1], flush=True)
    run = f"RocksDB {info['rocksdb']} bundled, {report.machine()}; medians of {ROUNDS} rounds"
    PAGE.write_text(f"{HEAD}{chr(10).join(lines)}\n\n{run}. `make bench-options` makes this page.\n")
    return 0


def _ratios(options: Options, trial: Trial, batch: int, sizes: tuple[int, int, int]) -> tuple[float, float, float]:
    """Rate, seek and disk against the floor as it is."""
    rounds = [
        (_run(options, Trial("", "", ""), batch, sizes), _run(options, trial, batch, sizes)) for _ in range(ROUNDS)
    ]
    return (
        median(base["wall_s"] / changed["wall_s"] for base, changed in rounds),
        median(changed["seek_us"] / base["seek_us"] for base, changed in rounds),
        median(changed["disk_bytes"] / base["disk_bytes"] for base, changed in rounds),
    )


def _run(options: Options, trial: Trial, batch: int, sizes: tuple[int, int, int]) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=options.folder) as path:
        return floor.trial(
            Path(path) / "trial", JOBS[batch], sizes, batch=batch, database=trial.database, family=trial.family
        )


if __name__ == "__main__":
    sys.exit(main())
