"""Close: in whatever state threads, records and garbage are, a queue ends in order and its directory is free."""

from __future__ import annotations

import gc
import threading
from uuid import UUID

import pytest

from telha_queue.config import QueueConfig
from telha_queue.errors import StoreClosed
from telha_queue.job import JobSpec, JobState
from telha_queue.queue import Queue
from telha_queue.scope import Scope

ACME = Scope.named("acme")
QUICK = QueueConfig(durability="os")
LARGE = b"x" * 5000
PATIENCE_SECS = 60


@pytest.fixture
def queue(path):
    with Queue.open(path, QUICK) as queue:
        yield queue


def verbs(queue, lease):
    """Every verb, with arguments that are good."""
    return {
        "enqueue": lambda: queue.enqueue(ACME, "x"),
        "enqueue_many": lambda: queue.enqueue_many(ACME, [JobSpec("x")]),
        "lease_next": lambda: queue.lease_next(ACME, worker_id="w"),
        "lease_next_any": lambda: queue.lease_next_any(worker_id="w"),
        "lease_next and wait": lambda: queue.lease_next(ACME, worker_id="w", wait_secs=3600),
        "lease_many": lambda: queue.lease_many(ACME, 3, worker_id="w"),
        "extend": lambda: queue.extend(lease),
        "extend_any": lambda: queue.extend_any(lease.job_id, "w", 1),
        "checkpoint": lambda: queue.checkpoint(lease, b"here"),
        "stats": lambda: queue.stats(lease, "half"),
        "complete": lambda: queue.complete(lease),
        "complete_many": lambda: queue.complete_many([lease]),
        "fail": lambda: queue.fail(lease, "error"),
        "release": lambda: queue.release(lease),
        "retry": lambda: queue.retry(ACME, lease.job_id),
        "get": lambda: queue.get(ACME, lease.job_id),
        "find": lambda: queue.find(lease.job_id),
        "find_leased_any": lambda: queue.find_leased_any(lease.job_id),
        "list": lambda: queue.list(),
        "counts": lambda: queue.counts(),
        "scopes": lambda: queue.scopes(),
        "reap_expired": lambda: queue.reap_expired(),
        "payload": lambda: lease.payload,
    }


VERBS = sorted(verbs(None, None))


@pytest.fixture
def lease(queue):
    queue.enqueue(ACME, "large", LARGE)
    return queue.lease_next(ACME, worker_id="w")


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_after_close_raises_store_closed(queue, lease, verb):
    queue.close()
    with pytest.raises(StoreClosed):
        verbs(queue, lease)[verb]()


def test_what_a_record_has_in_hand_can_be_read_after_close(queue):
    queue.enqueue(ACME, "small", b"small")
    small = queue.lease_next(ACME, worker_id="w")
    large = queue.enqueue(ACME, "large", LARGE)
    assert large.payload == LARGE
    queue.close()
    assert small.payload == b"small"
    assert large.payload == LARGE
    assert [event.transition for event in small.events] == ["enqueued", "leased"]


def test_close_may_be_called_again(queue):
    queue.close()
    queue.close()
    with queue:
        pass


def test_a_reaper_can_be_asked_for_on_a_closed_queue_and_ends_by_itself(queue):
    queue.close()
    reaper = queue.start_reaper()
    assert not reaper.wait_pass(beyond=0, timeout_secs=PATIENCE_SECS)
    queue.close()


@pytest.mark.parametrize("durability", ["sync", "group", "os"])
def test_threads_at_work_see_store_closed_and_nothing_else(path, together, durability):
    for _ in range(5):
        queue = Queue.open(path, QueueConfig(durability=durability, memtable_bytes=65536))
        queue.enqueue_many(ACME, [JobSpec("x", LARGE)] * 50)
        lease = queue.lease_next(ACME, worker_id="w")
        under_way = threading.Barrier(17)

        def work(verb, queue=queue, lease=lease, under_way=under_way):
            under_way.wait(PATIENCE_SECS)
            try:
                while True:
                    _repeat(queue, lease, verb)
            except StoreClosed:
                return verb

        def close(queue=queue, under_way=under_way):
            under_way.wait(PATIENCE_SECS)
            for _ in range(20):
                queue.counts()
            queue.close()

        wanted = [
            *["enqueue", "work", "payload", "list", "reap_expired", "extend"] * 2,
            "counts",
            "get",
            "scopes",
            "any",
        ]
        assert together(close, *[lambda verb=verb: work(verb) for verb in wanted])[1:] == wanted


