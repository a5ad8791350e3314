"""The list of all harnesses, in the order in which they run. A new one is its module and its line here."""

from __future__ import annotations

from tests.torture import damage, io_faults, kill, kill_points, paths, power, scarce
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
)


def named(name: str) -> Harness:
    """The harness of that name; KeyError when there is none."""
    return {harness.name: harness for harness in HARNESSES}[name]
