"""The crash and disk harnesses at CI scale. TELHA_TORTURE_SEED repeats a failure, which prints it."""

from __future__ import annotations

import pytest

from tests.torture import damage, io_faults, kill, kill_points, mounts, paths, power, runner, scarce, shim
from tests.torture.protocol import Harness

HARNESSES = (
    kill.HARNESS,
    kill_points.HARNESS,
    power.HARNESS,
    io_faults.HARNESS,
    scarce.DISK,
    scarce.DESCRIPTORS,
    paths.HARNESS,
    damage.HARNESS,
)
NEED_A_COMPILER = (kill_points.HARNESS, power.HARNESS, io_faults.HARNESS)


@pytest.mark.timeout(600)  # catches a hang of the harness itself; each process has a limit of its own
@pytest.mark.parametrize("harness", HARNESSES, ids=lambda harness: harness.name)
def test_the_queue_bears_it(harness: Harness) -> None:  # D2, D15
    if harness in NEED_A_COMPILER and shim.compiler() is None:
        pytest.skip("no C compiler")
    if harness is scarce.DISK and not mounts.are_permitted():
        pytest.skip("this process may not mount")
    runner.check(harness)
