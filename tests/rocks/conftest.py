"""Child processes that run a queue, and RocksDB's own `ldb` to look under it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from telha_queue import Queue, QueueConfig, build_info, restore
from telha_queue.testing import ManualClock

ROOT = Path(__file__).resolve().parents[2]
HERE = str(Path(__file__).parent)
sys.path.append(HERE)  # lets the tests of this folder share modules, which pytest's importlib mode does not by itself
PATIENCE_SECS = int(os.environ.get("TELHA_PATIENCE_SECS", "30"))
"""Catches a hang, and judges no speed. Under a sanitizer everything takes longer."""

PREAMBLE = """
import gc, os, signal, sys, threading
from telha_queue import JobSpec, JobState, Lease, Queue, QueueConfig, Scope
from telha_queue.errors import *
PATH = sys.argv[1]
ACME = Scope.named("acme")
QUICK = QueueConfig(durability="os")
def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())
"""

BREAK = """
import errno, mmap, time
from telha_queue.errors import *
control = open(os.environ["TELHA_BROKEN_DISK"], "r+b")
states = memoryview(mmap.mmap(control.fileno(), 12)).cast("i")
def broken(**what):
    states[0], states[1], states[2] = (what.get(name, 0) for name in ("write", "sync", "open"))
def kinds():
    found, after = set(), None
    while page := queue.list(limit=1000, after=after):
        found |= {job.kind for job in page}
        after = page[-1]
    return found
def until_it_writes(kind):
    tries = 0
    while True:
        try:
            queue.enqueue(ACME, kind)
            return tries
        except StorageError as error:
            assert error.outcome == "none", error
            tries += 1
            threading.Event().wait(0.1)
config = QueueConfig(durability=sys.argv[2], memtable_bytes=65536)
queue = Queue.open(PATH, config)
acknowledged, unknown = set(), set()
for n in range(300):
    queue.enqueue(ACME, f"before{n}", b"p" * 300)
    acknowledged.add(f"before{n}")
"""

FAMILIES = ("default", "jobs", "ids", "idempotency", "payloads", "results", "expiries", "data")
RESTORED = QueueConfig(durability="os", backoff_base_secs=0)

Child = Callable[..., "subprocess.Popen[str]"]


def environment() -> dict[str, str]:
    """What a child gets: this source tree, no settings from outside, and a stack trace when it dies of a signal."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TELHA_")}
    # Python 3.12 and later warn of a fork beside other threads, which is what the fork tests are about.
    quiet = "ignore:This process:DeprecationWarning"
    path = f"{ROOT}{os.pathsep}{HERE}"
    return {**kept, "PYTHONPATH": path, "PYTHONFAULTHANDLER": "1", "PYTHONWARNINGS": quiet}


@pytest.fixture
def run_and_kill() -> Callable[[list[object], int], list[str]]:
    """run_and_kill(command, lines): run Python until it has written so many lines, kill -9 it; all that it wrote."""

    def run(command: list[object], lines: int) -> list[str]:
        words = [sys.executable, *map(str, command)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment()) as child:
            assert child.stdout is not None
            told = []
            while len(told) < lines:
                told.append(child.stdout.readline())
                assert told[-1], f"it ended by itself with {child.wait()}"
            child.kill()
            told += child.stdout.readlines()
            assert child.wait() == -signal.SIGKILL
        return [line for line in told if line.endswith("\n")]  # the last one may be cut

    return run


@pytest.fixture
def start(path: Path) -> Iterator[Child]:
    """start(program): run a program in a child process, with PREAMBLE before it; killed after the test."""
    started: list[subprocess.Popen[str]] = []

    def run(
        program: str, *arguments: object, where: Path = path, variables: dict[str, str] | None = None
    ) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PREAMBLE + program, str(where), *map(str, arguments)]
        pipe = subprocess.PIPE
        env = environment() | (variables or {})
        child = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=env, start_new_session=True
        )
        started.append(child)
        return child

    yield run
    for child in started:
        kill_group(child)
        child.wait()
        for stream in (child.stdin, child.stdout, child.stderr):
            with contextlib.suppress(BrokenPipeError):
                stream.close()  # type: ignore[union-attr]


