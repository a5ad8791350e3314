"""Processes that are started, told apart from those that hang or abort, and never left behind.

Always a new program (exec): RocksDB does not survive a fork.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECS = 60
"""Catches a hang, and judges no speed: the machine may be busy."""

Words = list[object]
Environment = Mapping[str, str]
NOTHING: Environment = MappingProxyType({})


class Ended(NamedTuple):
    """How a process ended, and what it wrote."""

    code: int
    lines: list[str]
    """Whole lines only: the last one may be cut."""
    errors: str
    hung: bool

    @property
    def aborted(self) -> bool:
        """It died of a signal that nobody sent: an assertion, a bad access."""
        return not self.hung and self.code < 0 and self.code != -signal.SIGKILL


def environment(more: Environment = NOTHING) -> dict[str, str]:
    """What a child gets: this source tree, no settings from outside, and a stack trace when it dies of a signal."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TELHA_")}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONFAULTHANDLER": "1", **more}


@contextmanager
def started(module: str, words: Words, errors: Path, more: Environment = NOTHING) -> Iterator[subprocess.Popen[str]]:
    """Run a module of this package in a session of its own; killed at the end of the block, whatever happened.

    It starts without `site`, which a queue does not need and which takes its time. `errors` is a file for what it
    writes to standard error.
    """
    command = [sys.executable, "-S", "-m", f"tests.torture.{module}", *map(str, words)]
    with errors.open("w") as error_file:
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=error_file,
            text=True,
            env=environment(more),
            start_new_session=True,
        )
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        for stream in (child.stdin, child.stdout):
            if stream is not None and not stream.closed:
                _close(stream.close)


def ended(module: str, words: Words, errors: Path, more: Environment = NOTHING) -> Ended:
    """Run it to its end, or to the end of patience."""
    hung = False
    with started(module, words, errors, more) as child:
        try:
            out, _ = child.communicate(timeout=PATIENCE_SECS)
        except subprocess.TimeoutExpired:
            hung = True
            child.send_signal(signal.SIGABRT)  # faulthandler then says where it hangs
            out, _ = child.communicate()
    return Ended(child.returncode, _whole_lines(out), errors.read_text(errors="replace"), hung)


def killed(module: str, words: Words, errors: Path, lines: int, more: Environment = NOTHING) -> Ended:
    """Run it until it has written so many lines, then kill -9. An end before that is its own."""
    told: list[str] = []
    with started(module, words, errors, more) as child:
        assert child.stdout is not None
        watch = _Alarm(child)
        while len(told) < lines and (line := child.stdout.readline()):
            told.append(line)
        watch.stop()
        child.kill()
        told += child.stdout.readlines()
        code = child.wait()
    return Ended(code, _whole_lines("".join(told)), errors.read_text(errors="replace"), watch.rang)


class _Alarm:
    """Kills a child that has not written what it was to write in time."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self.rang = False
        self._child = child
        self._timer = threading.Timer(PATIENCE_SECS, self._ring)
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> None:
        self._timer.cancel()

    def _ring(self) -> None:
        self.rang = True
        self._child.kill()


def remove(folder: Path) -> None:
    """Take away what a cycle left."""
    shutil.rmtree(folder, ignore_errors=True)


def _whole_lines(text: str) -> list[str]:
    return text.splitlines() if text.endswith("\n") else text.splitlines()[:-1]


def _close(close: Callable[[], None]) -> None:
    with suppress(BrokenPipeError):
        close()
