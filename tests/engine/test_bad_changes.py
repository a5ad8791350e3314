"""Bad input to cancel and reschedule, and bad times to expire at: each gives its typed error and changes nothing."""

from __future__ import annotations

import math
from uuid import UUID

import pytest
from test_bad_arguments import BAD_IDS, BAD_SCOPES, BAD_SPANS, BAD_TTLS, BAD_WHOLES

from telha_queue.errors import InvalidArgument
from telha_queue.job import JobSpec
from telha_queue.scope import Scope

ACME = Scope.named("acme")
BAD_TIMES = {"negative": -1, "far": 2**63, "bool": True, "float": 1e15, "NaN": math.nan, "seconds": 1_750_000_000}

CALLS = {
    "expires_at": (
        BAD_TIMES | {"zero": 0, "past": 1_700_000_000_000_000},
        lambda q, _, bad: q.enqueue(ACME, "x", expires_at=bad),
    ),
    "expires_secs": (BAD_TTLS, lambda q, _, bad: q.enqueue(ACME, "x", expires_secs=bad)),
    "specs that expire": (
        BAD_TTLS,
        lambda q, _, bad: q.enqueue_many(ACME, [JobSpec("x", expires_secs=bad)], atomic=True),
    ),
    "scope to cancel": (BAD_SCOPES, lambda q, job_id, bad: q.cancel(bad, job_id)),
    "job id to cancel": (BAD_IDS, lambda q, _, bad: q.cancel(ACME, bad)),
    "reason": (
        {"None": None, "bytes": b"x", "exception": ValueError("x")},
        lambda q, job_id, bad: q.cancel(ACME, job_id, bad),
    ),
    "scope to reschedule": (BAD_SCOPES, lambda q, job_id, bad: q.reschedule(bad, job_id, priority=1)),
    "job id to reschedule": (BAD_IDS, lambda q, _, bad: q.reschedule(ACME, bad, priority=1)),
    "new priority": (BAD_WHOLES | {"256": 256}, lambda q, job_id, bad: q.reschedule(ACME, job_id, priority=bad)),
    "new delay": (BAD_SPANS, lambda q, job_id, bad: q.reschedule(ACME, job_id, delay_secs=bad)),
    "new gate": (BAD_TIMES, lambda q, job_id, bad: q.reschedule(ACME, job_id, not_before=bad)),
}


@pytest.fixture
def job_id(queue) -> UUID:
    """A job that waits."""
    return queue.enqueue(ACME, "embed", b"x").job_id


@pytest.mark.parametrize("what", CALLS)
def test_it_is_refused_and_changes_nothing(queue, job_id, refused, what):
    bads, call = CALLS[what]
    for how, bad in bads.items():
        with refused(queue, InvalidArgument, case=how) as caught:
            call(queue, job_id, bad)
        assert len(str(caught.value)) < 300
