"""The windows that leases go through answer as the plain scan does, which is what defines the order of jobs.

Windows here are as small as they may be, so that they overflow, forget and scan again all the time.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from uuid import UUID

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from telha_queue import Exact, JobRecord, JobState, Queue, QueueConfig, Scope
from telha_queue.arguments import kind_filter
from telha_queue.errors import LeaseConflict
from telha_queue.testing import ManualClock

EXAMPLES = int(os.environ.get("TELHA_WINDOW_EXAMPLES", "40"))
SMALL = QueueConfig(durability="os", window_jobs=16, backoff_base_secs=2, backoff_factor=2, max_attempts=4)
SCOPES = [
    Scope.SYSTEM,
    Scope.named("acme"),
    *[Scope.tenant(UUID(int=n)) for n in range(1, 10)],
    Scope.tenant(UUID(int=2**128 - 1), UUID(int=2**128 - 1)),
]
KINDS = ["embed", "embed:large", "ingest:pdf", "x"]
FILTERS = [None, "embed", Exact("embed"), ["ingest:", "x"], Exact("nothing")]

scopes = st.sampled_from(SCOPES)
filters = st.sampled_from(FILTERS)


def place(job: JobRecord | None) -> bytes | None:
    """What decides when a job is leased: priority, created_at and id, as its key has them."""
    return None if job is None else job.key[33:]


class Windows(RuleBasedStateMachine):
    """Leases through small windows, each checked against the scan just before it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="telha-window-")
        self.clock = ManualClock(1_750_000_000_000_000)
        self.queue = Queue.open(self.folder.name + "/queue", SMALL, self.clock)
        self.held = []
        self.jobs = 0

    def teardown(self) -> None:
        try:
            self.clock.advance(secs=1000)
            while (job := self.queue.lease_next_any(worker_id="w")) is not None:
                self.queue.complete(job)
            left = self.queue.list(state=JobState.PENDING, limit=1000)
            assert all(job.expires_at is not None for job in left), "a job that is due stands in no window"
        finally:
            self.queue.close()
            self.folder.cleanup()

    def expected(self, scope, kinds) -> bytes | None:
        wanted, now_us = kind_filter(kinds), self.clock()
        jobs = [self.queue._engine.next_by_scan(each.key, wanted, now_us) for each in ([scope] if scope else SCOPES)]
        return min((place(job) for job in jobs if job is not None), default=None)

    @rule(
        scope=scopes,
        kind=st.sampled_from(KINDS),
        n=st.sampled_from([1, 1, 3, 40]),
        priority=st.sampled_from([0, 128, 128, 255]),
        delay_secs=st.sampled_from([None, None, 1, 5, 60]),
        expires_secs=st.sampled_from([None, None, 2, 15]),
    )
    def enqueue(self, scope, kind, n, priority, delay_secs, expires_secs):
        for _ in range(n):
            self.queue.enqueue(scope, kind, priority=priority, delay_secs=delay_secs, expires_secs=expires_secs)
        self.jobs += n

    @rule(scope=st.none() | scopes, kinds=filters, n=st.sampled_from([1, 1, 2, 30]))
    def lease(self, scope, kinds, n):
        for _ in range(n):
            expected = self.expected(scope, kinds)
            if scope is None:
                job = self.queue.lease_next_any(kinds, worker_id="w", lease_ttl_secs=10)
            else:
                job = self.queue.lease_next(scope, kinds, worker_id="w", lease_ttl_secs=10)
            assert place(job) == expected
            if job is None:
                return
            self.held.append(job)

    @rule(scope=scopes, kinds=filters, n=st.integers(2, 50))
    def lease_many(self, scope, kinds, n):
        first = self.expected(scope, kinds)
        jobs = self.queue.lease_many(scope, n, kinds, worker_id="w", lease_ttl_secs=10)
        places = [place(job) for job in jobs]
        assert places == sorted(places)
        assert (places[0] if places else None) == first
        assert len(jobs) == n or self.expected(scope, kinds) is None
        self.held += jobs

    @rule(scope=st.none() | scopes, kinds=filters, n=st.integers(1, 20))
    def lease_and_fail(self, scope, kinds, n):
        for job in self.queue.lease_many(scope, n, kinds, worker_id="w", lease_ttl_secs=10):
            self.queue.fail(job, "error")

    @rule(n=st.integers(1, 4), priority=st.sampled_from([0, 128]))
    def enqueue_everywhere(self, n, priority):
        for scope in SCOPES:
            for _ in range(n):
                self.queue.enqueue(scope, "embed", priority=priority)
        self.jobs += n * len(SCOPES)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), how=st.sampled_from(["complete", "fail", "release", "release later", "bury and retry"]))
    def give_back(self, data, how):
        job = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        act = {
            "complete": lambda: self.queue.complete(job),
            "fail": lambda: self.queue.fail(job, "error"),
            "release": lambda: self.queue.release(job),
            "release later": lambda: self.queue.release(job, delay_secs=3),
            "bury and retry": lambda: self.queue.retry(job.scope, self.queue.fail(job, "no", retryable=False).job_id),
        }
        with contextlib.suppress(LeaseConflict):  # the reaper may have come first
            act[how]()

    @rule(
        scope=scopes,
        number=st.integers(0, 40),
        n=st.sampled_from([1, 20]),
        priority=st.sampled_from([None, 0, 5, 128, 255]),
        delay_secs=st.sampled_from([None, 0, 3]),
    )
    def reschedule(self, scope, number, n, priority, delay_secs):
        if priority is not None or delay_secs is not None:
            for job in self.queue.list(scope, state=JobState.PENDING)[number : number + n]:
                self.queue.reschedule(scope, job.job_id, priority=priority, delay_secs=delay_secs)

    @rule(scope=scopes, number=st.integers(0, 9))
    def cancel(self, scope, number):
        for job in self.queue.list(scope, state=JobState.PENDING)[number : number + 1]:
            self.queue.cancel(scope, job.job_id)

    @rule(secs=st.sampled_from([1, 3, 20]))
    def advance(self, secs):
        self.clock.advance(secs=secs)

    @rule()
    def reap(self):
        self.queue.reap_expired()

    @rule()
    def reopen(self):
        self.queue.close()
        self.queue = Queue.open(self.folder.name + "/queue", SMALL, self.clock)

    @invariant()
    def no_job_is_lost(self):
        assert sum(self.queue.counts().values()) == self.jobs


Windows.TestCase.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestWindows = Windows.TestCase
