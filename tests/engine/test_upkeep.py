"""Whatever verbs have been at work, a check finds nothing wrong."""

from __future__ import annotations

import pytest

from telha_queue import JobSpec, Scope
from telha_queue.errors import InvalidType
from telha_queue.upkeep import FsckReport

ACME = Scope.named("acme")


def test_after_every_verb_a_check_is_clean(queue, clock):
    specs = [JobSpec("x", b"p" * (number * 1000), idempotency_key=f"k{number}") for number in range(9)]
    queue.enqueue_many(ACME, specs)
    queue.enqueue(Scope.SYSTEM, "x", idempotency_key="k1")
    queue.enqueue_many(ACME, specs)
    leases = queue.lease_many(ACME, 6, worker_id="w", lease_ttl_secs=1)
    queue.complete(queue.checkpoint(queue.extend(leases[0]), b"c"))
    queue.fail(leases[1], "boom")
    queue.retry(ACME, queue.fail(leases[2], "boom", retryable=False).job_id)
    queue.fail(leases[3], "boom", retryable=False)
    queue.release(leases[4])
    clock.advance(secs=60)
    queue.reap_expired()
    queue.complete(leases[5], late="accept_if_unclaimed")
    for repair in (False, True):
        report = queue.fsck(repair=repair)
        assert report == FsckReport(10, {}, {})
        assert report.is_clean


@pytest.mark.parametrize("repair", [None, 1, "yes"])
def test_repair_is_yes_or_no(queue, repair):
    with pytest.raises(InvalidType):
        queue.fsck(repair=repair)
