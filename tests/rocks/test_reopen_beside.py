"""A store that is opened again beside calls: each is done once, before or after, and none waits for itself."""

from __future__ import annotations

from telha_queue import JobState, Queue, QueueConfig, Scope
from telha_queue.errors import LeaseConflict

ACME = Scope.named("acme")
SYNC = QueueConfig(memtable_bytes=65536)
ROUNDS = 60


def test_a_worker_whose_next_job_is_being_finished_late_does_not_keep_the_store_from_opening(path, clock, together):
    def finish_late(lease):
        try:
            return queue.complete(lease, late="accept_if_unclaimed")
        except LeaseConflict:  # the worker was faster
            return None

    with Queue.open(path, SYNC, clock) as queue:
        for number in range(ROUNDS):
            queue.enqueue(ACME, "held")
            held = queue.lease_next(ACME, "held", worker_id="w", lease_ttl_secs=1000)
            queue.enqueue(ACME, "late", max_attempts=9)
            late = queue.lease_next(ACME, "late", worker_id="old", lease_ttl_secs=1)
            clock.advance(secs=100)
            queue.reap_expired()
            clock.advance(secs=100)
            finished, following, _ = together(
                lambda lease=late: finish_late(lease),
                lambda lease=held: queue.complete_and_lease(lease, "late"),
                queue.reopen,
            )
            assert (finished is None) != (following is None)
            if following is not None:
                queue.complete(following)
            assert queue.counts()[JobState.COMPLETED] == 2 * number + 2
