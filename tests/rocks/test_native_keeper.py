"""The native keeper of leases: it needs no interpreter, and ends in order with whatever ends it."""

from __future__ import annotations

import gc
import os
import signal
import threading
from pathlib import Path

import pytest

from telha_queue import _keeper
from telha_queue.config import QueueConfig
from telha_queue.errors import StoreClosed
from telha_queue.job import JobSpec, JobState, Lease
from telha_queue.queue import Queue
from telha_queue.scope import Scope

ACME = Scope.named("acme")
QUICK = QueueConfig(durability="os", memtable_bytes=65536)
PATIENCE_SECS = 30
DAY_US = 86_400_000_000

KEEPING = """
import ctypes, time
queue = Queue.open(PATH, QueueConfig(durability="os", memtable_bytes=65536))
def take(n, ttl_secs=0.1):
    queue.enqueue_many(ACME, [JobSpec("x", b"y" * 100)] * n)
    return queue.lease_many(ACME, n, worker_id="w", lease_ttl_secs=ttl_secs)
def until_renewed(lease):
    before = queue.find(lease.job_id).lease_deadline
    while queue.find(lease.job_id).lease_deadline == before:
        threading.Event().wait(0.002)
keeper = queue.keeper()
"""


@pytest.fixture
def queue(path):
    with Queue.open(path, QUICK) as queue:
        yield queue


@pytest.fixture
def take(queue):
    """take(n): lease n new jobs."""

    def lease(n, ttl_secs=0.05):
        queue.enqueue_many(ACME, [JobSpec("x")] * n)
        return queue.lease_many(ACME, n, worker_id="w", lease_ttl_secs=ttl_secs)

    return lease


def until_renewed(queue, lease):
    before = queue.find(lease.job_id).lease_deadline
    while queue.find(lease.job_id).lease_deadline == before:
        threading.Event().wait(0.002)


def keepers():
    """How many threads of this process keep leases."""
    return [path.read_text() for path in Path("/proc/self/task").glob("*/comm")].count("telha-keeper\n")


def test_a_handler_that_keeps_the_interpreter_to_itself_for_three_ttls_keeps_its_lease(ended):
    program = """
kept, control = take(2, ttl_secs=1)
[held] = keeper.hold([kept])
turns = []
def count():
    while True:
        turns.append(time.time_ns() // 1000)
        threading.Event().wait(0.001)
threading.Thread(target=count, daemon=True).start()
[log] = [f"{PATH}/{name}" for name in os.listdir(PATH) if name.endswith(".log")]
usleep = ctypes.PyDLL(None).usleep  # PyDLL keeps the interpreter's lock, ...
began_us, log_bytes = time.time_ns() // 1000, os.stat(log).st_size
usleep(3_000_000)
ended_us, grown_bytes = time.time_ns() // 1000, os.stat(log).st_size
job = queue.find(kept.job_id)
assert not [us for us in turns if began_us + 1_000_000 < us < ended_us - 1_000_000]  # ... so nobody else had a turn
assert grown_bytes > log_bytes  # but somebody has written
[renewed] = [event for event in job.events if event.transition == "extended"]
assert began_us <= renewed.at <= renewed.last_at <= ended_us
assert renewed.last_at > kept.lease_deadline
assert queue.reap_expired().reclaimed == 1
assert queue.find(control.job_id).state == JobState.PENDING  # nobody kept this one
assert held.over is None
assert queue.complete(kept).state == JobState.COMPLETED
"""
    ended(KEEPING + program)


def test_there_is_one_thread_once_a_lease_is_held_and_none_afterwards(queue, take):
    keeper = queue.keeper()
    assert keepers() == 0
    [held] = keeper.hold(take(1))
    assert type(held) is _keeper.Held
    keeper.hold(take(5))
    while keepers() == 0:  # it gives itself its name
        threading.Event().wait(0.002)
    assert keepers() == 1
    keeper.close()
    assert keepers() == 0


@pytest.mark.parametrize("way", ["queue", "engine"])
def test_whoever_closes_waits_for_a_renewal_under_way_and_the_thread_ends(path, together, way):
    for _ in range(10):
        queue = Queue.open(path, QUICK)
        queue.enqueue_many(ACME, [JobSpec("x")] * 200)
        leases = queue.lease_many(ACME, 200, worker_id="w", lease_ttl_secs=0.003)
        keeper = queue.keeper()
        holds = keeper.hold(leases)

        def wait(keeper=keeper):
            with pytest.raises(StoreClosed):
                keeper.wait(PATIENCE_SECS)

        until_renewed(queue, leases[0])
        together(wait, queue.close if way == "queue" else queue._engine.close)
        assert {held.over for held in holds} == {"ended"}
        queue.close()


