"""T23: ways to make processes beside a queue, each as a program: python -m tests.torture.api_forking SCENE FOLDER.

A scene ends with 0 when all was as it should be. What tests/rocks has of forks already is not here again.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from telha_queue import JobState, Queue, QueueConfig, Scope
from telha_queue.errors import JobError, StoreForked

ACME = Scope.named("acme")
QUICK = QueueConfig(durability="os", memtable_bytes=65_536)
PATIENCE_SECS = 60
JOBS = 60


def use(path: str) -> str:
    """In a child: open a queue of its own, use it as far as a flush, and tell how that went."""
    try:
        with Queue.open(path, QUICK) as queue:
            for _ in range(JOBS):
                queue.enqueue(ACME, "x", b"y" * 4000)
            lease = queue.lease_next(ACME, worker_id="w")
            return "nothing to lease" if lease is None else str(queue.complete(lease).state)
    except JobError as error:
        return type(error).__name__


def used_by(context: Any, path: Path) -> str:
    """What `use` tells in a process of a multiprocessing context."""
    with context.Pool(1) as pool:
        return str(pool.apply_async(use, (str(path),)).get(PATIENCE_SECS))


def forked(work: Callable[[], object]) -> int:
    """Fork and do it in the child; its exit code, which is 7 when a fork was refused and 0 when all went well."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(PATIENCE_SECS)
        try:
            work()
        except StoreForked:
            os._exit(7)
        except BaseException:  # noqa: BLE001  # nothing of the parent's is to run in the child
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def is_well(queue: Queue) -> None:
    """The parent's queue works, whatever its children tried."""
    before = queue.counts()[JobState.COMPLETED]
    for _ in range(JOBS):
        queue.enqueue(ACME, "x", b"y" * 4000)
    leases = queue.lease_many(ACME, JOBS, worker_id="w")
    assert len(leases) == JOBS, len(leases)
    assert all(isinstance(done, type(leases[0])) for done in queue.complete_many(leases))
    assert queue.counts()[JobState.COMPLETED] == before + JOBS


def os_fork_in_a_thread(folder: Path) -> None:
    """The forking thread is the child's main thread, and is refused like any other."""
    codes: list[int] = []
    with Queue.open(folder / "queue", QUICK) as queue:
        for _ in range(5):
            thread = threading.Thread(target=lambda: codes.append(forked(queue.counts)))
            thread.start()
            thread.join(PATIENCE_SECS)
        assert codes == [7] * 5, codes
        is_well(queue)


def multiprocessing_fork(folder: Path) -> None:
    with Queue.open(folder / "queue", QUICK) as queue:
        assert used_by(multiprocessing.get_context("fork"), folder / "child") == "StoreForked"
        assert not (folder / "child").exists()
        is_well(queue)


def forkserver_started_late(folder: Path) -> None:
    """The server is started afresh, so what its children open is theirs."""
    with Queue.open(folder / "queue", QUICK) as queue:
        assert used_by(multiprocessing.get_context("forkserver"), folder / "child") == "completed"
        assert used_by(multiprocessing.get_context("forkserver"), folder / "queue") == "StoreLocked"
        is_well(queue)


def forkserver_started_early(folder: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["telha_queue.engines.rocks"])
    assert used_by(context, folder / "first") == "completed"
    with Queue.open(folder / "queue", QUICK) as queue:
        assert used_by(context, folder / "second") == "completed"
        is_well(queue)


def spawn(folder: Path) -> None:
    with Queue.open(folder / "queue", QUICK) as queue:
        context = multiprocessing.get_context("spawn")
        assert used_by(context, folder / "child") == "completed"
        assert used_by(context, folder / "queue") == "StoreLocked"
        is_well(queue)


def executor_of_forks(folder: Path) -> None:
    with Queue.open(folder / "queue", QUICK) as queue:
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
            told = set(pool.map(use, [str(folder / "a"), str(folder / "b")], timeout=PATIENCE_SECS))
        assert told == {"StoreForked"}, told
        is_well(queue)


def prefork_before_open(folder: Path) -> None:
    """A server that loads everything, forks its workers and opens nothing itself: all of them work."""
    import telha_queue.engines.rocks  # noqa: F401

    pids = []
    for n in range(4):
        pid = os.fork()
        if pid == 0:
            signal.alarm(PATIENCE_SECS)
            os._exit(0 if use(str(folder / f"worker{n}")) == "completed" else 1)
        pids.append(pid)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    assert codes == [0] * 4, codes


def prefork_of_one_directory(folder: Path) -> None:
    """Who makes it first, and owns it: one at a time. The others are told so at once, and it is whole afterwards."""
    import telha_queue.engines.rocks  # noqa: F401

    pids = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            signal.alarm(PATIENCE_SECS)
            os._exit({"completed": 0, "StoreLocked": 8}.get(use(str(folder / "queue")), 1))
        pids.append(pid)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    assert set(codes) <= {0, 8}, codes
    with Queue.open(folder / "queue", QUICK) as queue:
        assert queue.counts()[JobState.COMPLETED] == codes.count(0) > 0


def prefork_after_close(folder: Path) -> None:
    """RocksDB's threads outlive a queue that is closed, and no child has them: opening one there is refused."""
    with Queue.open(folder / "queue", QUICK) as queue:
        is_well(queue)
    assert forked(lambda: Queue.open(folder / "child", QUICK)) == 7
    assert not (folder / "child").exists()
    with Queue.open(folder / "queue", QUICK) as queue:
        is_well(queue)


def daemon_of_a_daemon(folder: Path) -> None:
    """Forked twice, as daemons are; the grandchild knows as well."""
    with Queue.open(folder / "queue", QUICK) as queue:
        assert forked(lambda: os._exit(forked(queue.counts))) == 7
        is_well(queue)


def subprocess_while_open(folder: Path) -> None:
    """Another program finds the directory taken, and is told by whom."""
    program = (
        "import sys\nfrom telha_queue import Queue\nfrom telha_queue.errors import StoreLocked\n"
        "try:\n    Queue.open(sys.argv[1])\nexcept StoreLocked as locked:\n    print(locked.pid)"
    )
    with Queue.open(folder / "queue", QUICK) as queue:
        command = [sys.executable, "-c", program, str(folder / "queue")]
        told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_SECS).stdout
        assert told.split() == [str(os.getpid())], told
        is_well(queue)


def forks_while_threads_write(folder: Path) -> None:
    """Enough on both sides to fill several blocks of the log: children that would write there would be seen."""
    with Queue.open(folder / "queue", QUICK) as queue:
        over, made = threading.Event(), [0] * 4

        def work(n: int) -> None:
            while not over.is_set():
                queue.enqueue(ACME, "x", b"y" * 3000)
                made[n] += 1

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        codes = {forked(lambda: [queue.enqueue(ACME, "child", b"z" * 3000) for _ in range(20)]) for _ in range(20)}
        over.set()
        for thread in threads:
            thread.join(PATIENCE_SECS)
        assert codes == {7}, codes
    with Queue.open(folder / "queue", QUICK) as queue:
        assert queue.counts()[JobState.PENDING] == sum(made), (queue.counts(), made)


SCENES: dict[str, Callable[[Path], None]] = {
    scene.__name__: scene
    for scene in (
        os_fork_in_a_thread, multiprocessing_fork, forkserver_started_late, forkserver_started_early, spawn,
        executor_of_forks, prefork_before_open, prefork_of_one_directory, prefork_after_close, daemon_of_a_daemon,
        subprocess_while_open, forks_while_threads_write,
    )
}  # fmt: skip

if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)
    SCENES[sys.argv[1]](Path(sys.argv[2]))
