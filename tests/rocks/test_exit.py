"""The end of the process: whichever way it goes, it goes as if the queue had been closed, and keeps everything."""

from __future__ import annotations

import os
import signal

import pytest

from telha_queue.config import QueueConfig
from telha_queue.job import JobState
from telha_queue.queue import Queue
from telha_queue.scope import Scope

ACME = Scope.named("acme")
QUICK = QueueConfig(durability="os")
PATIENCE_SECS = 60

OPEN = """
durability = sys.argv[2] if len(sys.argv) > 2 else "os"
queue = Queue.open(PATH, QueueConfig(durability=durability, group_sync_ms=60000, memtable_bytes=65536))
queue.enqueue(ACME, "first", b"x" * 5000)
"""

DAEMONS = """
acknowledged = [0] * 8
busy = threading.Barrier(9)
def work(n):
    busy.wait()
    while True:
        queue.enqueue(ACME, "x", b"y" * (5000 if n == 0 else 300))
        acknowledged[n] += 1
        if n % 2:
            held = queue.lease_next(ACME, worker_id=str(n))
            if held is not None:
                queue.checkpoint(held, b"z" * 100)
                queue.fail(held, "error") if n == 3 else queue.complete(held)
        if n == 5:
            queue.list(limit=20), queue.reap_expired(), queue.counts()
for n in range(8):
    threading.Thread(target=work, args=(n,), daemon=True).start()
busy.wait()
while sum(acknowledged) < 200:
    queue.enqueue(ACME, "main")
    acknowledged[7] += 1
"""

WAITERS = """
class Watched:  # says when a waiter has found nothing and goes to sleep
    def __init__(self, engine, sleepers):
        self.engine, self.sleepers = engine, sleepers
    def __getattr__(self, name):
        return getattr(self.engine, name)
    def wait_ready(self, *words):
        self.sleepers.release()
        return self.engine.wait_ready(*words)
sleepers = threading.Semaphore(0)
queue._engine = Watched(queue._engine, sleepers)
"""

ENDS = {
    "return": ("", 0, ""),
    "sys.exit": ("sys.exit(7)", 7, ""),
    "exit inside with": ("with queue:\n    sys.exit(7)", 7, ""),
    "exception": ("raise RuntimeError('over')", 1, "RuntimeError: over"),
    "exception inside with": ("with queue:\n    raise RuntimeError('over')", 1, "RuntimeError: over"),
    "exit in a thread": ("t = threading.Thread(target=sys.exit, args=(7,)); t.start(); t.join()", 0, ""),
    "reference cycle": ("queue.me = queue; cycle = [queue]; cycle.append(cycle)", 0, ""),
    "deleted, a record left": ("record = queue.enqueue(ACME, 'x'); del queue", 0, ""),
    "reaper": ("queue.start_reaper()", 0, ""),
    "os._exit": ("os._exit(7)", 7, ""),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM); signal.pause()", -signal.SIGTERM, ""),
    "KeyboardInterrupt": ("raise KeyboardInterrupt", -signal.SIGINT, "KeyboardInterrupt"),
}


def kept(path):
    """How many jobs are there; every one is whole."""
    with Queue.open(path, QUICK) as queue:
        page = queue.list(limit=1000)
        assert all(len(job.payload) == job.payload_bytes for job in page)
        return sum(queue.counts().values())


@pytest.mark.parametrize("durability", ["sync", "group", "os"])
@pytest.mark.parametrize("end", ENDS)
def test_a_program_that_never_closes_ends_as_if_it_had(ended, path, end, durability):  # D11
    line, code, complaint = ENDS[end]
    ended(f"{OPEN}\n{line}", durability, code=code, complaint=complaint)
    assert kept(path) >= 1


@pytest.mark.parametrize("durability", ["sync", "group", "os"])
@pytest.mark.parametrize("end", ["return", "sys.exit", "exception", "exit inside with", "SIGTERM", "os._exit"])
def test_daemon_threads_inside_verbs_neither_crash_the_exit_nor_lose_a_job(ended, path, end, durability):
    line, code, _ = ENDS[end]
    counted = "\nsay(sum(acknowledged) + 1)\n"
    # Daemon threads that meet the closed queue die of StoreClosed, which Python reports.
    out = ended(OPEN + DAEMONS + counted + line, durability, code=code, complaint=None)
    assert kept(path) >= int(out[-1])


@pytest.mark.parametrize("end", ["return", "sys.exit", "exception", "exit inside with", "SIGTERM"])
def test_daemon_threads_that_wait_for_jobs_do_not_keep_the_process(ended, path, end):
    program = """
for n in range(4):
    call = queue.lease_next_any if n % 2 else lambda *k, **more: queue.lease_next(Scope.SYSTEM, *k, **more)
    threading.Thread(target=call, args=("none",), kwargs={"worker_id": "w", "wait_secs": 3600}, daemon=True).start()
for _ in range(4):
    sleepers.acquire()
"""
    line, code, _ = ENDS[end]
    ended(OPEN + WAITERS + program + line, code=code, complaint=None)
    assert kept(path) == 1