def test_renewals_go_on_through_reopenings(queue, take):
    leases = take(300)
    holds = queue.keeper().hold(leases)
    for _ in range(15):
        queue.reopen()
        until_renewed(queue, leases[0])
    assert {held.over for held in holds} == {None}


def test_a_renewal_is_never_earlier_than_what_the_queue_has_seen(queue, take):
    [lease] = take(1, ttl_secs=3 * 86_400)
    ahead_us = queue.enqueue(ACME, "x").created_at + DAY_US
    assert queue.reap_expired(ahead_us).reclaimed == 0
    queue.keeper().hold([Lease(ACME, lease.job_id, "w", lease.lease_generation)])  # renewed at once
    until_renewed(queue, lease)
    renewed = queue.find(lease.job_id).events[-1]
    assert renewed.transition == "extended"
    assert ahead_us <= renewed.at <= queue.enqueue(ACME, "x").created_at


def test_no_room_for_the_thread_is_an_error_and_nothing_is_kept(ended):
    program = """
import resource
leases = take(3)
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
try:
    keeper.hold(leases)
except StorageError as error:
    say(error)
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
holds = keeper.hold(leases)
until_renewed(leases[0])
"""
    assert ended(KEEPING + program) == [f"no room for the thread of a keeper: {os.strerror(24)}"]


def test_a_forked_child_may_not_use_a_keeper_and_harms_none(ended):
    program = """
leases = take(50, ttl_secs=0.02)
holds = keeper.hold(leases)
for _ in range(20):
    until_renewed(leases[0])
    pid = os.fork()
    if pid == 0:
        refused = 0
        for call in (lambda: keeper.hold(leases), lambda: keeper.wait(60), lambda: queue.keeper()):
            try:
                call()
            except StoreForked:
                refused += 1
        keeper.end(holds)
        holds[0].progress()
        keeper.close()
        queue.close()
        del keeper, holds, queue
        gc.collect()
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
assert {held.over for held in holds} == {None}
"""
    ended(KEEPING + program)


ENDS = {
    "return": ("", 0),
    "sys.exit": ("sys.exit(7)", 7),
    "exception": ("raise RuntimeError('over')", 1),
    "os._exit": ("os._exit(7)", 7),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM); signal.pause()", -signal.SIGTERM),
    "kill": ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    "nobody refers to it": ("del queue, keeper; sys.exit(7)", 7),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_process_that_ends_with_live_holds_ends_as_it_should(ended, path, end):
    line, code = ENDS[end]
    program = """
leases = take(200, ttl_secs=0.003)
holds = keeper.hold(leases)
threading.Thread(target=keeper.wait, args=(3600,), daemon=True).start()
until_renewed(leases[0])
"""
    ended(f"{KEEPING}{program}{line}", code=code, complaint=None)
    with Queue.open(path, QUICK) as queue:
        assert queue.counts()[JobState.LEASED] == 200


def test_ctrl_c_ends_a_wait_for_what_is_over(start):
    child = start(KEEPING + "keeper.hold(take(1))\nsay('asleep')\nkeeper.wait(3600)")
    assert child.stdout.readline() == "asleep\n"
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=PATIENCE_SECS)
    assert child.returncode == -signal.SIGINT
    assert err.endswith("KeyboardInterrupt\n")


def test_an_unclosed_queue_that_is_garbage_gives_its_directory_back_with_its_keeper(path):
    for _ in range(5):
        queue = Queue.open(path, QUICK)
        queue.enqueue(ACME, "x")
        keeper = queue.keeper()
        holds = keeper.hold([queue.lease_next_any(worker_id="w", lease_ttl_secs=0.003)])
        del queue, keeper
        gc.collect()
        Queue.open(path, QUICK).close()
        holds[0].progress()
        assert holds[0].over == "ended"


def test_what_nobody_refers_to_is_kept_and_told_all_the_same(queue, take):
    keeper = queue.keeper()
    [lease] = take(1)
    keeper.hold([lease])
    gc.collect()
    until_renewed(queue, lease)
    queue.release(lease)
    [held] = keeper.wait(PATIENCE_SECS)
    assert held.over == "lost"
