"""A harness's work in a process of its own: for memory that is nobody else's, and for crashes that end only it.

The child is the same module run as a program. It writes its answer as JSON, a dict with what `Result` has.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.torture.protocol import Result

ROOT = Path(__file__).resolve().parents[2]
NOTHING: Mapping[str, str] = MappingProxyType({})


def environment(root: Path = ROOT) -> dict[str, str]:
    """That source tree, no settings from outside, and a trace of the stack when a process dies of a signal."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TELHA_")}
    quiet = "ignore:This process:DeprecationWarning"  # Python 3.12 and later warn of a fork beside threads
    return {**kept, "PYTHONPATH": str(root), "PYTHONFAULTHANDLER": "1", "PYTHONWARNINGS": quiet}


def result_of(module: str, words: list[object], limit_secs: float) -> Result:
    """Run a module with arguments and take its answer; a signal or a hang is a fault as well."""
    code, out, err = program(["-m", module, *words], limit_secs)
    if code is None:
        return Result(0, hangs=1, faults=(f"{module} was not over after {limit_secs} s: {err[-3000:]}",))
    if code:
        return Result(0, aborts=int(code < 0), faults=(f"{module} ended with {code}: {err[-3000:]}",))
    told: dict[str, Any] = json.loads(out)
    return Result(**{**told, "faults": tuple(told["faults"])})


def program(
    words: list[object], limit_secs: float, *, root: Path = ROOT, more: Mapping[str, str] = NOTHING
) -> tuple[int | None, str, str]:
    """Run Python; its exit code, None when its time was over, and what it wrote. Ends all that it has started.

    `root` is the source tree to run; `more` is put into the environment.
    """
    command = [sys.executable, *map(str, words)]
    pipe = subprocess.PIPE
    variables = {**environment(root), **more}
    child = subprocess.Popen(
        command, cwd=root, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=variables, start_new_session=True
    )
    code: int | None = None
    try:
        out, err = child.communicate(timeout=limit_secs)
        code = child.returncode
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGABRT)  # faulthandler then says where it hangs
        out, err = child.communicate()
    return code, out, err


def answer(result: Result) -> None:
    """The child's last word."""
    json.dump({**result._asdict(), "counted": dict(result.counted)}, sys.stdout)
