"""T16: the arithmetic of backoff and limits at its edges: delays saturate, a setting that cannot be is refused.

What is expected is computed here with Python's own whole numbers, which have no end.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

from telha_queue import JobRecord, JobState, Lease, Queue, QueueConfig, Scope
from telha_queue.errors import ConfigError, InvalidArgument, LeaseConflict
from telha_queue.testing import START_US, ManualClock, memory_queue
from tests.torture.protocol import Harness, Request, Result
from tests.torture.race_rules import LAST_US

ACME = Scope.named("acme")
TEN_YEARS = 315_360_000
BASES = (0, 1, 10, 3600, TEN_YEARS)
FACTORS = (1, 2, 4, 2**16, 2**32 - 1)
CAPS = (0, 1, 59, 3600, TEN_YEARS)
STARTS_US = (0, START_US, LAST_US - 5_000_000)
SETTINGS = tuple(product(BASES, FACTORS, CAPS, STARTS_US))
MOST_ATTEMPTS = 70
NAN, INFINITE = float("nan"), float("inf")
NO_NUMBERS: tuple[Any, ...] = (-1, 2**63, 2**64, 10**30, NAN, INFINITE, -INFINITE, True, "1", b"1", None, 1j)
WRONG: dict[str, tuple[Any, ...]] = {
    "backoff_base_secs": (*NO_NUMBERS, 1.5, TEN_YEARS + 1),
    "backoff_factor": (*NO_NUMBERS, 0, 2.0, 2**32),
    "backoff_cap_secs": (*NO_NUMBERS, 1.5, TEN_YEARS + 1),
    "max_attempts": (*NO_NUMBERS, 0, 3.0, 2**32),
    "lease_ttl_secs": (*NO_NUMBERS, 0, 0.0009, TEN_YEARS + 1),
    "lease_grace_secs": (*NO_NUMBERS, -0.1, TEN_YEARS + 1),
    "reaper_interval_secs": (*NO_NUMBERS, 0, TEN_YEARS + 1),
    "max_payload_bytes": (*NO_NUMBERS, 1.0, 2**26 + 1),
    "memtable_bytes": (*NO_NUMBERS, 0, 65_535, 2**34 + 1),
    "block_cache_bytes": (*NO_NUMBERS, 2**40 + 1),
    "window_jobs": (*NO_NUMBERS, 15, 2**20 + 1),
    "group_sync_ms": (*NO_NUMBERS, 0, 60_001),
    "durability": ("", "SYNC", "none", 1, None, b"sync"),
    "backoff_base_secs_by_kind": (*({"x": base} for base in (*NO_NUMBERS, 1.5)), 7, [("x", 1)], {"": 1}, {"\0": 1}),
}


def run(request: Request) -> Result:
    """Settings by turns, on disk and in memory; wrong ones, and the ends of what arguments may be, each time once."""
    faults: list[str] = []
    order = list(SETTINGS)
    request.chance("settings").shuffle(order)
    failures = 0
    for number in range(request.wanted):
        base, factor, cap, start_us = order[number % len(order)]
        config = QueueConfig(
            durability="os", memtable_bytes=65_536, max_attempts=MOST_ATTEMPTS, backoff_base_secs=base,
            backoff_factor=factor, backoff_cap_secs=cap, backoff_base_secs_by_kind={"own": 77},
        )  # fmt: skip
        clock = ManualClock(start_us)
        on_disk = number % 4 == 0
        folder = request.folder / f"queue{number}"
        with Queue.open(folder, config, clock) if on_disk else memory_queue(config, clock) as queue:
            for kind, own in (("usual", (base, cap)), ("own", (77, max(77, cap)))):
                found = delay_faults(queue, clock, kind, *own, factor)
                faults += [f"{order[number % len(order)]}, {kind}: {text}" for text in found]
                failures += MOST_ATTEMPTS
    faults += wrong_settings() + edges(request.folder)
    wrong = sum(map(len, WRONG.values()))
    return Result(request.wanted, failures, counted={"wrong settings": wrong}, faults=tuple(faults[:20]))


def delay_faults(queue: Queue, clock: ManualClock, kind: str, base: int, cap: int, factor: int) -> list[str]:
    """Fail a job until it is dead; each delay is what the formula says."""
    queue.enqueue(ACME, kind)
    for attempts in range(1, MOST_ATTEMPTS + 1):
        lease = queue.lease_next(ACME, kind, worker_id="w")
        if lease is None:
            return [f"not due after {attempts - 1} attempts"]
        now_us = lease.events[-1].at
        failed = queue.fail(lease, "error")
        if failed.attempts != attempts:
            return [f"{failed.attempts} attempts, should be {attempts}"]
        if attempts == MOST_ATTEMPTS:
            return [] if failed.state == JobState.DEAD else ["alive without attempts left"]
        gate_us = min(now_us + min(base * factor ** (attempts - 1), cap) * 1_000_000, LAST_US)
        if failed.not_before != gate_us:
            return [f"after {attempts} attempts gated until {failed.not_before}, should be {gate_us}"]
        clock.set_us(max(clock(), gate_us))
    return []


def wrong_settings() -> list[str]:
    """Every wrong value is refused when the settings are built, from arguments and from the environment."""
    faults = []
    for field, values in WRONG.items():
        for value in values:
            try:
                QueueConfig(**{field: value})
                faults.append(f"{field}={value!r} was accepted")
            except ConfigError:
                pass
            text = str(value)
            try:
                QueueConfig.from_env({f"TELHA_JOBS_{field.upper()}": text})
                if text != "1":  # which is right in the environment, where all is text
                    faults.append(f"{field}={text!r} was accepted from the environment")
            except ConfigError:
                pass
    return faults


def edges(folder: Path) -> list[str]:
    """The largest and smallest arguments that are allowed work, and one more is refused."""
    clock = ManualClock()
    faults: list[str] = []
    with Queue.open(folder / "edges", QueueConfig(durability="os"), clock) as queue:
        job = queue.enqueue(ACME, "x", max_attempts=2**32 - 1, priority=255)
        lease = queue.lease_next(ACME, worker_id="w", lease_ttl_secs=0.000001)
        assert isinstance(lease, JobRecord)
        if lease.lease_deadline != clock() + 1 or lease.max_attempts != 2**32 - 1:
            faults.append("the shortest lease or the highest ceiling was not kept")
        if queue.extend(lease, lease_ttl_secs=TEN_YEARS).lease_deadline != clock() + TEN_YEARS * 1_000_000:
            faults.append("the longest lease was not kept")
        for generation in (0, 2, 2**63, 2**64 - 1):
            try:
                queue.complete(Lease(ACME, job.job_id, "w", generation))
                faults.append(f"generation {generation} was taken for 1")
            except LeaseConflict:
                pass
        too_much = {
            "generation": lambda: queue.complete(Lease(ACME, job.job_id, "w", 2**64)),
            "ttl": lambda: queue.extend(lease, lease_ttl_secs=TEN_YEARS + 1),
            "no ttl": lambda: queue.extend(lease, lease_ttl_secs=4e-7),
            "delay": lambda: queue.release(lease, delay_secs=TEN_YEARS + 1),
            "wait": lambda: queue.lease_next(ACME, worker_id="w", wait_secs=TEN_YEARS + 1),
            "gate": lambda: queue.enqueue(ACME, "x", not_before=clock() + TEN_YEARS * 1_000_000 + 1),
            "ceiling": lambda: queue.enqueue(ACME, "x", max_attempts=2**32),
            "no ceiling": lambda: queue.enqueue(ACME, "x", max_attempts=0),
            "priority": lambda: queue.enqueue(ACME, "x", priority=256),
            "limit": lambda: queue.list(limit=1001),
            "jobs": lambda: queue.lease_many(ACME, 1001, worker_id="w"),
        }
        for what, call in too_much.items():
            try:
                call()
                faults.append(f"{what}: one too many was accepted")
            except InvalidArgument:
                pass
    return faults


HARNESS = Harness(
    name="backoff",
    tests="T16",
    about="delays of 70 attempts for every mixture of extreme settings, as whole numbers without end have it; settings "
    "that cannot be are refused when they are built",
    unit="settings",
    ci=len(SETTINGS) // 3,
    nightly=len(SETTINGS) * 2,
    run=run,
)
