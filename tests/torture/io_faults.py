"""T4: the Nth call that reaches the file system fails, for every N of a scripted run; once, or from then on.

The process must live on: errors are typed, reads go on, nothing hangs; opened again without faults, in another
process, the queue holds all that was acknowledged. A run has three sessions, so that opening and closing fail too, and
what comes after a fault that has passed.
"""

from __future__ import annotations

from collections import Counter

from tests.torture import children, trace
from tests.torture.ledger import FaultyLedger, sort_out
from tests.torture.protocol import Harness, Request, Result, total
from tests.torture.shim import Shim

FAULTS = (("EIO", 1), ("ENOSPC", 1), ("EIO", 0), ("ENOSPC", 0))
"""Error, and how often; 0 is for good."""
MODES = ("sync", "group", "os")
STEPS, SESSIONS = 40, 3
MEMTABLE_BYTES = 64 * 1024
TYPED = ("StorageError", "StorageFull", "CorruptionError", "CorruptRecord", "InvalidPath")
"""What a failing disk may be told as. InvalidPath is for a directory that cannot be looked at or made."""


def run(request: Request) -> Result:
    """Fail `request.wanted` calls, spread evenly over all calls, faults and modes."""
    share = max(1, request.wanted // len(MODES))
    return total(_Script(request, mode).run(share) for mode in MODES)


class _Script:
    """One run of the workload, with another call failing each time."""

    def __init__(self, request: Request, mode: str) -> None:
        self._folder = request.folder / mode
        self._root = self._folder / "root"
        self._root.mkdir(parents=True)
        self._errors = self._folder / "errors"
        self._shim = Shim(self._folder, self._root)
        self._chance = request.chance(mode)
        self._mode = mode
        self._words = [mode, MEMTABLE_BYTES, f"{request.seed}.{mode}", 1, STEPS, SESSIONS]

    def run(self, count: int) -> Result:
        file = self._folder / "trace"
        words = [self._root / "first", *self._words]
        children.ended("workload", words, self._errors, self._shim.environment(trace=file))
        calls = len(trace.kinds(file))
        points = [(at, *fault) for at in range(1, calls + 1) for fault in FAULTS]
        step = len(points) / count
        offset = self._chance.random() * step
        chosen = [points[int(n * step + offset) % len(points)] for n in range(count)]
        results = [self._failed_at(n, *point) for n, point in enumerate(chosen)]
        children.remove(self._folder)
        return total(results)

    def _failed_at(self, number: int, at: int, error: str, times: int) -> Result:
        path = self._root / f"queue{number}"
        environment = self._shim.environment(at=at, action=error, times=times)
        child = children.ended("workload", [path, *self._words], self._errors, environment)
        ledger = FaultyLedger()
        ledger.take(child.lines)
        failed = next((line for line in child.errors.splitlines() if line.startswith("shim:")), "not reached")
        is_full = error == "ENOSPC" and ", read of " not in failed  # no disk says so of a read
        self._judge(child, ledger, is_full, times)
        if path.exists():
            ledger.hold(path)
        children.remove(path)
        where = f"mode {self._mode}, call {at}, {error} {'once' if times else 'for good'} ({failed})"
        return Result(
            1,
            ledger.calls,
            *sort_out(ledger.wrong),
            aborts=child.aborted,
            hangs=child.hung,
            counted=Counter(error for _, error in set(ledger.errors)),
            faults=tuple(f"{where}: {text}" for text in ledger.wrong),
        )

    def _judge(self, child: children.Ended, ledger: FaultyLedger, is_full: bool, times: int) -> None:
        if child.hung or child.aborted or child.code != 0:
            what = "hangs" if child.hung else f"ended with {child.code}"
            ledger.wrong.append(f"{what}: {_stack(child.errors)}")
        elif not ledger.is_done:
            ledger.wrong.append("the process ended early")
        for what, error in ledger.errors:
            if error not in TYPED or (is_full and error == "StorageError"):
                ledger.wrong.append(f"{what} raised {error}")
        if times and (sick := _sick_sessions(child.lines)) > 1:
            ledger.wrong.append(f"{sick} sessions failed after one fault: opening again did not heal it")


def _sick_sessions(lines: list[str]) -> int:
    """In how many sessions something was refused."""
    sick, session = set(), 0
    for line in lines:
        words = line.split()
        session += words[0] == "opening"
        if words[0] == "refused" or words[1:2] == ["err"]:
            sick.add(session)
    return len(sick)


def _stack(errors: str) -> str:
    kept = [line.strip() for line in errors.splitlines() if "Assert" in line or "File" in line]
    return " / ".join(kept[:6])


HARNESS = Harness(
    name="io-faults",
    tests="T4",
    about="the Nth call that reaches the file system fails with EIO or ENOSPC, once or from then on: no abort, no "
    "hang, typed errors, reads go on, and nothing acknowledged is lost once the fault is gone.",
    unit="faults",
    ci=60,
    nightly=3000,
    run=run,
)
