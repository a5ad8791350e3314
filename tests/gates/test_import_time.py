"""Importing the queue is cheap: it loads nothing heavy, and no RocksDB until a directory is opened."""

import os
import subprocess
import sys

ROUNDS = 15
HEAVY = ("click", "rich", "dataclasses", "logging", "grpc", "msgpack", "inspect", "asyncio", "telha_queue._rocks")


def fresh(program: str) -> str:
    """Run a program in an interpreter that has loaded nothing else, and return what it printed."""
    # With compiled modules, as every installation has them: the standard library's are.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env)
    return run.stdout.strip()


def import_ns(statement: str) -> int:
    timer = "from time import perf_counter_ns as now; start = now()"
    return int(fresh(f"{timer}; {statement}; print(now() - start)"))


def test_import_loads_nothing_heavy():
    # What the interpreter itself loads at start-up, through .pth files for instance, is not ours to answer for.
    program = "import sys; before = set(sys.modules); import telha_queue; print(*(set(sys.modules) - before))"
    loaded = set(fresh(program).split())
    assert "telha_queue" in loaded
    assert loaded.isdisjoint(HEAVY), sorted(loaded.intersection(HEAVY))


def test_import_costs_less_than_twice_uuid_and_json():
    # The two are interleaved and the best of each is taken, so that a busy machine slows both or neither.
    pairs = [(import_ns("import telha_queue"), import_ns("import uuid, json")) for _ in range(ROUNDS)]
    ours, theirs = (min(column) for column in zip(*pairs, strict=True))
    assert ours < 2 * theirs, f"import telha_queue: {ours / 1e6:.1f} ms; import uuid, json: {theirs / 1e6:.1f} ms"
