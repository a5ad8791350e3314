"""What the random lives of test_oracle.py enqueue, alone and in transactions that may be refused."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule
from outcomes import attempt, everything, facts

from telha_queue.job import JobRecord, JobSpec
from telha_queue.scope import Scope

SCOPES = (Scope.SYSTEM, Scope.named("acme"), Scope.named("other"))
FAMILIES = ("f", "g")
ID_BITS = 2**62 - 1

scopes = st.sampled_from(SCOPES)
kinds = st.sampled_from(("a", "ab", "b"))
delays = st.sampled_from((None, None, 0, 1, 7.5))
specs = st.builds(
    JobSpec,
    kinds,
    st.sampled_from((b"", b"payload", b"p" * 4096, b"q" * 4097)),
    priority=st.integers(0, 2),
    not_before=st.none(),
    delay_secs=delays,
    idempotency_key=st.sampled_from((None, None, None, "k1", "k2")),
    max_attempts=st.sampled_from((None, None, 1, 2)),
    headers=st.sampled_from((None, None, {"traceparent": "00-1"})),
    expires_at=st.none(),
    expires_secs=st.sampled_from((None, None, None, 1, 6, 30)),
)
changes = st.sampled_from(("complete", "complete", "fail", "release", "checkpoint", "retry", "cancel"))
own_rows = st.tuples(
    st.sampled_from(FAMILIES), st.sampled_from((b"a", b"ab", b"b")), st.sampled_from((None, b"", b"value"))
)


def transaction(changed, result, new, rows):
    """What does all of it in one write, on a queue."""

    def commit(queue):
        with queue.transaction() as tx:
            for lease, verb in changed:
                if verb in ("retry", "cancel"):
                    getattr(tx, verb)(lease.scope, lease.job_id)
                else:
                    words = {"fail": ("error",), "checkpoint": (b"here",)}.get(verb, ())
                    getattr(tx, verb)(lease, *words, **({} if verb != "complete" else {"result": result}))
            for scope, spec in new:
                tx.enqueue(scope, **spec._asdict())
            for family, key, value in rows:
                tx.delete(family, key) if value is None else tx.put(family, key, value)
        return tx.jobs

    return commit


class Transactions(RuleBasedStateMachine):
    """Lives in which jobs are stored, by a `queue` and by an `oracle` that makes its ids of `bits`."""

    leases = Bundle("leases")

    def agree_on_new(self, verb):
        """Do the same on both and compare what comes of it; the new jobs get the same ids."""
        known = {job.job_id for job in everything(self.oracle)}
        outcome = attempt(verb, self.queue)
        outcomes = outcome if isinstance(outcome, list) else [outcome]
        jobs = [job for job in outcomes if isinstance(job, JobRecord)]
        fresh = {job.created_at: job.job_id for job in jobs if job.job_id not in known}
        self.bits = [job_id.int & ID_BITS for _, job_id in sorted(fresh.items())]
        assert facts(outcome) == facts(attempt(verb, self.oracle))
        assert self.bits == []

    @rule(
        changed=st.lists(st.tuples(leases, changes), max_size=3),
        result=st.sampled_from((None, b"", b"r" * 4097)),
        new=st.lists(st.tuples(scopes, specs), max_size=3),
        rows=st.lists(own_rows, max_size=3),
    )
    def transact(self, changed, result, new, rows):
        self.agree_on_new(transaction(changed, result, new, rows))

    @invariant()
    def own_rows_are_the_same(self):
        for family in FAMILIES:
            assert self.queue.data(family).scan() == self.oracle.data(family).scan()
