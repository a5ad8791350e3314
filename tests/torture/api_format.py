"""T27: stores that earlier releases wrote are read as they are, and rows of a later format are left as they are.

Of every store in golden/ a copy is opened: all rows must be those of `expected.json`, byte for byte, and the copy must
go on working. Then, for each of its jobs by turns, the row is rewritten as a later release might have it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from telha_queue import JobRecord, JobState, Queue, build_info
from telha_queue.errors import JobError, UnsupportedVersion
from telha_queue.record import RecordFields
from telha_queue.testing import START_US, ManualClock
from tests.torture.api_golden import CONFIG, GOLDEN
from tests.torture.protocol import Harness, Request, Result

LDB_SECS = 60
LATER_BYTES = b"of a later release"
SAMPLED = 3
"""CI looks at one row of so many, by the seed; longer runs at all."""
LAST_ATTEMPT = 2**32 - 2


class Store:
    """A copy of a golden store, and RocksDB's own tool to look under it."""

    def __init__(self, name: str, folder: Path) -> None:
        self.path = folder / "store"
        self.expected: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text())
        shutil.copytree(GOLDEN / name, self.path)

    def open(self, at_us: int = START_US) -> Queue:
        return Queue.open(self.path, CONFIG, ManualClock(at_us))

    def put(self, key: bytes, value: bytes) -> None:
        """Write a job's row as it is."""
        assert "OK" in self._ldb("put", f"0x{key.hex()}", f"0x{value.hex()}")

    def row(self, key: bytes) -> bytes:
        """A job's row as it is."""
        return bytes.fromhex(self._ldb("get", f"0x{key.hex()}").strip().removeprefix("0x"))

    def _ldb(self, *words: str) -> str:
        command = ["ldb", f"--db={self.path}", "--column_family=jobs", "--hex", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=LDB_SECS).stdout


def read_as_it_is(store: Store) -> list[str]:
    """Every row, payload, scope and count is what the release that wrote it said."""
    faults = []
    with store.open() as queue:
        jobs = queue.list(limit=1000)
        rows = [[job.key.hex(), job.value.hex(), hashlib.sha256(job.payload).hexdigest()] for job in jobs]
        if rows != store.expected["rows"]:
            faults.append(f"{sum(a != b for a, b in zip(rows, store.expected['rows'], strict=False))} rows differ")
        if [[scope.key.hex(), scope.name] for scope in queue.scopes()] != store.expected["scopes"]:
            faults.append(f"the scopes are {queue.scopes()}")
        if {state.name: count for state, count in queue.counts().items()} != store.expected["counts"]:
            faults.append(f"the counts are {queue.counts()}")
        faults += [f"{job.job_id} is not found" for job in jobs if queue.find(job.job_id) != job]
    return faults


def goes_on(store: Store) -> list[str]:
    """Keys still stand for their jobs, leases still hold, everything can be done to its end."""
    faults = []
    with store.open() as queue:
        for job in queue.list(limit=1000):
            if job.idempotency_key is not None:
                again = queue.enqueue(job.scope, "other", idempotency_key=job.idempotency_key)
                faults += [] if again.job_id == job.job_id else [f"{job.idempotency_key} stands for another job"]
            if job.state == JobState.LEASED:
                queue.complete(queue.extend(job))
            if job.state == JobState.DEAD:
                queue.retry(job.scope, job.job_id)
        total = sum(queue.counts().values())
    with store.open(START_US + 10**12) as queue:
        waiting = sorted(queue.list(state=JobState.PENDING, limit=1000), key=lambda job: (job.priority, job.created_at))
        leases = queue.lease_many(None, 1000, worker_id="w")
        if [job.job_id for job in leases] != [job.job_id for job in waiting]:
            faults.append("jobs are leased in another order")
        faults += [str(done) for done in queue.complete_many(leases) if isinstance(done, JobError)]
        if queue.counts()[JobState.COMPLETED] != total or total != len(store.expected["rows"]):
            faults.append(f"of {total} jobs {queue.counts()}")
    return faults


def later_version(store: Store, job: JobRecord) -> list[str]:
    """One row of the next version: said so, passed by, left as it is."""
    value = bytes([job.value[0] + 1]) + job.value[1:] + LATER_BYTES
    store.put(job.key, value)
    faults = []
    with store.open(START_US + 10**12) as queue:
        for name, call in _calls_on(queue, job).items():
            try:
                call()
                faults.append(f"{name} of a row of a later version was not refused")
            except UnsupportedVersion:
                pass
        others = queue.list(limit=1000)
        if len(others) != len(store.expected["rows"]) - 1 or any(each.job_id == job.job_id for each in others):
            faults.append(f"{len(others)} others are listed")
        queue.reap_expired()
        leased = queue.lease_many(None, 1000, worker_id="w")
        if any(each.job_id == job.job_id for each in leased) or len(leased) < 10:
            faults.append(f"{len(leased)} were leased")
        queue.complete_many(leased)
    if store.row(job.key) != value:
        faults.append("the row of a later version was changed")
    return [f"{fault} ({job.state})" for fault in faults]


