"""Tasks that run in processes of their own: those have to stand at the top of a module."""

from __future__ import annotations

import logging
import os
import signal
import stat
import sys
import threading
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

from telha_queue.errors import JobError, LeaseConflict
from telha_queue.worker import JSON, Job, Permanent, Released, Retry, task

left_behind: list[tuple[threading.Event, threading.Thread]] = []
told: list[str] = []


@task("whereabouts", process=True, codec=JSON)
def whereabouts(job: Job, word: str) -> None:
    logging.getLogger("mine").warning("read %s", word)
    job.checkpoint(b"half")
    job.progress()
    job.stats(f"{word} {os.getpid()} {job.scope.name} {len(job.headers)}")


@task("resumes", process=True, codec=JSON, keeps_result=True, max_attempts=2)
def resumes(job: Job, word: str) -> dict[str, object]:
    """Fails at first, and goes on from where it was."""
    job.progress(0.25, "begun")
    if job.durable_continuation is None:
        job.checkpoint(b"\0 half", durable=True)
        raise Retry("again", delay_secs=0)
    job.progress(1, "all of it")
    return {"word": word, "from": job.durable_continuation.decode()}


@task("ends", process=True, codec=JSON, max_attempts=2)
def ends(job: Job, how: str) -> None:
    if how == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "dies by a signal without a name":
        os.kill(os.getpid(), signal.SIGRTMIN + 3)
    if how == "writes into the pipe":
        for number in map(int, os.listdir("/proc/self/fd")):
            with suppress(OSError):
                if stat.S_ISSOCK(os.fstat(number).st_mode):
                    os.write(number, b"\0\0\0\x05?????")
        threading.Event().wait(60)
    if how == "closes the pipe":
        os.closerange(3, 200)
    if how == "exits":
        sys.exit(0)
    if how == "is interrupted":
        raise KeyboardInterrupt("by itself")
    if how == "retries after nonsense":
        raise Retry("later", delay_secs=job)  # type: ignore[arg-type]
    if how == "gives back after nonsense":
        raise Released("later", delay_secs=job)  # type: ignore[arg-type]
    raise Permanent("no")


@task("sleeps", process=True, timeout_secs=3600, max_attempts=5)
def sleeps(job: Job) -> None:
    job.stats("asleep")
    threading.Event().wait(60)


@task("forks", process=True, timeout_secs=3600, max_attempts=1)
def forks(job: Job) -> None:
    """Leaves a process behind that holds all that this one holds; it lives until the file in the payload is there."""
    if os.fork() == 0:
        while not Path(job.payload.decode()).exists():
            threading.Event().wait(0.02)
        os._exit(0)
    job.stats("asleep")
    threading.Event().wait(60)


@task("leaves", process=True)
def leaves(job: Job) -> None:
    """Leaves a thread behind that goes on for this job when the next one has begun."""
    go = threading.Event()

    def later() -> None:
        go.wait(60)
        for verb in (lambda: job.checkpoint(b"of another"), lambda: job.stats("of another")):
            try:
                verb()
            except JobError as error:
                told.append(str(error))
        job.progress()

    thread = threading.Thread(target=later)
    left_behind.append((go, thread))
    thread.start()


@task("follows", process=True)
def follows(job: Job) -> None:
    """Lets the thread that the job before has left behind go on, and tells what became of it."""
    for go, thread in left_behind:
        go.set()
        thread.join()
    job.stats("; ".join(told))


@task("watches", process=True)
def watches(job: Job) -> None:
    """Says whether its lease is lost, once the file in its payload is there and all that was said before is heard."""
    job.stats("asleep")
    while not Path(job.payload.decode()).exists():
        threading.Event().wait(0.02)
    job.stats("the answer comes last")
    job.stats(f"lost: {job.lost.reason}")


@task("many", process=True, max_attempts=1)
def many(job: Job) -> None:
    """Asks from many threads at a time."""
    errors = []

    def ask(number: int) -> None:
        try:
            for _ in range(20):
                job.checkpoint(bytes(60_000))
                job.stats(f"of {number}")
                job.progress()
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@task("pool", process=True, max_attempts=1)
def pool(job: Job) -> None:
    """Has processes of its own, which are ended by a signal."""
    with get_context("fork").Pool(1) as workers:
        job.stats(f"pool {workers.apply(os.getpid) != os.getpid()}")


@task("signalled", process=True, max_attempts=1)
def signalled(job: Job) -> None:
    """Bears the signals that a whole group gets; what it starts does not."""
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(os.getpid(), number)
    job.stats("alive")
    left = os.spawnlp(os.P_WAIT, "sh", "sh", "-c", "kill -TERM $$")
    job.stats(f"what it starts ends by signal {-left}")


@task("clings", process=True, max_attempts=1)
def clings(job: Job) -> None:
    """Goes on though its lease is lost."""
    try:
        job.checkpoint(b"late")
    except LeaseConflict as conflict:
        raise Permanent(f"{conflict.job_id == job.job_id} {conflict.held} {conflict.presented}") from conflict
