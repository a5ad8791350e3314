"""T24 and T25: ways to end a process or a queue, each as a program: python -m tests.torture.api_endings SCENE FOLDER.

A scene says in CODES how its process must end; afterwards the directory must hold what was acknowledged. What
tests/rocks has of exits and closing already is not here again.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from telha_queue import JobRecord, JobSpec, Queue, QueueConfig, Scope
from telha_queue.errors import JobError, StoreClosed, StoreLocked

ACME = Scope.named("acme")
QUICK = QueueConfig(durability="os", memtable_bytes=65_536)
LARGE = b"x" * 5000
PATIENCE_SECS = 60
ROUNDS = 20


def say(count: int) -> None:
    """Tell how many jobs are there for sure, in a way that outlives whatever comes next."""
    os.write(1, f"{count}\n".encode())


def filled(folder: Path) -> Queue:
    queue = Queue.open(folder / "queue", QUICK)
    queue.enqueue_many(ACME, [JobSpec("x", LARGE)] * 20)
    say(20)
    return queue


def atexit_uses_the_queue(folder: Path) -> None:
    """What was registered after the first queue was opened runs while it is open still, or finds it closed."""
    queue = filled(folder)

    def last_words() -> None:
        try:
            queue.enqueue(ACME, "last")
            say(21)
        except StoreClosed:
            pass

    atexit.register(last_words)


def atexit_opens_one(folder: Path) -> None:
    """A queue that is opened while the interpreter goes down: it works, or says why not."""
    queue = filled(folder)

    def open_late() -> None:
        queue.close()
        try:
            Queue.open(folder / "queue", QUICK).enqueue(ACME, "last")
            say(21)
        except (JobError, RuntimeError):
            pass

    atexit.register(open_late)


def records_outlive_the_module(folder: Path) -> None:
    """Records whose payload was never read, kept where they go last of all."""
    queue = filled(folder)
    sys.modules["kept"] = queue.list(limit=20)  # type: ignore[assignment]
    sys.kept = queue.list(limit=1)  # type: ignore[attr-defined]


def finalizers_use_the_queue(folder: Path) -> None:
    queue = filled(folder)

    class Last:
        def __del__(self, queue: Queue = queue, closed: type[Exception] = StoreClosed) -> None:
            with suppress(closed):
                queue.counts()

    sys.last_of_all = [Last(), Last()]  # type: ignore[attr-defined]
    weakref.finalize(sys.last_of_all[0], queue.close)  # type: ignore[attr-defined]


def sigterm_closes(folder: Path) -> None:
    """A handler that closes the queue while its own thread waits in it, and others work."""
    queue = filled(folder)

    def work() -> None:
        try:
            while True:
                queue.enqueue(ACME, "more", LARGE)
        except StoreClosed:
            pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    signal.signal(signal.SIGTERM, lambda *_: queue.close())
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
    try:
        queue.lease_next(ACME, "nothing", worker_id="w", wait_secs=3600)
    except StoreClosed:
        for thread in threads:
            thread.join(PATIENCE_SECS)
        sys.exit(3)


def sigint_in_a_loop_of_verbs(folder: Path) -> None:
    """Ctrl-C between and inside verbs: the verb is whole, and the queue works on."""
    queue = filled(folder)
    done = 0
    for n in range(10):
        threading.Timer(0.01 + 0.003 * n, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            while True:
                queue.enqueue(ACME, "more", LARGE)
                done += 1
        except KeyboardInterrupt:
            pass
    there = sum(queue.counts().values())
    assert 20 + done <= there <= 30 + done, (there, done)
    say(there)
    sys.exit(3)


def sys_exit_while_sixteen_wait_and_work(folder: Path) -> None:
    queue = filled(folder)
    started = threading.Barrier(17)

    def work(n: int) -> None:
        started.wait(PATIENCE_SECS)
        while True:
            job = queue.lease_next(ACME, None if n % 2 else "nothing", worker_id="w", wait_secs=0.001 * n)
            if isinstance(job, JobRecord):
                queue.release(job)

    for n in range(16):
        threading.Thread(target=work, args=(n,), daemon=True).start()
    started.wait(PATIENCE_SECS)
    sys.exit(3)


def sub_interpreter(folder: Path) -> None:
    """The module works in another interpreter of the process or refuses to be loaded; the first goes on."""
    try:
        import _xxsubinterpreters as interpreters  # type: ignore[import-not-found]
    except ImportError:
        return
    queue = filled(folder)
    other = interpreters.create()
    program = (
        "try:\n    from telha_queue import Queue\n    Queue.open(PATH).close()\nexcept ImportError:\n    pass\n"
    ).replace("PATH", repr(str(folder / "other")))
    try:
        interpreters.run_string(other, program)
    except interpreters.RunFailedError as failed:
        if "ImportError" not in str(failed):
            raise
    interpreters.destroy(other)
    queue.enqueue(ACME, "after")
    say(21)


def closed_while_sixteen_work(folder: Path) -> None:
    """Time and again, at another moment each time; everybody sees StoreClosed, and then the directory is free."""
    for n in range(ROUNDS):
        queue = Queue.open(folder / "queue", QUICK)
        queue.enqueue_many(ACME, [JobSpec("x", LARGE)] * 5)
        ended: list[str] = []
        start = threading.Barrier(17)
        threads = [threading.Thread(target=_work, args=(queue, start, ended, k)) for k in range(16)]
        for thread in threads:
            thread.start()
        start.wait(PATIENCE_SECS)
        for _ in range(n * 3):
            queue.counts()
        queue.close()
        Queue.open(folder / "queue", QUICK).close()
        for thread in threads:
            thread.join(PATIENCE_SECS)
        assert ended == ["StoreClosed"] * 16, ended


def _work(queue: Queue, start: threading.Barrier, ended: list[str], k: int) -> None:
    verbs: tuple[Callable[[], object], ...] = (
        lambda: queue.enqueue(ACME, "x", LARGE),
        lambda: [queue.complete(job) for job in queue.lease_many(ACME, 2, worker_id=f"w{k}")],
        lambda: [job.payload for job in queue.list(limit=5)],
        lambda: queue.lease_next(ACME, "nothing", worker_id="w", wait_secs=3600),
        lambda: queue.reap_expired(),
        lambda: [queue.counts(), queue.scopes()],
        lambda: queue.lease_next_any("nothing", worker_id="w", wait_secs=0.0001),
        lambda: queue.start_reaper().run_now(),
    )
    start.wait(PATIENCE_SECS)
    try:
        while True:
            verbs[k % 7]()
    except Exception as error:  # noqa: BLE001  # told
        ended.append(type(error).__name__)


def garbage_in_every_state(folder: Path) -> None:
    """Queues that nobody closes, in cycles, with records, reapers and waiters that ended: the directory comes free."""
    for n in range(ROUNDS):
        queue = Queue.open(folder / "queue", QUICK)
        records = [queue.enqueue(ACME, "x", LARGE), *queue.list(limit=5)]
        cycle: list[object] = [queue, records]
        cycle.append(cycle)
        if n % 3 == 1:
            queue.extra = cycle  # type: ignore[attr-defined]
        if n % 3 == 2:
            queue.lease_next(ACME, "nothing", worker_id="w", wait_secs=0.001)
        left = records[0] if n % 2 else None
        del queue, records, cycle
        gc.collect()
        try:
            again = Queue.open(folder / "queue", QUICK)
        except StoreLocked:
            assert left is not None, "nobody is left who could have it open"
            del left
            gc.collect()
            again = Queue.open(folder / "queue", QUICK)
        assert sum(again.counts().values()) == n + 1
        again.close()
    say(ROUNDS)


CODES: dict[Callable[[Path], None], int] = {
    atexit_uses_the_queue: 0, atexit_opens_one: 0, records_outlive_the_module: 0, finalizers_use_the_queue: 0,
    sigterm_closes: 3, sigint_in_a_loop_of_verbs: 3, sys_exit_while_sixteen_wait_and_work: 3, sub_interpreter: 0,
    closed_while_sixteen_work: 0, garbage_in_every_state: 0,
}  # fmt: skip
SCENES = {scene.__name__: scene for scene in CODES}

if __name__ == "__main__":
    SCENES[sys.argv[1]](Path(sys.argv[2]))
