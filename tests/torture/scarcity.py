"""A process whose disk or whose descriptors run out; it tells what workload.py tells.

It writes until it is refused, reads, gets what it lacked, closes, opens again, and works on.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable
from contextlib import suppress

from telha_queue import Queue, QueueConfig
from telha_queue.errors import JobError
from tests.rocks.kill_worker import SCOPES, tell
from tests.torture.workload import Worker

MOST_JOBS = 12_000
FEW_BYTES = 2 * 2**20
"""What is written where the disk is not to be filled by jobs: it must have room for all of it in log and tables."""
STEPS_AFTERWARDS = 30
CHUNK = bytes(64 * 1024)


class Scarce:
    """One process: where its queue is, and how it gets room again."""

    def __init__(self, path: str, config: QueueConfig, payload_bytes: int, seed: str) -> None:
        self.path = path
        self.config = config
        self.payload = os.urandom(payload_bytes)
        self.seed = seed
        self._few = min(400, FEW_BYTES // (payload_bytes + 1500))

    def run(self, when: str, take: Callable[[], None], give: Callable[[], None]) -> None:
        """`take` brings about the want, at the time that `when` names, and `give` ends it."""
        if when == "open":
            self._visit("first", jobs=self._few)
            take()
        at_work, at_close = (take if when == moment else None for moment in ("work", "close"))
        self._visit("poor", jobs=MOST_JOBS, take=at_work, leave=at_close, give=give)
        give()
        self._visit("rich", jobs=0)

    def _visit(
        self,
        name: str,
        jobs: int,
        take: Callable[[], None] | None = None,
        leave: Callable[[], None] | None = None,
        give: Callable[[], None] | None = None,
    ) -> None:
        try:
            tell("opening", name)
            queue = Queue.open(self.path, self.config)
            tell("open", name)
            worker = Worker(queue, name, f"{self.seed}.{name}")
            if take is not None:
                take()
            if leave is not None:
                jobs = self._few
            self._write(worker, jobs)
            worker.check_reads()
            if leave is not None:
                leave()
            elif give is not None:
                give()  # before it is closed, as the manual says
            if jobs == 0:
                worker.steps(STEPS_AFTERWARDS)
            queue.close()
            tell("closed", name)
        except JobError as error:
            tell("refused", name, type(error).__name__, str(error).replace("\n", " "))
        except BaseException as error:  # noqa: BLE001  # the parent is to hear of whatever it is
            tell("wrong", "untyped", repr(error).replace("\n", " "))

    def _write(self, worker: Worker, jobs: int) -> None:
        for n in range(jobs):
            if worker.call("enqueue", SCOPES[n % 3], f"{self.seed}:{worker.name}:{n}", self.payload) is None:
                worker.call("enqueue", SCOPES[0], f"{self.seed}:{worker.name}:again", self.payload)
                return
            if n % 4 == 0:
                worker.work_once()
        tell("never", "refused", worker.name)


def disk(
    path: str, ballast: str, when: str, left_bytes: str, payload_bytes: str, memtable_bytes: str, mode: str
) -> None:
    """The disk fills up, but for so many bytes, while the queue is opened, works or is closed."""
    config = QueueConfig(durability=mode, memtable_bytes=int(memtable_bytes), backoff_base_secs=0)

    def take() -> None:
        found = os.statvfs(os.path.dirname(ballast))
        size = max(0, found.f_bavail * found.f_frsize - int(left_bytes))
        with suppress(OSError), open(ballast, "wb") as file:  # the queue writes too, and may be faster
            for _ in range(size // len(CHUNK)):
                file.write(CHUNK)
            file.write(CHUNK[: size % len(CHUNK)])

    def give() -> None:
        if os.path.exists(ballast):
            os.unlink(ballast)

    Scarce(path, config, int(payload_bytes), "d").run(when, take, give)
    tell("done")


def descriptors(path: str, when: str, more: str, payload_bytes: str, mode: str) -> None:
    """No more than so many further descriptors, while the queue is opened or works."""
    config = QueueConfig(durability=mode, memtable_bytes=64 * 1024, backoff_base_secs=0)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    def take() -> None:
        limit = max(map(int, os.listdir("/proc/self/fd"))) + 1 + int(more)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))

    def give() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))

    Scarce(path, config, int(payload_bytes), "f").run(when, take, give)
    tell("done")


if __name__ == "__main__":
    if sys.argv[1] == "disk":
        disk(*sys.argv[2:])
    else:
        descriptors(*sys.argv[2:])
