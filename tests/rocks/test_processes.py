"""Starting processes beside a queue: what is forked early enough or started afresh works, and holds no lock."""

from __future__ import annotations

import fcntl

import pytest

from telha_queue.config import QueueConfig
from telha_queue.queue import Queue


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


def test_a_fork_during_the_first_open_of_a_process_does_not_hang_its_child(ended):
    # The engine is imported before: that a fork beside an import hangs the child's own import is Python's affair.
    program = """
import telha_queue.engines.rocks
opener = threading.Thread(target=lambda: Queue.open(PATH, QUICK).close())
opener.start()
pid = os.fork()
if pid == 0:
    signal.alarm(20)
    try:
        Queue.open(PATH + "-of-the-child", QUICK).close()  # it may, if it was forked early enough
    except StoreForked:
        pass
    os._exit(0)
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
assert code == 0, code
opener.join()
"""
    for _ in range(10):
        ended("sys.setswitchinterval(1e-5)\n" + program)


def test_a_fork_beside_opening_and_closing_queues_keeps_no_directory_locked(ended):
    program = """
sys.setswitchinterval(1e-5)
over = threading.Event()
def reopen(n):
    while not over.is_set():
        Queue.open(f"{PATH}-{n}", QUICK).close()
failures = []
threading.excepthook = lambda failure: failures.append(failure.exc_value)
threads = [threading.Thread(target=reopen, args=(n,)) for n in range(3)]
[thread.start() for thread in threads]
children = []
for _ in range(150):
    children.append(os.fork())
    if children[-1] == 0:
        signal.pause()
    if len(children) == 15:
        [(os.kill(pid, signal.SIGKILL), os.waitpid(pid, 0)) for pid in children]
        children.clear()
over.set()
[thread.join() for thread in threads]
assert not failures, failures
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


def test_processes_that_make_one_directory_at_once_are_owners_or_told_that_it_is_locked(ended, quick_path):
    program = """
import telha_queue.engines.rocks
for n in range(10):
    wait, start = os.pipe()
    children = []
    for _ in range(4):
        children.append(os.fork())
        if children[-1] == 0:
            code = 1
            os.close(start)
            os.read(wait, 1)
            try:
                Queue.open(f"{PATH}-{n}", QUICK).close()
                code = 0
            except StoreLocked:
                code = 8
            finally:
                os._exit(code)
    os.close(start)  # all at once
    os.close(wait)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    assert 0 in codes and set(codes) <= {0, 8}, codes
"""
    ended(program, where=quick_path / "queue")


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


def test_the_lock_file_is_held_while_the_queue_is_open_and_free_once_it_is_closed(path):
    with Queue.open(path, QueueConfig(durability="os")), pytest.raises(BlockingIOError):
        lock(path)
    lock(path)


def lock(path):
    with (path / "telha.lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
