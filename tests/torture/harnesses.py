"""The list of all harnesses, in the order in which they run. A new one is its module and its line here."""

from __future__ import annotations

from tests.torture import (
    api_format,
    api_mutation,
    api_processes,
    clock_backoff,
    clock_jumps,
    clock_soak,
    damage,
    io_faults,
    kill,
    kill_points,
    model_backlog,
    model_machine,
    paths,
    power,
    race_contention,
    race_schedules,
    race_wakeups,
    scarce,
)
from tests.torture.protocol import Harness

HARNESSES: tuple[Harness, ...] = (
    kill.HARNESS,
    kill_points.HARNESS,
    power.HARNESS,
    io_faults.HARNESS,
    scarce.DISK,
    scarce.DESCRIPTORS,
    paths.HARNESS,
    damage.HARNESS,
    model_machine.HARNESS,
    race_contention.HARNESS,
    race_schedules.HARNESS,
    race_wakeups.HARNESS,
    clock_soak.HARNESS,
    clock_jumps.HARNESS,
    clock_backoff.HARNESS,
    api_mutation.HARNESS,
    model_backlog.TOMBSTONES,
    model_backlog.GATED,
    api_processes.FORKS,
    api_processes.ENDINGS,
    api_processes.SUITE_AGAIN,
    api_format.HARNESS,
)


def named(name: str) -> Harness:
    """The harness of that name; KeyError when there is none."""
    return {harness.name: harness for harness in HARNESSES}[name]
