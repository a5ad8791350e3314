"""T23, T24, T25: runs the scenes of forks and endings, each in a process of its own, and looks at what it leaves."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from telha_queue import Queue
from telha_queue.errors import JobError
from tests.torture import api_child, api_endings, api_forking
from tests.torture.protocol import Harness, Request, Result

LIMIT_SECS = 120
FATAL = ("Fatal Python error", "Segmentation fault", "Assertion `")


class Ended:
    """What came of a number of programs."""

    def __init__(self) -> None:
        self.counted = Counter[str]()
        self.faults: list[str] = []

    def judge(self, what: str, code: int | None, wanted: int, told: str) -> None:
        """Note how a program ended."""
        self.counted["programs"] += 1
        self.counted["hangs"] += code is None
        self.counted["aborts"] += code is not None and code < 0 and code != wanted
        if code != wanted or any(text in told for text in FATAL):
            self.faults.append(f"{what} ended with {code}, not {wanted}: {told[-1500:]}")

    def result(self) -> Result:
        """All of it."""
        done, hangs, aborts = (self.counted.pop(name, 0) for name in ("programs", "hangs", "aborts"))
        acknowledged, lost = self.counted.pop("acknowledged", 0), self.counted.pop("lost", 0)
        return Result(
            done, acknowledged, lost, aborts=aborts, hangs=hangs, counted=dict(self.counted), faults=tuple(self.faults)
        )


def run_forks(request: Request) -> Result:
    """Every scene by turns; each checks for itself what it leaves."""
    ended, scenes = Ended(), tuple(api_forking.SCENES)
    for number in range(request.wanted):
        scene = scenes[number % len(scenes)]
        with TemporaryDirectory(dir=request.folder) as folder:
            code, _, told = api_child.program(["-m", "tests.torture.api_forking", scene, folder], LIMIT_SECS)
        ended.judge(scene, code, 0, told)
    return ended.result()


def run_endings(request: Request) -> Result:
    """Every scene by turns; then what its directory holds is compared with what it said was there for sure."""
    ended, scenes = Ended(), tuple(api_endings.CODES.items())
    for number in range(request.wanted):
        scene, wanted = scenes[number % len(scenes)]
        with TemporaryDirectory(dir=request.folder) as folder:
            words: list[object] = ["-m", "tests.torture.api_endings", scene.__name__, folder]
            code, out, told = api_child.program(words, LIMIT_SECS)
            ended.judge(scene.__name__, code, wanted, told)
            least = max((int(line) for line in out.splitlines() if line.isdigit()), default=0)
            ended.counted["acknowledged"] += least
            if (lost := least - whole_jobs(Path(folder) / "queue")) > 0:
                ended.counted["lost"] += lost
                ended.faults.append(f"{scene.__name__} lost {lost} of {least} jobs")
    return ended.result()


def whole_jobs(path: Path) -> int:
    """How many jobs a directory holds, each of them with its payload; -1 when it cannot be opened."""
    try:
        with Queue.open(path) as queue:
            page = queue.list(limit=1000)
            assert all(len(job.payload) == job.payload_bytes for job in page)
            return sum(queue.counts().values())
    except JobError:
        return -1


FORKS = Harness(
    name="forks",
    tests="T23",
    about="fork, spawn, forkserver, prefork, daemons and subprocesses beside a queue: a forked child is refused at "
    "once, the parent works on, and what is started afresh works",
    unit="programs",
    ci=len(api_forking.SCENES),
    nightly=50 * len(api_forking.SCENES),
    run=run_forks,
)
ENDINGS = Harness(
    name="endings",
    tests="T24, T25",
    about="ways for an interpreter to end and for a queue to be closed or become garbage while threads are at work: it "
    "ends as if closed, nobody crashes or hangs, and what was acknowledged is there",
    unit="programs",
    ci=len(api_endings.SCENES),
    nightly=50 * len(api_endings.SCENES),
    run=run_endings,
)