def test_daemon_threads_that_open_and_close_queues_do_not_crash_the_exit(ended):
    program = """
opened = threading.Semaphore(0)
def work(n):
    while True:
        with Queue.open(f"{PATH}-{n}", QueueConfig(durability="os", memtable_bytes=65536)) as mine:
            mine.enqueue(ACME, "x", b"y" * 5000)
        opened.release()
for n in range(4):
    threading.Thread(target=work, args=(n,), daemon=True).start()
for _ in range(12):
    opened.acquire()
"""
    ended(OPEN + program, complaint=None)


def test_a_daemon_thread_that_is_inside_close_does_not_crash_the_exit(ended, path):
    program = """
for _ in range(50):
    queue.enqueue(ACME, "x", b"y" * 4000)
closing = threading.Event()
def close():
    closing.set()
    queue.close()
threading.Thread(target=close, daemon=True).start()
closing.wait()
"""
    ended(OPEN + program)
    assert kept(path) == 51


def test_one_queue_that_cannot_be_closed_does_not_keep_the_others_open(ended, path):
    program = """
others = [Queue.open(f"{PATH}-{n}", QUICK) for n in range(8)]
def refuse():
    raise StorageError("the disk is gone")
for other in others:
    other.enqueue(ACME, "x")
queue.close = refuse
import atexit
atexit._run_exitfuncs()
for other in others:
    try:
        other.counts()
        say("open")
    except StoreClosed:
        say("closed")
os._exit(0)
"""
    assert ended(OPEN + program, complaint=None) == ["closed"] * 8


@pytest.mark.parametrize("call", ["lease_next(ACME, 'none'", "lease_many(ACME, 9, 'none'", "lease_next_any('none'"])
def test_ctrl_c_ends_a_wait_and_the_queue_works_on(start, path, call):
    program = f"""
def interrupt():
    sleepers.acquire()
    say("asleep")
threading.Thread(target=interrupt).start()
try:
    queue.{call}, worker_id="w", wait_secs=3600)
except KeyboardInterrupt:
    queue.complete(queue.lease_next(ACME, worker_id="w"))
    queue.close()
    say("interrupted")
"""
    child = start(OPEN + WAITERS + program)
    assert child.stdout.readline() == "asleep\n"
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=PATIENCE_SECS)
    assert (out, err, child.returncode) == ("interrupted\n", "", 0)
    with Queue.open(path, QUICK) as queue:
        assert queue.counts()[JobState.COMPLETED] == 1


def test_ctrl_c_that_nobody_catches_ends_the_process_and_keeps_its_jobs(start, path):
    child = start(
        OPEN + WAITERS + "threading.Thread(target=lambda: (sleepers.acquire(), say('asleep'))).start()\n"
        "with queue:\n    queue.lease_next(ACME, 'none', worker_id='w', wait_secs=3600)"
    )
    assert child.stdout.readline() == "asleep\n"
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=PATIENCE_SECS)
    assert child.returncode == -signal.SIGINT
    assert err.endswith("KeyboardInterrupt\n")
    assert kept(path) == 1


def test_a_handler_that_returns_lets_the_wait_go_on(start):
    program = """
signal.signal(signal.SIGUSR1, lambda *_: say("handled"))
def feed():
    sleepers.acquire()
    say("asleep")
    sys.stdin.readline()
    queue.enqueue(ACME, "late")
threading.Thread(target=feed).start()
leased = queue.lease_next(ACME, "late", worker_id="w", wait_secs=3600)
say(leased.kind)
"""
    child = start(OPEN + WAITERS + program)
    assert child.stdout.readline() == "asleep\n"
    os.kill(child.pid, signal.SIGUSR1)
    assert child.stdout.readline() == "handled\n"
    out, err = child.communicate("go\n", timeout=PATIENCE_SECS)
    assert (out, err, child.returncode) == ("late\n", "", 0)


def test_a_call_after_a_daemon_thread_died_in_its_turn_is_refused_and_not_kept_waiting(ended, path):
    # Such a thread ends where it asks for the interpreter's lock, and never gives its turn back.
    program = """
queue = Queue.open(PATH, QUICK)
def work():
    while True:
        try:
            queue.enqueue(ACME, "x")
        except StoreClosed:
            pass
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
class Last:
    def __del__(self, queue=queue, scope=ACME, say=say):
        try:
            queue.enqueue(scope, "last")
        except Exception:  # StoreClosed, unless the interpreter has already forgotten its modules
            say("refused")
import builtins
builtins.kept = Last()
threading.Event().wait(0.2)
"""
    for _ in range(3):
        assert ended(program, where=path) == ["refused"]
