"""What a killed process had been told, held against what its queue then holds."""

from __future__ import annotations

from collections import Counter

from telha_queue.job import JobRecord, JobState
from telha_queue.queue import Queue
from telha_queue.scope import Scope

# The events that a call which was under way at the kill may have left without an acknowledgement.
LEAVES = {
    "enqueue": {"enqueued"},
    "enqueue_many": {"enqueued"},
    "lease_next": {"leased"},
    "lease_many": {"leased"},
    "extend": {"extended"},
    "checkpoint": {"checkpoint"},
    "progress": {"extended"},
    "stats": {"stats"},
    "complete": {"completed"},
    "complete_many": {"completed"},
    "fail": {"failed", "dead"},
    "release": {"released", "dead"},
    "retry": {"retried"},
    "transaction": {"completed", "enqueued"},
    "cancel": {"cancelled"},
    "reschedule": {"rescheduled"},
}
BY_THE_REAPER = {"reaped", "dead", "expired"}
"""A pass of the reaper does not tell of each job."""
BATCHES = {"enqueue_many": 5, "lease_many": 4, "complete_many": 4}


def trail(job: JobRecord) -> list[str]:
    """Every transition of a job, merged heartbeats one by one. It only ever grows, so it tells what came when."""
    assert job.events_dropped == 0
    return [event.transition for event in job.events for _ in range(event.count)]


class Ledger:
    """Everything acknowledged so far, over any number of kills."""

    def __init__(self) -> None:
        self.jobs: dict[bytes, dict[int, JobRecord]] = {}
        """By job id, then by length of trail."""
        self.under_way: dict[str, tuple[str, str, int]] = {}
        """By thread: verb, detail, and the greatest created_at acknowledged before the call."""
        self.last_created_at = 0
        self.acknowledged: Counter[str] = Counter()

    def read(self, line: str) -> None:
        """Take in one line of kill_worker.py."""
        thread, step, verb, *words = line.split()
        if step == "try":
            self.under_way[thread] = (verb, words[0], self.last_created_at)
            return
        _, _, created_before = self.under_way.pop(thread)
        self.acknowledged[verb] += step == "ok"
        for key, value in zip(words[::2], words[1::2], strict=True):
            job = JobRecord(bytes.fromhex(key), bytes.fromhex(value))
            if verb in ("enqueue", "enqueue_many"):
                assert job.created_at > created_before, "a job came before one that was acknowledged earlier"
                self.last_created_at = max(self.last_created_at, job.created_at)
            self.jobs.setdefault(job.job_id.bytes, {})[len(trail(job))] = job

    def check(self, queue: Queue) -> None:
        """Hold it against the queue after the kill; what is there then counts as acknowledged from then on."""
        stored = {job.job_id.bytes: job for job in whole(queue)}
        assert not self.jobs.keys() - stored.keys(), "acknowledged jobs are gone"
        extra: Counter[str] = Counter()
        for job_id, job in stored.items():
            extra.update(self._unacknowledged(self.jobs.get(job_id, {}), job))
            self._check_side_rows(queue, job)
        self._check_invented(extra)
        self._check_batches(stored)
        self._check_transactions(queue, stored)
        counted = Counter(job.state for job in stored.values())
        assert {state: counted[state] for state in JobState} == queue.counts()
        self._check_order(queue)
        self.jobs = {job_id: {len(trail(job)): job} for job_id, job in stored.items()}
        self.under_way.clear()

    def _unacknowledged(self, acknowledged: dict[int, JobRecord], job: JobRecord) -> list[str]:
        """Transitions of a job that nobody was told of; fails unless those that somebody was told of are there."""
        steps = trail(job)
        for length, told in acknowledged.items():
            assert steps[:length] == trail(told), f"{told!r} was acknowledged, {job!r} is stored"
            assert job.lease_generation >= told.lease_generation
        assert job.lease_generation == steps.count("leased")
        newest = max(acknowledged, default=0)
        if newest == len(steps):
            assert job == acknowledged[newest]
        return steps[newest:]

    def _check_invented(self, extra: Counter[str]) -> None:
        allowed: Counter[str] = Counter()
        for verb, _, _ in self.under_way.values():
            for transition in LEAVES.get(verb, ()):
                allowed[transition] += BATCHES.get(verb, 1)
        for transition, count in extra.items():
            known = transition in BY_THE_REAPER or count <= allowed[transition]
            assert known, f"{count} times {transition} that nobody asked for; under way were {self.under_way}"

    def _check_batches(self, stored: dict[bytes, JobRecord]) -> None:
        kinds = Counter(job.kind for job in stored.values())
        for verb, kind, _ in self.under_way.values():
            if verb == "enqueue_many":
                assert kinds[kind] in (0, 5), "half a batch"

    def _check_transactions(self, queue: Queue, stored: dict[bytes, JobRecord]) -> None:
        """A result, the end of its job and the job's successor: all three, or none of them."""
        results, after = set(), None
        while page := queue.data("results").scan(after=after, limit=1000):
            after = page[-1][0]
            for job_id, kind in page:
                assert (stored[job_id].state, stored[job_id].kind.encode()) == (JobState.COMPLETED, kind)
                results.add(job_id.hex())
        successors = [job.kind.removeprefix("then:") for job in stored.values() if job.kind.startswith("then:")]
        assert sorted(successors) == sorted(results)

    def _check_side_rows(self, queue: Queue, job: JobRecord) -> None:
        assert queue.find(job.job_id) == job == queue.get(job.scope, job.job_id)
        assert len(job.payload) == job.payload_bytes
        assert job.result_bytes == (None if job.result is None else len(job.result))
        if job.idempotency_key is not None:
            again = queue.enqueue(job.scope, "never stored", idempotency_key=job.idempotency_key)
            assert again == job

    def _check_order(self, queue: Queue) -> None:
        for scope in queue.scopes():
            pending = [(job.priority, job.created_at) for job in whole(queue, scope, JobState.PENDING)]
            assert pending == sorted(pending)
        created = [job.created_at for job in whole(queue)]
        assert len(set(created)) == len(created)


def whole(queue: Queue, scope: Scope | None = None, state: JobState | None = None) -> list[JobRecord]:
    """All jobs, page by page."""
    found: list[JobRecord] = []
    while page := queue.list(scope, state=state, limit=1000, after=found[-1] if found else None):
        found += page
    return found
