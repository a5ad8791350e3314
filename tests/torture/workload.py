"""A process that does every verb and tells line by line what was acknowledged, as tests/rocks/kill_worker.py does.

Here the work can have an end, after which the queue is closed and opened again, and a failing disk is part of the play.
Further lines: `<thread> err <verb> <error> <outcome>` for a StorageError; `refused <what> <error>` when the queue could
not be opened or closed; `wrong <text>` for what must never be; `done` at the end.
"""

from __future__ import annotations

import sys
import threading
from typing import Any
from uuid import UUID

from telha_queue import JobRecord, JobSpec, JobState, Queue, QueueConfig
from telha_queue.errors import InvalidTransition, JobError, LeaseConflict, StorageError
from tests.rocks.kill_worker import SCOPES, Caller, tell


class Worker(Caller):
    """One thread's calls, with errors of the store told and borne."""

    def __init__(self, queue: Queue, name: str, seed: str) -> None:
        super().__init__(queue, name, seed)
        self.acknowledged: dict[bytes, int] = {}
        """By job id: events that the newest acknowledged record has."""

    def call(self, verb: str, *words: Any, detail: str = "-", **more: Any) -> Any:
        tell(self.name, "try", verb, detail)
        try:
            result = getattr(self.queue, verb)(*words, **more)
        except (LeaseConflict, InvalidTransition):
            tell(self.name, "no", verb)
            return None
        except StorageError as error:
            tell(self.name, "err", verb, type(error).__name__, error.outcome, str(error).replace("\n", " "))
            return None
        told = result if isinstance(result, list) else [result]
        jobs = [job for job in told if isinstance(job, JobRecord)]
        tell(self.name, "ok", verb, *(f"{job.key.hex()} {job.value.hex()}" for job in jobs))
        self.acknowledged.update((job.job_id.bytes, len(job.events)) for job in jobs)
        return result

    def steps(self, count: int) -> None:
        """So many calls or little groups of calls, of every kind."""
        try:
            for _ in range(count):
                self.step()
        except StorageError as error:  # of a read, which tells nobody
            tell("refused", "read", type(error).__name__)
        except BaseException as error:  # noqa: BLE001  # the parent is to hear of whatever it is
            tell("wrong", "untyped", repr(error).replace("\n", " "))

    def step(self) -> None:
        what = self.random.random()
        self.count += 1
        kind = f"{self.run}:{self.name}:{self.count}"
        payload = self.random.randbytes(self.random.choice((20, 60, 600, 5000)))
        scope = self.random.choice(SCOPES)
        if what < 0.4:
            key = kind if self.random.random() < 0.5 else None
            priority = self.random.choice((0, 128, 255))
            self.call("enqueue", scope, kind, payload, detail=kind, priority=priority, idempotency_key=key)
        elif what < 0.5:
            self.call("enqueue_many", scope, [JobSpec(kind, payload)] * 5, detail=kind)
        elif what < 0.92:
            self.work_once()
        else:
            self.operate_once()

    def operate_once(self) -> None:
        self.call("reap_expired")
        for dead in self.queue.list(state=JobState.DEAD, limit=5):
            self.call("retry", dead.scope, dead.job_id)

    def check_reads(self) -> None:
        """After errors of writes: what was acknowledged can be read, or the error is typed; never an empty answer."""
        for job_id, events in self.acknowledged.items():
            try:
                found = self.queue.find(UUID(bytes=job_id))
            except StorageError as error:
                tell("refused", "find", type(error).__name__)
                return
            if len(found.events) < events:
                tell("wrong", "read", f"{job_id.hex()} has lost events")
        try:
            counted = sum(self.queue.counts().values())
        except StorageError as error:
            tell("refused", "counts", type(error).__name__)
            return
        if counted < len(self.acknowledged):
            tell("wrong", "counts", counted, "of", len(self.acknowledged))


def session(path: str, config: QueueConfig, seed: str, threads: int, steps: int) -> None:
    """Open, work, read, close."""
    tell("opening")
    queue = Queue.open(path, config)
    tell("open")
    workers = [Worker(queue, f"t{n}", f"{seed}.{n}") for n in range(threads)]
    running = [threading.Thread(target=worker.steps, args=(steps,)) for worker in workers[1:]]
    for thread in running:
        thread.start()
    workers[0].steps(steps)
    for thread in running:
        thread.join()
    for worker in workers:
        worker.check_reads()
    tell("closing")
    queue.close()
    tell("closed")


def main(path: str, durability: str, memtable_bytes: str, seed: str, threads: str, steps: str, sessions: str) -> None:
    config = QueueConfig(
        durability=durability,
        memtable_bytes=int(memtable_bytes),
        group_sync_ms=2,
        backoff_base_secs=0,
        max_attempts=3,
    )
    for n in range(int(sessions)):
        try:
            session(path, config, f"{seed}.{n}", int(threads), int(steps))
        except JobError as error:
            tell("refused", "session", type(error).__name__)
        except BaseException as error:  # noqa: BLE001  # the parent is to hear of whatever it is
            tell("wrong", "untyped", repr(error).replace("\n", " "))
    tell("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