def _repeat(queue, lease, verb):
    if verb == "work":
        held = queue.lease_next(ACME, worker_id="w")
        if held is not None:
            queue.complete(held)
    elif verb == "payload":
        assert queue.get(ACME, lease.job_id).payload == LARGE
    elif verb == "any":
        queue.lease_next_any("no such kind", worker_id="w", wait_secs=0.001)
    else:
        verbs(queue, lease)[verb]()


def test_close_wakes_those_who_wait(queue, together):
    looked = threading.Barrier(9)

    def wait(scope):
        looked.wait(PATIENCE_SECS)
        with pytest.raises(StoreClosed):
            if scope is None:
                queue.lease_next_any("nothing", worker_id="w", wait_secs=3600)
            else:
                queue.lease_many(scope, 5, worker_id="w", wait_secs=3600)

    def close():
        looked.wait(PATIENCE_SECS)
        while not queue._engine.ready_ticket(ACME.key):  # until the enqueue below: all others wait by then or will not
            queue.enqueue(ACME, "gated", delay_secs=3600)
        queue.close()

    together(close, *[lambda scope=scope: wait(scope) for scope in [ACME, Scope.SYSTEM, None, ACME] * 2])


def test_whoever_closes_finds_the_directory_free_when_close_returns(path, together):
    for _ in range(20):
        queue = Queue.open(path, QueueConfig(durability="os", memtable_bytes=65536))
        queue.enqueue_many(ACME, [JobSpec("x", LARGE)] * 20)
        reopened = threading.Lock()

        def close(queue=queue, reopened=reopened):
            queue.close()
            with reopened, Queue.open(path, QUICK) as again:  # StoreLocked if the queue still has it
                return again.counts()[JobState.PENDING]

        assert len(set(together(*[close] * 4))) == 1


def test_closing_from_many_threads_and_the_reaper_ends(path, together):
    for _ in range(10):
        queue = Queue.open(path, QueueConfig(durability="os", reaper_interval_secs=0.001))
        queue.start_reaper()
        together(*[queue.close] * 8)
        with pytest.raises(StoreClosed):
            queue.counts()


def test_an_unclosed_queue_that_is_garbage_gives_its_directory_back(path):
    for n in range(5):
        queue = Queue.open(path, QUICK)
        queue.enqueue(ACME, "x")
        cycle = [queue]
        cycle.append(cycle)
        del queue, cycle
        gc.collect()
        with Queue.open(path, QUICK) as queue:
            assert queue.counts()[JobState.PENDING] == n + 1


def test_a_record_outlives_its_garbage_queue_and_can_still_load_its_payload(path):
    record = Queue.open(path, QUICK).enqueue(ACME, "large", LARGE)
    gc.collect()
    assert record.payload == LARGE
    del record
    gc.collect()
    Queue.open(path, QUICK).close()


def test_an_engine_that_was_never_opened_refuses_and_does_not_crash(ended):
    program = """
from telha_queue.engines.rocks import RocksEngine
class Careless(RocksEngine):
    def __init__(self):
        pass
engine = Careless()
for verb in (engine.scopes, engine.wake, engine.last_seen_us, engine.close, lambda: engine.counts(None)):
    try:
        verb()
    except StorageError:
        pass
"""
    ended(program)


def test_counts_attempts_and_order_are_the_same_after_each_of_20_reopenings(path, clock, rows):
    queue = Queue.open(path, QUICK, clock)
    for n in range(60):
        queue.enqueue(ACME, f"kind:{n % 3}", LARGE if n % 10 == 0 else b"p", priority=n % 4, idempotency_key=str(n))
    for n in range(25):
        lease = queue.lease_next(ACME, worker_id=f"w{n}")
        (queue.complete, lambda job: queue.fail(job, "e"), lambda job: queue.fail(job, "e", retryable=False), id)[
            n % 4
        ](lease)
    clock.advance(secs=301)
    queue.reap_expired()
    held = queue.lease_many(ACME, 5, worker_id="holder")
    before = rows(queue), queue.counts(), queue.scopes()
    for _ in range(20):
        queue.close()
        queue = Queue.open(path, QUICK, clock)
        assert (rows(queue), queue.counts(), queue.scopes()) == before
    assert all(queue.complete(lease).state == JobState.COMPLETED for lease in held)
    with pytest.raises(LookupError):
        queue.get(ACME, UUID(int=1))
    queue.close()
