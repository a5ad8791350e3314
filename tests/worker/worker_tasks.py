"""Tasks that run in processes of their own: those have to stand at the top of a module."""

from __future__ import annotations

import logging
import os
import signal
import threading

from telha_queue.worker import JSON, Job, Permanent, task


@task("whereabouts", process=True, codec=JSON)
def whereabouts(job: Job, word: str) -> None:
    logging.getLogger("mine").warning("read %s", word)
    job.checkpoint(b"half")
    job.progress()
    job.stats(f"{word} {os.getpid()} {job.scope.name} {len(job.headers)}")


@task("ends", process=True, codec=JSON, max_attempts=2)
def ends(job: Job, how: str) -> None:
    if how == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    raise Permanent("no")


@task("sleeps", process=True, timeout_secs=3600, max_attempts=5)
def sleeps(job: Job) -> None:
    job.stats("asleep")
    threading.Event().wait(60)
