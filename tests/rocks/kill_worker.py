"""The process that test_kill.py kills: threads that use every verb and tell, line by line, what was acknowledged.

Lines: `opening`, `open`, then per call `<thread> try <verb> <detail>` before it and `<thread> ok <verb> [key value]...`
(hex) after it returned, or `<thread> no <verb>` when it was refused. One thread has at most one call under way.
"""

from __future__ import annotations

import os
import random
import sys
import threading

from telha_queue import JobRecord, JobSpec, JobState, Queue, QueueConfig, Scope
from telha_queue.errors import InvalidTransition, LeaseConflict

SCOPES = (Scope.SYSTEM, Scope.named("acme"), Scope.named("other"))
MAX_OPEN_JOBS = 400
one_line_at_a_time = threading.Lock()


def tell(*words: object) -> None:
    line = (" ".join(map(str, words)) + "\n").encode()
    with one_line_at_a_time:
        while line:
            line = line[os.write(1, line) :]


class Caller:
    """One thread's calls, each told before and after."""

    def __init__(self, queue: Queue, name: str, seed: str) -> None:
        self.queue = queue
        self.name = name
        self.random = random.Random(seed)
        self.run = seed
        self.count = 0

    def call(self, verb, *words, detail="-", **more):
        tell(self.name, "try", verb, detail)
        try:
            result = getattr(self.queue, verb)(*words, **more)
        except (LeaseConflict, InvalidTransition):
            tell(self.name, "no", verb)
            return None
        results = result if isinstance(result, list) else [result]
        jobs = [job for job in results if hasattr(job, "key")]  # not what a verb on many was refused, or counted
        tell(self.name, "ok", verb, *(f"{job.key.hex()} {job.value.hex()}" for job in jobs))
        return result

    def finish_in_one(self, lease: JobRecord) -> None:
        """A result, the end of the job and its successor in one write: what kill_ledger.py holds against each other."""
        tell(self.name, "try", "transaction", "-")
        try:
            with self.queue.transaction() as tx:
                tx.put("results", lease.job_id.bytes, lease.kind.encode())
                tx.complete(lease)
                payload = self.random.randbytes(self.random.choice((9, 5000)))
                tx.enqueue(lease.scope, f"then:{lease.job_id.hex}", payload)
        except LeaseConflict:
            tell(self.name, "no", "transaction")
            return
        tell(self.name, "ok", "transaction", *(f"{job.key.hex()} {job.value.hex()}" for job in tx.jobs))

    def produce(self) -> None:
        while True:
            self.count += 1
            scope, kind = self.random.choice(SCOPES), f"{self.run}:{self.name}:{self.count}"
            payload = self.random.randbytes(5000 if self.count % 9 == 0 else 60)
            if self.count % 8 == 0:
                self.call("enqueue_many", scope, [JobSpec(kind, payload)] * 5, detail=kind)
                continue
            self.call(
                "enqueue",
                scope,
                kind,
                payload,
                detail=kind,
                priority=self.random.choice((0, 128, 255)),
                delay_secs=0.001 if self.count % 7 == 0 else None,
                idempotency_key=kind if self.count % 2 else None,
                expires_secs=0.05 if self.count % 11 == 0 else 3600 if self.count % 5 == 0 else None,
            )
            while self.count % 16 == 0 and self.open_jobs() > MAX_OPEN_JOBS:
                self.work_once()

    def open_jobs(self) -> int:
        return self.queue.counts()[JobState.PENDING]

    def work(self) -> None:
        while True:
            self.work_once()

    def work_once(self) -> None:
        ttl_secs = self.random.choice((0.001, 300, 300))
        scope = self.random.choice(SCOPES)
        if self.random.random() < 0.1:
            leases = self.call("lease_many", scope, 4, worker_id=self.name, lease_ttl_secs=300)
            self.call("complete_many", leases) if leases else None
            return
        lease = self.call("lease_next", scope, worker_id=self.name, lease_ttl_secs=ttl_secs, wait_secs=0.01)
        if lease is None:
            return
        for _ in range(self.random.randrange(4)):
            verb = self.random.choice(("extend", "extend", "checkpoint", "durable", "progress", "stats"))
            saved = self.random.randbytes(50)
            words = {"checkpoint": (saved,), "durable": (saved,), "progress": (0.5, "half"), "stats": ("half way",)}
            more = {"durable": True} if verb == "durable" else {}
            self.call("checkpoint" if verb == "durable" else verb, lease, *words.get(verb, ()), **more)
        end = self.random.choice(("complete", "complete", "transaction", "fail", "bury", "release", "abandon"))
        if end == "bury":
            self.call("fail", lease, "hopeless", retryable=False)
        elif end == "transaction":
            self.finish_in_one(lease)
        elif end == "complete":
            result = self.random.choice((None, b"done", self.random.randbytes(5000)))
            self.call("complete", lease, result=result)
        elif end != "abandon":
            self.call(end, lease, *(("error",) if end == "fail" else ()))

    def operate(self) -> None:
        while True:
            self.count += 1
            self.call("reopen" if self.count % 40 == 0 else "flush" if self.count % 10 == 0 else "reap_expired")
            for dead in self.queue.list(state=JobState.DEAD, limit=5):
                self.call("retry", dead.scope, dead.job_id)
            for job in self.queue.list(state=JobState.PENDING, limit=3):
                self.call("reschedule", job.scope, job.job_id, priority=self.random.choice((0, 128, 200)))
            for state in (JobState.PENDING, JobState.LEASED):
                for job in self.queue.list(state=state, limit=1):
                    self.call("cancel", job.scope, job.job_id, "enough")


def main(path: str, durability: str, seed: str) -> None:
    tell("opening")
    settings = QueueConfig(durability=durability, memtable_bytes=65536, backoff_base_secs=0, max_attempts=3)
    queue = Queue.open(path, settings)
    tell("open")
    for n in range(6):
        caller = Caller(queue, f"t{n}", f"{seed}.{n}")
        job = (caller.produce, caller.produce, caller.work, caller.work, caller.work, caller.operate)[n]
        threading.Thread(target=job).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
