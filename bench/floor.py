"""Compiles and runs floor.cc: RocksDB alone on the writes of a life cycle, against the library the queue links."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from telha_queue.engines.rocks import build_info

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "bench" / "floor.cc"
FLAGS = ["-std=c++20", "-O2", "-g0", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-pthread", f"-I{ROOT / 'ext'}"]


def program() -> Path:
    """The compiled floor; compiled again when it is older than anything it is made of."""
    mode = str(build_info()["rocksdb_mode"])
    target = ROOT / "build" / "bench" / f"floor-{mode}"
    sources = [SOURCE, *(ROOT / "ext").glob("*.hpp"), ROOT / "scripts" / "build-rocksdb.sh"]
    if target.exists() and target.stat().st_mtime > max(path.stat().st_mtime for path in sources):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    compiler = shlex.split(os.environ.get("CXX") or sysconfig.get_config_var("CXX") or "c++")
    made = target.with_suffix(f".{os.getpid()}")
    subprocess.run([*compiler, *FLAGS, *_library(mode), "-o", made, SOURCE, *_links(mode)], check=True)
    made.rename(target)
    return target


def _prefix() -> str:
    found = subprocess.run(
        ["scripts/build-rocksdb.sh", "--where"], cwd=ROOT, text=True, stdout=subprocess.PIPE, check=False
    )
    if found.returncode != 0:
        sys.exit('bench: the bundled RocksDB is not built; run "make rocksdb"')
    return found.stdout.strip()


def _library(mode: str) -> list[str]:
    return ["-isystem", f"{_prefix()}/include"] if mode == "bundled" else []


def _links(mode: str) -> list[str]:
    return [f"{_prefix()}/lib/librocksdb.a", "-llz4", "-lzstd", "-ldl"] if mode == "bundled" else ["-lrocksdb"]


def run(
    path: Path, jobs: int, sizes: tuple[int, int, int], *, batch: int = 1, threads: int = 1, durability: str = "os",
    order: str = "phases",
) -> dict[str, dict[str, float]]:  # fmt: skip
    """One run in a directory that must not exist yet; seconds of wall and of processor time per phase."""
    arguments = [path, jobs, batch, threads, durability, order, *sizes]
    return _ask("run", *arguments)


def trial(
    path: Path, jobs: int, sizes: tuple[int, int, int], *, batch: int, database: str, family: str
) -> dict[str, float]:
    """One run with other options: seconds, microseconds to seek past what was leased, bytes on disk."""
    return _ask("trial", path, jobs, batch, database, family, *sizes)


def rows(path: Path) -> dict[str, Any]:
    """Per column family of a closed store, each row as [state, key bytes, value bytes]; and how many writes it had."""
    return _ask("rows", path)


def _ask(*arguments: object) -> dict[str, Any]:
    command = [str(program()), *map(str, arguments)]
    printed = subprocess.run(command, text=True, stdout=subprocess.PIPE, check=True).stdout
    found: dict[str, Any] = json.loads(printed)
    return found
