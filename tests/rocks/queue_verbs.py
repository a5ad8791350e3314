"""Every verb of a queue, with arguments that are good: for tests of queues that must refuse them all."""

from __future__ import annotations

from collections.abc import Callable
from tempfile import mkdtemp

from telha_queue.job import JobRecord, JobSpec
from telha_queue.queue import Queue
from telha_queue.scope import Scope

ACME = Scope.named("acme")


def commit(queue: Queue) -> None:
    with queue.transaction() as tx:
        tx.put("f", b"k", b"v")


def verbs(queue: Queue, lease: JobRecord) -> dict[str, Callable[[], object]]:
    """By name. The lease is of a job whose payload stands in a row of its own."""
    return {
        "enqueue": lambda: queue.enqueue(ACME, "x"),
        "enqueue_many": lambda: queue.enqueue_many(ACME, [JobSpec("x")]),
        "lease_next": lambda: queue.lease_next(ACME, worker_id="w"),
        "lease_next_any": lambda: queue.lease_next_any(worker_id="w"),
        "lease_next and wait": lambda: queue.lease_next(ACME, "none", worker_id="w", wait_secs=3600),
        "lease_many": lambda: queue.lease_many(ACME, 3, worker_id="w"),
        "extend": lambda: queue.extend(lease),
        "extend_any": lambda: queue.extend_any(lease.job_id, "w", 1),
        "checkpoint": lambda: queue.checkpoint(lease, b"here"),
        "durable checkpoint": lambda: queue.checkpoint(lease, b"here", durable=True),
        "progress": lambda: queue.progress(lease, 0.5, "half way"),
        "stats": lambda: queue.stats(lease, "half way"),
        "complete": lambda: queue.complete(lease),
        "complete with a result": lambda: queue.complete(lease, result=b"r" * 5000),
        "complete_many": lambda: queue.complete_many([lease]),
        "fail": lambda: queue.fail(lease, "error"),
        "release": lambda: queue.release(lease),
        "retry": lambda: queue.retry(ACME, lease.job_id),
        "complete then": lambda: queue.complete(lease, then=[JobSpec("x")]),
        "enqueue_chained": lambda: queue.enqueue_chained(lease, [JobSpec("x")]),
        "transaction": lambda: commit(queue),
        "data get": lambda: queue.data("f").get(b"k"),
        "data scan": lambda: queue.data("f").scan(),
        "cancel": lambda: queue.cancel(ACME, lease.job_id),
        "reschedule": lambda: queue.reschedule(ACME, lease.job_id, priority=1),
        "get": lambda: queue.get(ACME, lease.job_id),
        "find": lambda: queue.find(lease.job_id),
        "find_leased_any": lambda: queue.find_leased_any(lease.job_id),
        "list": lambda: queue.list(),
        "counts": lambda: queue.counts(),
        "scopes": lambda: queue.scopes(),
        "ready_ticket": lambda: queue.ready_ticket(ACME),
        "wait_ready": lambda: queue.wait_ready(ACME, None, 0, 3600),
        "wait": lambda: queue.wait(ACME, lease.job_id, 3600),
        "reap_expired": lambda: queue.reap_expired(),
        "keeper": lambda: queue.keeper(),
        "flush": lambda: queue.flush(),
        "reopen": lambda: queue.reopen(),
        "fsck": lambda: queue.fsck(repair=True),
        "snapshot": lambda: queue.snapshot(f"{mkdtemp()}/snapshot"),
        "payload": lambda: lease.payload,
    }
