"""Fork: a forked child may use no queue and harms none; everything that starts processes properly works."""

from __future__ import annotations

import fcntl

import pytest

from telha_queue.config import QueueConfig
from telha_queue.queue import Queue

FORKED = """
def in_child(work):
    '''Fork; the child says how `work` ends and leaves through os._exit. Returns what it said.'''
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            work(lambda *words: os.write(write, (" ".join(map(str, words)) + chr(10)).encode()))
        except BaseException as error:
            os.write(write, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(write)
    told = b""
    while chunk := os.read(read, 65536):
        told += chunk
    os.close(read)
    assert os.waitpid(pid, 0)[1] == 0
    return told.decode()

def refusals(queue, lease):
    '''Every verb, with arguments that are good.'''
    id = lease.job_id
    return {
        "enqueue": lambda: queue.enqueue(ACME, "x"),
        "enqueue_many": lambda: queue.enqueue_many(ACME, [JobSpec("x")]),
        "lease_next": lambda: queue.lease_next(ACME, worker_id="w"),
        "lease_next wait": lambda: queue.lease_next(ACME, worker_id="w", wait_secs=3600),
        "lease_next_any": lambda: queue.lease_next_any(worker_id="w"),
        "lease_many": lambda: queue.lease_many(ACME, 2, worker_id="w"),
        "extend": lambda: queue.extend(lease),
        "extend_any": lambda: queue.extend_any(id, "w", 1),
        "checkpoint": lambda: queue.checkpoint(lease, b"here"),
        "stats": lambda: queue.stats(lease, "half"),
        "complete": lambda: queue.complete(lease),
        "complete_many": lambda: queue.complete_many([lease]),
        "fail": lambda: queue.fail(lease, "error"),
        "release": lambda: queue.release(lease),
        "retry": lambda: queue.retry(ACME, id),
        "get": lambda: queue.get(ACME, id),
        "find": lambda: queue.find(id),
        "find_leased_any": lambda: queue.find_leased_any(id),
        "list": lambda: queue.list(),
        "counts": lambda: queue.counts(),
        "scopes": lambda: queue.scopes(),
        "reap_expired": lambda: queue.reap_expired(),
        "payload": lambda: lease.payload,
        "open": lambda: Queue.open(PATH + "-of-the-child", QUICK),
        "open again": lambda: Queue.open(PATH, QUICK),
    }

def refuse_all(queue, lease, say):
    for verb, call in refusals(queue, lease).items():
        try:
            call()
            say(verb, "was not refused")
        except StoreForked:
            pass
        except Exception as error:
            say(verb, "raised", repr(error))
    say("done")

queue = Queue.open(PATH, QUICK)
queue.enqueue(ACME, "large", b"x" * 5000)
lease = queue.lease_next(ACME, worker_id="w")
"""


def test_every_verb_and_open_are_refused_in_a_forked_child(ended, path):
    assert ended(FORKED + 'print(in_child(lambda say: refuse_all(queue, lease, say)), end="")') == ["done"]
    with Queue.open(path, QueueConfig(durability="os")) as queue:
        assert sum(queue.counts().values()) == 1
    assert not path.with_name("queue-of-the-child").exists()


def test_a_child_is_refused_while_other_threads_are_inside_verbs(ended, path):
    program = """
sys.setswitchinterval(1e-5)
over = threading.Event()
acknowledged = []
def work():
    while not over.is_set():
        acknowledged.append(queue.enqueue(ACME, "x", b"y" * 500).job_id)
threads = [threading.Thread(target=work) for _ in range(4)]
threads.append(threading.Thread(target=lambda: queue.lease_next(Scope.SYSTEM, worker_id="w", wait_secs=3600)))
[thread.start() for thread in threads]
queue.start_reaper().wait_pass(beyond=0)
said = {in_child(lambda say: refuse_all(queue, lease, say)) for _ in range(40)}
over.set()
queue.enqueue(Scope.SYSTEM, "end")
[thread.join() for thread in threads]
say(*map(repr, said))
say(len(acknowledged))
say(sum(queue.counts().values()))
assert all(queue.get(ACME, job_id) for job_id in acknowledged)
"""
    said, acknowledged, counted = ended(FORKED + program)
    assert said == repr("done\n")
    assert int(counted) == int(acknowledged) + 2
    with Queue.open(path, QueueConfig(durability="os")) as queue:
        assert sum(queue.counts().values()) == int(counted)


def test_a_lock_of_the_clock_that_another_thread_held_at_the_fork_does_not_hang_the_child(ended):
    # Forked while a thread stands between the two lines of the clock that take and give back its lock.
    program = """
taken, give_back = threading.Event(), threading.Event()
def hold():
    with queue._now_us._lock:
        taken.set()
        give_back.wait()
holder = threading.Thread(target=hold)
holder.start()
taken.wait()
print(in_child(lambda say: refuse_all(queue, lease, say)), end="")
give_back.set()
holder.join()
"""
    assert ended(FORKED + program) == ["done"]