def later_field(store: Store, job: JobRecord) -> list[str]:
    """A field that a later release appended, behind all that this one knows, stays through every rewrite."""
    unset = [RecordFields._field_defaults.get(name) for name in RecordFields._fields[:-1]]
    store.put(job.key, _with(job.value, lambda fields: fields.extend([*unset[len(fields) :], LATER_BYTES])))
    with store.open(START_US + 10**12) as queue:
        queue.reap_expired()
    with store.open(START_US + 2 * 10**12) as queue:
        if queue.find(job.job_id).state == JobState.DEAD:
            queue.retry(job.scope, job.job_id)
        for lease in queue.lease_many(None, 1000, worker_id="w"):
            queue.complete(queue.checkpoint(lease, b"here"))
        after = queue.find(job.job_id)
    faults = [] if after.state == JobState.COMPLETED else [f"a job with a later field ended {after.state}"]
    return faults + ([] if _fields(after.value)[-1] == LATER_BYTES else ["a later field was lost"])


def last_attempt(store: Store, job: JobRecord) -> list[str]:
    """T16, where only a stored row can get: attempts and generation next to the largest that there can be."""

    def grow(fields: list[Any]) -> None:
        fields[6], fields[7], fields[12], fields[19] = LAST_ATTEMPT, 2**64 - 2, 2**32 - 1, 0

    if job.state != JobState.PENDING:
        return []
    store.put(job.key, _with(job.value, grow))
    with store.open(START_US + 10**12) as queue:
        lease = next(each for each in queue.lease_many(None, 1000, worker_id="w") if each.job_id == job.job_id)
        dead = queue.fail(lease, "error")
        if (dead.state, dead.attempts, dead.lease_generation) != (JobState.DEAD, 2**32 - 1, 2**64 - 1):
            return [f"the last attempt left {dead!r}, attempts {dead.attempts}"]
        retried = queue.retry(job.scope, job.job_id)
        again = queue.lease_many(None, 1000, worker_id="w")
    if retried.attempts != 0 or any(each.job_id == job.job_id for each in again):
        return ["a generation went beyond its end"]
    return []


def _calls_on(queue: Queue, job: JobRecord) -> dict[str, Callable[[], object]]:
    calls: dict[str, Callable[[], object]] = {
        "get": lambda: queue.get(job.scope, job.job_id),
        "find": lambda: queue.find(job.job_id),
        "retry": lambda: queue.retry(job.scope, job.job_id),
        "extend_any": lambda: queue.extend_any(job.job_id, "w", 1),
    }
    if job.state == JobState.LEASED:
        calls |= {"complete": lambda: queue.complete(job), "fail": lambda: queue.fail(job, "error")}
    return calls


def _fields(value: bytes) -> list[Any]:
    import msgpack  # type: ignore[import-untyped]

    fields: list[Any] = msgpack.unpackb(value[1:])
    return fields


def _with(value: bytes, change: Callable[[list[Any]], object]) -> bytes:
    import msgpack

    fields = _fields(value)
    change(fields)
    return value[:1] + bytes(msgpack.packb(fields))


CHANGES = (later_version, later_field, last_attempt)


def run(request: Request) -> Result:
    """Every store, as it is and with each of its rows as a later release might write it."""
    done, faults, counted = 0, [], {"stores": 0, "left out: ldb is too old": 0}
    with_ldb = ldb_fits()
    for golden in sorted(GOLDEN.glob("*.json")):
        counted["stores"] += 1
        rows = len(json.loads(golden.read_text())["rows"])
        cases: list[tuple[Callable[..., list[str]], int | None]] = [(read_as_it_is, None), (goes_on, None)]
        first, step = (request.seed % SAMPLED, SAMPLED) if request.scale == "ci" else (0, 1)
        changes = [(change, n) for change in CHANGES for n in range(first, rows, step)]
        counted["left out: ldb is too old"] += 0 if with_ldb else len(changes)
        for case, number in cases + (changes if with_ldb else []):
            with TemporaryDirectory(dir=request.folder) as folder:
                store = Store(golden.stem, Path(folder))
                found = case(store) if number is None else case(store, _job(store, number))
            faults += [f"{golden.stem}, {case.__name__} {number}: {fault}" for fault in found]
            done += 1
    return Result(done, counted=counted, faults=tuple(faults))


def _job(store: Store, number: int) -> JobRecord:
    with store.open() as queue:
        return queue.list(limit=1000)[number]


def ldb_fits() -> bool:
    """Whether the tool can read what this build writes."""
    told = subprocess.run(["ldb", "--version"], capture_output=True, text=True, check=True).stdout
    return int(told.split()[-1].partition(".")[0]) >= int(str(build_info()["rocksdb"]).partition(".")[0])


HARNESS = Harness(
    name="format",
    tests="T27, T16",
    about="stores of earlier releases are read byte for byte and go on working; rows of a later version are refused "
    "and left as they are, later fields are kept, and counters end where they must",
    unit="openings",
    ci=29,
    nightly=83,
    run=run,
)
