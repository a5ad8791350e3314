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
    native.FUZZ,
    api_mutation.HARNESS,
    power.HARNESS,
    kill_points.HARNESS,
    damage.HARNESS,
    race_schedules.HARNESS,
    suite.AGAIN,
    scarce.DISK,
    suite.BACKUPS,
    api_processes.ENDINGS,
    api_processes.FORKS,
    clock_soak.HARNESS,
    model_backlog.TOMBSTONES,
    clock_jumps.HARNESS,
    native.RACES_HARNESS,
    race_wakeups.HARNESS,
    model_backlog.GATED,
    scarce.DESCRIPTORS,
    paths.HARNESS,
    clock_backoff.HARNESS,
    api_format.HARNESS,
)


def named(name: str) -> Harness:
    """The harness of that name; KeyError when there is none."""
    return {harness.name: harness for harness in HARNESSES}[name]
