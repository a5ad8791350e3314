"""Fork: a forked child may use no queue and harms none, whatever the threads of its parent were doing."""

from __future__ import annotations

import pytest

from telha_queue.config import QueueConfig
from telha_queue.queue import Queue

FORKED = """
from queue_verbs import verbs
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

def refuse_all(queue, lease, say):
    opening = {"open": lambda: Queue.open(PATH + "-of-the-child", QUICK), "open again": lambda: Queue.open(PATH, QUICK)}
    for verb, call in {**verbs(queue, lease), **opening}.items():
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


def test_a_fork_beside_a_thread_that_registers_exit_handlers_does_not_hang_its_child(ended):
    ended("""
import ctypes
libc = ctypes.CDLL(None)
free = ctypes.cast(libc.free, ctypes.c_void_p)
queue = Queue.open(PATH, QUICK)
over = threading.Event()
def register():
    for _ in range(400_000):
        if over.is_set():
            return
        libc.__cxa_atexit(free, None, None)
for _ in range(3):
    threading.Thread(target=register, daemon=True).start()
for _ in range(50):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)  # for ever, if the child hangs
over.set()
""")
