"""T9: random lives of a queue on disk beside one in memory, as many steps as are asked for; a failure is made small."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tests.torture.model_life import Life
from tests.torture.model_steps import Step, draw
from tests.torture.protocol import Harness, Request, Result

LONGEST = 300
SHRINKING_RUNS = 300


def run(request: Request) -> Result:
    """Live until the steps are done; the first failing life ends it."""
    done = acknowledged = lives = crashes = reopened = 0
    while done < request.wanted:
        steps = steps_of(request.chance("life", lives))
        crashes += sum(step.verb == "crash" for step in steps)
        reopened += sum(step.verb == "reopen" for step in steps)
        told, count = live(request.folder, steps)
        done, lives, acknowledged = done + len(steps), lives + 1, acknowledged + count
        if told is not None:
            small, told = shrunk(request.folder, steps, told)
            listed = "\n        ".join(f"{step.verb}{step.words}"[:300] for step in small)
            fault = f"life {lives - 1} of seed {request.seed}: {told}\n      after\n        {listed}"
            return Result(done, acknowledged, counted={"lives": lives}, faults=(fault,))
    counted = {"lives": lives, "crashes": crashes, "reopenings": reopened}
    return Result(done, acknowledged, counted=counted)


def steps_of(chance: Random) -> list[Step]:
    """A life, which always ends with a crash."""
    return [draw(chance) for _ in range(chance.randint(20, LONGEST))] + [Step("crash", ())]


def live(folder: Path, steps: list[Step]) -> tuple[str | None, int]:
    """What went wrong, if anything did, and how many calls were acknowledged."""
    with TemporaryDirectory(dir=folder) as own:
        life = Life(Path(own))
        try:
            for step in steps:
                life.do(step)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is what was looked for
            return f"{type(error).__name__}: {error}"[:2000], life.acknowledged
        finally:
            life.close()
        return None, life.acknowledged


def shrunk(folder: Path, steps: list[Step], told: str) -> tuple[list[Step], str]:
    """A part of the life that still fails, with what it says: halves, quarters and so on are left out by turns."""
    runs, size = 0, max(len(steps) // 2, 1)
    while runs < SHRINKING_RUNS:
        smaller = False
        for start in range(0, len(steps), size):
            shorter = steps[:start] + steps[start + size :]
            now_told, _ = live(folder, shorter)
            runs += 1
            if now_told is not None:
                steps, told, smaller = shorter, now_told, True
                break
        if not smaller:
            if size == 1:
                break
            size //= 2
    return steps, told


HARNESS = Harness(
    name="model",
    tests="T9",
    about="random lives of a queue on disk and one in memory, with crashes, restarts and clock jumps; after each step "
    "both hold the same rows, and the promises hold of them",
    unit="steps",
    ci=5_000,
    nightly=1_000_000,
    run=run,
)
