"""Close: in whatever state threads, records and garbage are, a queue ends in order and its directory is free."""

from __future__ import annotations

import gc
import threading

import pytest
from queue_verbs import ACME, verbs

from telha_queue.config import QueueConfig
from telha_queue.engines.rocks import RocksEngine
from telha_queue.errors import StoreClosed, StoreLocked
from telha_queue.job import JobSpec, JobState
from telha_queue.queue import Queue
from telha_queue.scope import Scope

QUICK = QueueConfig(durability="os")
LARGE = b"x" * 5000
PATIENCE_SECS = 60


@pytest.fixture
def queue(path):
    with Queue.open(path, QUICK) as queue:
        yield queue


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
def test_threads_at_work_see_store_closed_and_nothing_else(path, together, durability):  # D4
    for n in range(5):
        queue = Queue.open(path.with_name(f"queue{n}"), QueueConfig(durability=durability, memtable_bytes=65536))
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
        if scope is None:
            with pytest.raises(StoreClosed):
                queue.lease_next_any("nothing", worker_id="w", wait_secs=3600)
        else:
            with pytest.raises(StoreClosed):
                queue.lease_many(scope, 5, worker_id="w", wait_secs=3600)

    def close():
        looked.wait(PATIENCE_SECS)
        while not queue._engine.ready_ticket(ACME.key):  # until the enqueue below: all others wait by then or will not
            queue.enqueue(ACME, "gated", delay_secs=3600)
        queue.close()

    together(close, *[lambda scope=scope: wait(scope) for scope in [ACME, Scope.SYSTEM, None, ACME] * 2])


def test_whoever_closes_finds_the_directory_free_when_close_returns(path, together):
    for _ in range(10):
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


def test_group_mode_has_its_syncing_thread_while_open_and_close_does_not_wait_for_its_pause(ended):
    program = """
def threads():
    return len(os.listdir("/proc/self/task"))
def open_new(name, durability):
    return Queue.open(f"{PATH}-{name}", QueueConfig(durability=durability, group_sync_ms=60_000))
with open_new("first", "os"):
    without = threads()  # RocksDB's own
for n in range(50):
    with open_new(n, "group") as queue:
        assert threads() > without
        queue.enqueue(ACME, "x")
"""
    ended(program)


def test_an_unclosed_queue_that_is_garbage_gives_its_directory_back(path):  # D5
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


def test_an_engine_is_opened_once_and_keeps_its_directory(path):
    engine = RocksEngine.open(path, QUICK)
    with pytest.raises(Exception, match="already"):
        engine.__init__(bytes(path), bytes(path / "telha.lock"), QUICK)
    with pytest.raises(StoreLocked):
        RocksEngine.open(path, QUICK)
    engine.close()
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
    queue.close()
