"""Random lives: the engine under test and the memory engine do the same verbs and must agree on every byte.

Job ids would differ in their random part, so the oracle takes that part from the ids that the engine made. Raise the
number of examples with TELHA_ORACLE_EXAMPLES; a failure prints how to repeat it.
"""

from __future__ import annotations

import os
from uuid import UUID

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, invariant, multiple, rule, run_state_machine_as_test
from life_transactions import SCOPES, Transactions, delays, scopes, specs
from outcomes import attempt, everything, facts, token

from telha_queue.config import QueueConfig
from telha_queue.engines.memory import MemoryEngine
from telha_queue.job import Exact, Failure, JobState, Lease
from telha_queue.queue import Queue
from telha_queue.testing import ManualClock

CONFIG = QueueConfig(
    lease_ttl_secs=20,
    lease_grace_secs=0.5,
    max_attempts=3,
    max_crashes=2,
    backoff_base_secs=2,
    backoff_factor=3,
    backoff_cap_secs=10,
    backoff_base_secs_by_kind={"ab": 15},
    durability="os",
)
ID_BITS = 2**62 - 1

workers = st.sampled_from(("w1", "w2"))
filters = st.sampled_from((None, None, "a", Exact("a"), ("b", Exact("ab")), "nothing"))
results = st.sampled_from((None, None, b"", b"result", b"r" * 4096, b"s" * 4097))
failings = st.fixed_dictionaries(
    {
        "retryable": st.sampled_from((True, True, False)),
        "delay_secs": delays,
        "cause": st.sampled_from(("error", "timeout", "crash", "crash")),
    }
)


