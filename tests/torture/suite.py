"""T19, T23 to T25, T28: the project's own tests, again and again, and once in a copy that is built with sanitizers.

What a test does once for every change depends on how threads happen to run, so some are worth a round more.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

from tests.torture import api_child
from tests.torture.protocol import Harness, Request, Result, total

ROCKS = "tests/rocks"
ENDING_TESTS = tuple(f"{ROCKS}/test_{name}.py" for name in ("fork", "exit", "close"))
BACKUP_TESTS = tuple(f"{ROCKS}/test_{name}.py" for name in ("snapshot", "snapshot_ends", "restore_fence"))
SANITIZED_TESTS = ("tests/unit", "tests/engine", ROCKS)
MEASURES_MEMORY = f"{ROCKS}/test_fairness.py::test_windows_stay_within_their_bound_while_nobody_leases"
"""A sanitizer keeps what is freed for a while."""
SANITIZERS = (
    "address,alignment,bool,bounds,builtin,enum,integer-divide-by-zero,nonnull-attribute,null,object-size,"
    "pointer-overflow,return,returns-nonnull-attribute,shift,signed-integer-overflow,unreachable,vla-bound"
)
"""All of `undefined` but vptr, which looks at memory through a pipe: wrong in a process without descriptors."""
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=600")
ROUND_SECS = 1800
COPY = api_child.ROOT / "build" / "sanitized"
NOT_COPIED = ("build", "dist", ".venv", ".git", "*.so", "__pycache__", ".*_cache", ".hypothesis", "*.egg-info")


def run_again(files: tuple[str, ...], request: Request) -> Result:
    """So many rounds of the tests in these files."""
    rounds = [_judged(f"round {number}", files, api_child.ROOT, {}) for number in range(request.wanted)]
    return total(rounds)


def run_sanitized(request: Request) -> Result:
    """Build a copy of everything with sanitizers, beside the working build, and run its tests there.

    Python is not built so: the runtime of AddressSanitizer is loaded first. What it says of processes whose output
    nobody reads is found in its files; the other sanitizer ends the process that it reports.
    """
    runtime = subprocess.run(["c++", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout
    if not os.path.isabs(runtime.strip()):
        return Result(0, skipped="this compiler has no AddressSanitizer")
    shutil.rmtree(COPY / "tests", ignore_errors=True)  # else tests that are gone from here would stay there
    shutil.copytree(api_child.ROOT, COPY, ignore=shutil.ignore_patterns(*NOT_COPIED), dirs_exist_ok=True)
    build = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    subprocess.run(build, cwd=COPY, env={**os.environ, "TELHA_SANITIZE": SANITIZERS}, check=True)
    reports = request.folder / "reports"
    reports.mkdir()
    options = f"log_path={reports}/report:detect_leaks=0:halt_on_error=1"
    more = {
        "LD_PRELOAD": runtime.strip(),
        "ASAN_OPTIONS": options,
        "UBSAN_OPTIONS": f"{options}:print_stacktrace=1",
        "TELHA_PATIENCE_SECS": "300",
    }
    result = _judged("sanitized", (*SANITIZED_TESTS, f"--deselect={MEASURES_MEMORY}"), COPY, more)
    told = [file.read_text() for file in sorted(reports.iterdir())]
    found = tuple(text[:3000] for text in told)
    return result._replace(
        cycles=result.counted["tests passed"],
        counted={**result.counted, "reports": len(told)},
        faults=result.faults + found,
    )


def _judged(what: str, files: tuple[str, ...], root: Path, more: dict[str, str]) -> Result:
    code, out, told = api_child.program([*PYTEST, *files], ROUND_SECS, root=root, more=more)
    passed = re.search(r"(\d+) passed", out)
    faults = (f"{what} ended with {code}: {out[-3000:]} {told[-1000:]}",) if code != 0 else ()
    return Result(
        1,
        aborts=int(code is not None and code < 0),
        hangs=int(code is None),
        counted={"tests passed": int(passed[1]) if passed else 0},
        faults=faults,
    )


AGAIN = Harness(
    name="suite",
    tests="T23, T24, T25",
    about="the project's own tests of forks, exits and closing, run again and again",
    unit="rounds",
    ci=0,
    nightly=4,
    planned=50,
    lowered="a round takes 90 s; the scenes of `endings` and `forks` run 50 times each",
    run=partial(run_again, ENDING_TESTS),
)
BACKUPS = Harness(
    name="backups",
    tests="T28",
    about="the project's own tests of snapshots taken and restored beside workers at work, killed meanwhile, and of "
    "the fence: a snapshot is a prefix, the lock is held after it, a restored queue takes no lease from before",
    unit="rounds",
    ci=0,
    nightly=50,
    run=partial(run_again, BACKUP_TESTS),
)
SANITIZED_SUITE = Harness(
    name="sanitized",
    tests="T19",
    about="the project's own tests of codec, engines and RocksDB's store, with the extensions built with "
    "AddressSanitizer and UndefinedBehaviorSanitizer: no report, from a child process either",
    unit="tests",
    ci=0,
    nightly=1,
    run=run_sanitized,
)
