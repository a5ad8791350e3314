"""Opens directories that may be damaged, in a process of its own that may die of it, and tells what is in them.

The process reads paths from standard input and answers each with one line of JSON; `Inspector` is its other end.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple
from uuid import UUID

from telha_queue import JobRecord, Queue, QueueConfig, Scope
from telha_queue.errors import JobError, JobNotFound
from tests.torture import children

PAGE_JOBS = 1000
PATIENCE_SECS = 60


class Seen(NamedTuple):
    """What a directory held."""

    jobs: dict[bytes, JobRecord]
    """All that `list` shows, by id."""
    error: str = ""
    """The name of the error that opening or a read of it raised; "died" or "hung" for the process."""
    reported: int = 0
    """Expected jobs that are missing and for which `find` raises an error of damage."""
    missing: int = 0
    """Expected jobs that are missing, and `find` says that there never was one."""
    complaints: tuple[str, ...] = ()
    """What does not agree with itself: counts, side rows, payloads; or does not work: a new job."""
    text: str = ""


class Inspector:
    """The other end. A process that dies is told by `Seen.error`, and the next path gets a new one."""

    def __init__(self, folder: Path) -> None:
        self._errors = folder / "inspector-errors"
        self._context: Any = None
        self._child: Any = None

    def __enter__(self) -> Inspector:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def look(self, path: Path, expected: Path | None = None) -> Seen:
        """Open a directory and read all of it. `expected` is a file of job ids in hex, a line each."""
        if self._child is None:
            self._context = children.started("inspector", [], self._errors)
            self._child = self._context.__enter__()
        hung = threading.Event()

        def ring() -> None:
            hung.set()
            self._child.kill()

        alarm = threading.Timer(PATIENCE_SECS, ring)
        alarm.start()
        self._child.stdin.write(f"{json.dumps([str(path), str(expected or '')])}\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        alarm.cancel()
        if not line:
            self._end()
            return Seen({}, "hung" if hung.is_set() else "died", text=self._errors.read_text(errors="replace")[-2000:])
        told = json.loads(line)
        jobs = [JobRecord(bytes.fromhex(key), bytes.fromhex(value)) for key, value in told.pop("jobs")]
        return Seen({job.job_id.bytes: job for job in jobs}, **{**told, "complaints": tuple(told["complaints"])})

    def _end(self) -> None:
        if self._child is not None:
            self._context.__exit__(None, None, None)
        self._child = None


def inspect(path: str, expected: str) -> dict[str, Any]:
    """Everything about one directory, as `Seen` has it."""
    told: dict[str, Any] = {"jobs": [], "error": "", "reported": 0, "missing": 0, "complaints": [], "text": ""}
    try:
        # Fresh settings, and with them a fresh cache, each time: a block that is cached hides damage.
        with Queue.open(path, QueueConfig(durability="os", memtable_bytes=64 * 1024)) as queue:
            jobs = _listed(queue)
            told["jobs"] = [(job.key.hex(), job.value.hex()) for job in jobs]
            _find_missing(queue, {job.job_id for job in jobs}, expected, told)
            _compare(queue, jobs, told["complaints"])
            _use(queue, told["complaints"])
    except JobError as error:
        told["error"], told["text"] = type(error).__name__, str(error)[:500]
    except BaseException as error:  # noqa: BLE001  # an error that is not the queue's own is what the parent looks for
        told["error"], told["text"] = f"untyped {type(error).__name__}", str(error)[:500]
    return told


def _listed(queue: Queue) -> list[JobRecord]:
    found: list[JobRecord] = []
    while page := queue.list(limit=PAGE_JOBS, after=found[-1] if found else None):
        found += page
    return found


def _find_missing(queue: Queue, there: set[UUID], expected: str, told: dict[str, Any]) -> None:
    for line in Path(expected).read_text().split() if expected else ():
        job_id = UUID(line)
        if job_id in there:
            continue
        try:
            queue.find(job_id)
        except JobNotFound:
            told["missing"] += 1
        except JobError:
            told["reported"] += 1
        else:
            told["complaints"].append(f"job {job_id} is found and not listed")


def _compare(queue: Queue, jobs: list[JobRecord], complaints: list[str]) -> None:
    counted = sum(queue.counts().values())
    if counted != len(jobs):
        complaints.append(f"{counted} jobs are counted and {len(jobs)} listed")
    created = [job.created_at for job in jobs]
    if len(set(created)) != len(created):
        complaints.append("two jobs have one created_at")
    for job in jobs:
        try:
            agree = queue.find(job.job_id) == job and len(job.payload) == job.payload_bytes
        except JobNotFound:
            agree = False
        if not agree:
            complaints.append(f"job {job.job_id}: rows do not agree")
            continue
        if job.idempotency_key is not None:
            again = queue.enqueue(job.scope, "never stored", idempotency_key=job.idempotency_key)
            if again != job:
                complaints.append(f"job {job.job_id}: its idempotency key names another")


def _use(queue: Queue, complaints: list[str]) -> None:
    scope = Scope.named("inspector")
    made = queue.enqueue(scope, "new")
    lease = queue.lease_next(scope, worker_id="inspector")
    if lease is None or lease.job_id != made.job_id or queue.complete(lease).lease_generation != 1:
        complaints.append("a new job cannot be enqueued, leased and completed")


def main() -> None:
    for line in sys.stdin:
        sys.stdout.write(f"{json.dumps(inspect(*json.loads(line)))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