@pytest.mark.parametrize("reaping", [False, True])
def test_close_and_garbage_collection_in_the_child_do_nothing(ended, path, reaping):
    program = """
reaping = sys.argv[2] == "True"
if reaping:
    queue.start_reaper().wait_pass(beyond=0)
def leave(say):
    global queue, lease
    queue.close()
    queue.close()
    del queue, lease
    gc.collect()
    say("done")
assert in_child(leave).startswith("done")
for _ in range(100):
    queue.enqueue(ACME, "x", b"y" * 1000)
queue.complete(lease)
queue.close()
"""
    ended(FORKED + program, reaping)
    with Queue.open(path, QueueConfig(durability="os")) as queue:
        assert list(queue.counts().values()) == [100, 0, 1, 0, 0]


@pytest.mark.parametrize("flushed", [False, True])
@pytest.mark.parametrize("way", ["return", "sys.exit", "raise"])
def test_a_child_that_ends_as_programs_do_neither_hangs_nor_harms(ended, path, way, flushed):
    program = """
way, flushed = sys.argv[2:]
if flushed == "True":  # RocksDB then has threads in the background, which the child has not
    queue.close()
    queue = Queue.open(PATH, QueueConfig(durability="os", memtable_bytes=65536))
    for _ in range(200):
        queue.enqueue(ACME, "x", b"y" * 4000)
before = queue.counts()
pid = os.fork()
if pid == 0:
    signal.alarm(30)
    if way == "raise":
        os.close(2)
        raise RuntimeError
    if way == "sys.exit":
        sys.exit(0)
else:
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code == (way == "raise"), code
    queue.enqueue(ACME, "after")
    assert sum(queue.counts().values()) == sum(before.values()) + 1
    queue.close()
    queue = Queue.open(PATH, QUICK)
    assert sum(queue.counts().values()) == sum(before.values()) + 1
"""
    ended(FORKED + program, way, flushed)


def test_the_directory_is_free_after_the_parent_died_while_its_child_lives(start, path):
    program = """
read, write = os.pipe()
pid = os.fork()
if pid == 0:
    os.close(write)
    os.read(read, 1)  # the parent is dead
    say("orphan")
    sys.stdin.read()  # until the test is over
    os._exit(0)
say("ready")
"""
    child = start(FORKED + program + "signal.pause()")
    assert child.stdout.readline() == "ready\n"
    child.kill()
    assert child.stdout.readline() == "orphan\n"
    child.wait()
    with Queue.open(path, QueueConfig(durability="os")) as queue:
        assert sum(queue.counts().values()) == 1
    child.stdin.close()


def test_a_process_that_never_opened_a_queue_may_fork_and_open_one_in_the_child(ended, path):
    program = """
pid = os.fork()
if pid == 0:
    with Queue.open(PATH, QueueConfig(durability="os", memtable_bytes=65536)) as queue:
        for _ in range(100):
            queue.enqueue(ACME, "x", b"y" * 4000)
else:
    assert os.waitpid(pid, 0)[1] == 0
    with Queue.open(PATH, QUICK) as queue:
        assert queue.counts()[JobState.PENDING] == 100
"""
    ended(program)


def test_subprocesses_run_while_a_queue_is_open_and_do_not_inherit_its_lock(ended, path):
    program = """
import subprocess
with Queue.open(PATH, QUICK) as queue:
    for more in ({}, {"close_fds": False}, {"preexec_fn": lambda: None}, {"start_new_session": True}):
        subprocess.run(["true"], check=True, **more)
        queue.enqueue(ACME, "x")
    sleeper = subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False)
assert queue.lease_next is not None
with Queue.open(PATH, QUICK) as queue:  # the sleeper lives, and holds nothing
    assert queue.counts()[JobState.PENDING] == 4
sleeper.communicate()
"""
    ended(program)


def test_multiprocessing_spawn_works_while_a_queue_is_open(ended, path):
    program = """
import multiprocessing, operator
from multiprocessing import get_context
with Queue.open(PATH, QUICK) as queue:
    queue.enqueue(ACME, "x")
    with get_context("spawn").Pool(2) as pool:
        assert pool.map(operator.neg, [1, 2, 3]) == [-1, -2, -3]
    queue.enqueue(ACME, "y")
    assert queue.counts()[JobState.PENDING] == 2
"""
    ended(program)


def test_the_lock_file_is_free_for_others_once_the_queue_is_closed(path):
    with Queue.open(path, QueueConfig(durability="os")):
        with (path / "telha.lock").open() as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with (path / "telha.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
