"""The list of all harnesses, in the order in which they start: those that take longest go first.

A new one is its module and its line here.
"""

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
    native,
    paths,
    power,
    race_contention,
    race_schedules,
    race_wakeups,
    scarce,
    suite,
)
from tests.torture.protocol import Harness

HARNESSES: tuple[Harness, ...] = (
    io_faults.HARNESS,
    race_contention.HARNESS,
    model_machine.HARNESS,
    kill.HARNESS,
    suite.SANITIZED_SUITE,
    suite.AGAIN,
    suite.BACKUPS,
    native.FUZZ,
    kill_points.HARNESS,
    power.HARNESS,
    damage.HARNESS,
    api_mutation.HARNESS,
    api_processes.FORKS,
    api_processes.ENDINGS,
    scarce.DISK,
    clock_soak.HARNESS,
    race_wakeups.HARNESS,
    native.RACES_HARNESS,
    model_backlog.TOMBSTONES,
    race_schedules.HARNESS,
    clock_jumps.HARNESS,
    model_backlog.GATED,
    scarce.DESCRIPTORS,
    paths.HARNESS,
    clock_backoff.HARNESS,
    api_format.HARNESS,
)


def named(name: str) -> Harness:
    """The harness of that name; KeyError when there is none."""
    return {harness.name: harness for harness in HARNESSES}[name]