def kill_group(child: subprocess.Popen[str]) -> None:
    """Kill a child and what it has forked."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


@pytest.fixture
def ended(start: Child) -> Callable[..., list[str]]:
    """ended(program): run a program to its end and return the lines it wrote. Fails unless it ends as it should."""

    def run(program: str, *arguments: object, code: int = 0, complaint: str | None = "", **more: Any) -> list[str]:
        child = start(program, *arguments, **more)
        try:
            out, err = child.communicate(timeout=PATIENCE_SECS)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGABRT)  # faulthandler then says where it hangs, in its children too
            pytest.fail(f"the child hangs\n{''.join(child.communicate())}")
        assert child.returncode == code, f"ended with {child.returncode}, not {code}\n{out}\n{err}"
        assert "Fatal" not in err, err
        if complaint is not None:
            assert err.strip().endswith(complaint) if complaint else not err, err
        return out.splitlines()

    return run


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the queue of this test is."""
    return tmp_path / "queue"


class Ldb:
    """RocksDB's own tool, on a queue that is closed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def rows(self, family: str) -> dict[bytes, bytes]:
        """Every row of a column family."""
        # Between key and value stands " : " up to RocksDB 8, and " ==> " from 9 on.
        pairs = (re.split(" : | ==> ", line) for line in self._run(family, "scan").splitlines())
        return {_bytes(pair[0]): _bytes(pair[1]) for pair in pairs if len(pair) == 2}

    def all_rows(self) -> dict[str, dict[bytes, bytes]]:
        """Every row of every family."""
        return {family: self.rows(family) for family in FAMILIES}

    def put(self, family: str, key: bytes, value: bytes) -> None:
        """Write a row as it is."""
        assert "OK" in self._run(family, "put", f"0x{key.hex()}", f"0x{value.hex()}")

    def delete(self, family: str, key: bytes) -> None:
        """Remove a row."""
        assert "OK" in self._run(family, "delete", f"0x{key.hex()}")

    def _run(self, family: str, *words: str) -> str:
        command = ["ldb", f"--db={self.path}", f"--column_family={family}", "--hex", *words]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECS)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout


@pytest.fixture
def ldb(path: Path) -> Ldb:
    """RocksDB's own tool on the queue of this test; skips when it is too old to read what this build writes."""
    try:
        told = subprocess.run(["ldb", "--version"], capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        pytest.fail("RocksDB's tool `ldb` is missing: install Debian's package rocksdb-tools")
    tool, built = told.split()[-1], str(build_info()["rocksdb"])
    if int(tool.partition(".")[0]) < int(built.partition(".")[0]):
        pytest.skip(f"ldb {tool} is older than the RocksDB {built} that wrote the files")
    return Ldb(path)


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.strip().removeprefix("0x"))


@pytest.fixture
def restored(tmp_path, clock):
    """restored(): the queue that is made of the snapshot of this test, open; each call makes another one."""
    opened = []

    def make(at: ManualClock = clock) -> Queue:
        where = tmp_path / f"restored{len(opened)}"
        restore(tmp_path / "snapshot", where, clock=at)
        opened.append(Queue.open(where, RESTORED, at))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


@pytest.fixture
def on_broken_disk(tmp_path, ended, path):
    """on_broken_disk(program, *arguments): with BREAK in front of it."""
    library, control = tmp_path / "broken_disk.so", tmp_path / "control"
    source = Path(__file__).with_name("broken_disk.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    control.write_bytes(bytes(12))
    loaded_first = f"{os.environ.get('LD_PRELOAD', '')}:{library}"  # behind a sanitizer, if there is one
    more = {"LD_PRELOAD": loaded_first, "TELHA_BROKEN_DISK": control, "TELHA_BROKEN_UNDER": path}
    return lambda program, *arguments: ended(
        BREAK + program, *arguments, variables={name: str(value) for name, value in more.items()}
    )