class Lives(Transactions):
    """Two queues on one clock: `queue` on the engine under test, `oracle` in memory."""

    leases = Bundle("leases")

    def __init__(self, engines):
        super().__init__()
        self.engines = engines
        self.clock = ManualClock()
        self.engine = engines.open(CONFIG)
        self.queue = Queue(self.engine, CONFIG, self.clock)
        self.bits: list[int] = []
        self.memory = MemoryEngine(CONFIG, id_bits=lambda _: self.bits.pop(0))
        self.oracle = Queue(self.memory, CONFIG, self.clock)
        self.generations: dict[UUID, int] = {}

    def teardown(self):
        self.queue.close()
        self.oracle.close()

    def agree(self, verb):
        """Do the same on both and compare what comes of it."""
        outcome = attempt(verb, self.queue)
        expected = attempt(verb, self.oracle)
        assert facts(outcome) == facts(expected)
        return outcome

    @rule(scope=scopes, spec=specs)
    def enqueue(self, scope, spec):
        self.agree_on_new(lambda queue: queue.enqueue(scope, **spec._asdict()))

    @rule(scope=scopes, batch=st.lists(specs, max_size=5))
    def enqueue_batch(self, scope, batch):
        self.agree_on_new(lambda queue: queue.enqueue_many(scope, batch))

    @rule(target=leases, scope=st.one_of(st.none(), scopes), kinds=filters, worker_id=workers, ttl=st.integers(1, 30))
    def lease(self, scope, kinds, worker_id, ttl):
        if scope is None:
            job = self.agree(lambda queue: queue.lease_next_any(kinds, worker_id=worker_id, lease_ttl_secs=ttl))
        else:
            job = self.agree(lambda queue: queue.lease_next(scope, kinds, worker_id=worker_id, lease_ttl_secs=ttl))
        return multiple() if job is None else token(job)

    @rule(target=leases, scope=scopes, n=st.integers(1, 4), kinds=filters, worker_id=workers)
    def lease_many(self, scope, n, kinds, worker_id):
        return multiple(*map(token, self.agree(lambda queue: queue.lease_many(scope, n, kinds, worker_id=worker_id))))

    @rule(target=leases, lease=leases, worker_id=workers, step=st.sampled_from((0, 1)), scope=scopes)
    def forge(self, lease, worker_id, step, scope):
        generation = lease.lease_generation + step
        return Lease(scope, lease.job_id, worker_id, generation)

    @rule(lease=leases, ttl=st.sampled_from((None, 1, 60)))
    def extend(self, lease, ttl):
        self.agree(lambda queue: queue.extend(lease, lease_ttl_secs=ttl))

    @rule(lease=leases)
    def extend_any(self, lease):
        self.agree(lambda queue: queue.extend_any(lease.job_id, lease.worker_id, lease.lease_generation))

    @rule(lease=leases, continuation=st.binary(max_size=40), durable=st.booleans())
    def checkpoint(self, lease, continuation, durable):
        self.agree(lambda queue: queue.checkpoint(lease, continuation, durable=durable))

    @rule(lease=leases, fraction=st.floats(0, 1), text=st.sampled_from((None, "", "page 7")))
    def progress(self, lease, fraction, text):
        self.agree(lambda queue: queue.progress(lease, fraction, text))

    @rule(lease=leases, detail=st.sampled_from(("", "line", "x" * 4096)), times=st.sampled_from((1, 1, 20, 150)))
    def stats(self, lease, detail, times):
        for _ in range(times):
            self.agree(lambda queue: queue.stats(lease, detail))

    @rule(lease=leases, late=st.sampled_from(("refuse", "accept_if_unclaimed")), result=results)
    def complete(self, lease, late, result):
        self.agree(lambda queue: queue.complete(lease, result=result, late=late))

    @rule(batch=st.lists(leases, max_size=5), late=st.sampled_from(("refuse", "accept_if_unclaimed")))
    def complete_many(self, batch, late):
        self.agree(lambda queue: queue.complete_many(batch, late=late))

    @rule(lease=leases, error=st.text(max_size=20), how=failings)
    def fail(self, lease, error, how):
        self.agree(lambda queue: queue.fail(lease, error, **how))

    @rule(batch=st.lists(st.tuples(leases, failings), max_size=5))
    def fail_many(self, batch):
        failures = [Failure(lease, "error", **how) for lease, how in batch]
        self.agree(lambda queue: queue.fail_many(failures))

    @rule(lease=leases, delay=st.sampled_from((0, 3)))
    def release(self, lease, delay):
        self.agree(lambda queue: queue.release(lease, delay_secs=delay))

    @rule(lease=leases)
    def retry(self, lease):
        self.agree(lambda queue: queue.retry(lease.scope, lease.job_id))

    @rule(lease=leases, reason=st.sampled_from(("", "no longer needed")))
    def cancel(self, lease, reason):
        self.agree(lambda queue: queue.cancel(lease.scope, lease.job_id, reason))

    @rule(number=st.integers(0, 30), priority=st.sampled_from((None, 0, 1, 2)), delay=delays)
    def reschedule(self, number, priority, delay):
        jobs = everything(self.oracle)
        if number < len(jobs):
            how = {"priority": priority, "delay_secs": delay}
            self.agree(lambda queue: queue.reschedule(jobs[number].scope, jobs[number].job_id, **how))

    @rule(lease=leases)
    def read(self, lease):
        self.agree(lambda queue: queue.get(lease.scope, lease.job_id))
        self.agree(lambda queue: queue.find_leased_any(lease.job_id))

    @rule(
        scope=st.one_of(st.none(), scopes),
        state=st.one_of(st.none(), st.sampled_from(JobState)),
        kinds=filters,
        limit=st.integers(1, 5),
        behind=st.one_of(st.none(), st.integers(0, 30)),
    )
    def list(self, scope, state, kinds, limit, behind):
        jobs = everything(self.oracle)
        after = None if behind is None or behind >= len(jobs) else jobs[behind]
        self.agree(lambda queue: queue.list(scope, state=state, kinds=kinds, limit=limit, after=after))

    @rule()
    def reap(self):
        self.agree(lambda queue: queue.reap_expired())

    @rule(us=st.one_of(st.integers(0, 3), st.sampled_from((500_000, 1_000_000, 5_000_000, 20_500_000))))
    def tick(self, us):
        self.clock.advance_us(us)

    @rule(us=st.integers(1, 30_000_000))
    def set_back(self, us):
        self.clock.advance_us(-us)

    @rule()
    def reopen(self):
        """Start afresh from what is stored; where nothing is, only the queue in front of the engine is new."""
        if self.engine.capabilities.durable:
            self.engine = self.engines.reopen(self.engine)
        assert self.engine.last_seen_us() >= max((job.created_at for job in everything(self.oracle)), default=0)
        # What the two know of times at which nothing happened may differ, so they go on from a time that both accept.
        self.clock.set_us(max(self.clock(), self.engine.last_seen_us(), self.memory.last_seen_us()))
        self.queue = Queue(self.engine, CONFIG, self.clock)
        self.oracle = Queue(self.memory, CONFIG, self.clock)
        self.agree(lambda queue: queue.lease_next(SCOPES[0], "nothing", worker_id="reads the clock"))

    @invariant()
    def every_row_is_the_same(self):
        jobs = everything(self.queue)
        assert facts(jobs) == facts(everything(self.oracle))
        for job in jobs:
            assert job.lease_generation >= self.generations.get(job.job_id, 0)
            self.generations[job.job_id] = job.lease_generation

    @invariant()
    def counts_and_scopes_are_the_same(self):
        told, expected = self.queue.scopes(), self.oracle.scopes()
        assert told == expected
        assert [scope.name for scope in told] == [scope.name for scope in expected]
        for scope in (None, *SCOPES):
            assert self.queue.counts(scope) == self.oracle.counts(scope)


@pytest.mark.timeout(300)
def test_every_life_is_the_same_as_in_memory(engines):
    run_state_machine_as_test(
        lambda: Lives(engines),
        settings=settings(
            max_examples=int(os.environ.get("TELHA_ORACLE_EXAMPLES", "100")),
            stateful_step_count=50,
            deadline=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
