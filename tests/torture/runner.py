"""Runs one harness in a folder of its own. The command and the test files go through here, so they do the same."""

from __future__ import annotations

import os
import random
import shutil
import time
import traceback
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from tests.torture.protocol import Harness, Request, Result

MEMORY = Path("/dev/shm")
MEMORY_BYTES = 2**30
SEED_VARIABLE = "TELHA_TORTURE_SEED"
MAX_FAULTS = 20


def new_seed() -> int:
    """The seed in the environment, so that a failed test can be run again, or any."""
    return int(os.environ.get(SEED_VARIABLE) or random.SystemRandom().randrange(2**32))


def default_folder() -> Path:
    """In memory where there is room: a store takes a dozen fsyncs to open, and thousands are opened."""
    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_BYTES
    return MEMORY if has_room else Path(gettempdir())


def run(
    harness: Harness,
    scale: str,
    seed: int,
    *,
    wanted: int | None = None,
    folder: Path | None = None,
    keep: Path | None = None,
) -> Result:
    """Run a harness to its end; `wanted` overrides how many cycles."""
    if wanted is None and harness.wanted(scale) == 0:
        return Result(0, skipped=f"not at scale {scale}")
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f"telha-{harness.name}-", dir=folder or default_folder()) as own:
        request = Request(scale, harness.wanted(scale) if wanted is None else wanted, seed, Path(own), keep)
        started = time.perf_counter()
        try:
            result = harness.run(request)
        except Exception as error:  # noqa: BLE001  # a harness that breaks must not keep the others from running
            result = Result(0, faults=(f"the harness broke: {''.join(traceback.format_exception(error))}",))
        return result._replace(seconds=time.perf_counter() - started)


def told(harness: Harness, result: Result, seed: int) -> str:
    """A result for a terminal; with the faults and the seed when there are any."""
    counts = {
        harness.unit: result.cycles,
        "acknowledged": result.acknowledged,
        "lost": result.lost,
        "invented": result.invented,
        "double leases": result.double_leases,
        "aborts": result.aborts,
        "hangs": result.hangs,
        **result.counted,
    }
    line = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    verdict = result.verdict + ("" if result.passed else f", seed {seed}")
    faults = "".join(f"\n    {fault}" for fault in result.faults[:MAX_FAULTS])
    return f"{harness.name} ({harness.tests}): {verdict} in {result.seconds:.0f} s: {line}{faults}"


def check(harness: Harness, *, scale: str = "ci", wanted: int | None = None) -> Result:
    """For a test: run it, and fail with the seed and all that was found."""
    seed = new_seed()
    result = run(harness, scale, seed, wanted=wanted)
    assert result.passed, f"{SEED_VARIABLE}={seed}\n{told(harness, result, seed)}"
    return result
