"""`telha jobs result` and `telha jobs wait`: what a job left, and how it ended, for scripts."""

from __future__ import annotations

import base64
import json
import sys
import time
from typing import IO, TYPE_CHECKING
from uuid import UUID

import click

from telha_queue.cli import arguments, describe, exits, scopes
from telha_queue.cli.app import open_queue, queue_options
from telha_queue.errors import StoreLocked
from telha_queue.job import JobState

if TYPE_CHECKING:
    from telha_queue.job import JobRecord
    from telha_queue.queue import Queue

_TRY_SECS = 0.2


@click.command()
@queue_options
@click.argument("job_id", metavar="ID", type=arguments.job_id)
@click.option("--output", type=click.File("wb", lazy=True), metavar="FILE", help="Write to a file; else to stdout.")
def result(path: str | None, as_json: bool, job_id: UUID, output: IO[bytes] | None) -> None:
    """Write the bytes that the job of that ID was completed with, and nothing else."""
    if as_json and output is not None:
        raise exits.OneLine("give --json or --output, not both")
    with open_queue(path) as queue:
        job = queue.find(job_id)
        left = job.result  # may stand in a row of its own, so it is read while the queue is open
    if left is None:
        raise exits.OneLine(f"job {job_id}: has no result, it is {describe.state_of(job)}", exits.REFUSED)
    if as_json:
        told = {"job_id": str(job_id), "result_bytes": len(left), "result_base64": base64.b64encode(left).decode()}
        click.echo(json.dumps(told))
    else:
        (output or sys.stdout.buffer).write(left)


@click.command()
@queue_options
@click.argument("job_id", metavar="ID", type=arguments.job_id)
@click.option("--timeout-secs", type=float, metavar="S", help="Wait for so long at most; else as long as it takes.")
def wait(path: str | None, as_json: bool, job_id: UUID, timeout_secs: float | None) -> None:
    """Wait until no other process has the queue open, and tell by the exit code how the job of that ID ended.

    0 completed, 8 dead, 9 neither: then nobody works on it now. 3 if the time is over and the queue still locked.
    """
    if timeout_secs is not None and not timeout_secs >= 0:
        raise exits.OneLine(f"--timeout-secs is 0 or more, not {timeout_secs}")
    with _opened_within(path, timeout_secs) as queue:
        job = queue.find(job_id)
        known = scopes.Known.of(queue)
    click.echo(json.dumps(describe.as_json(job, known[job.scope])) if as_json else _line(job))
    if job.state is not JobState.COMPLETED:
        raise click.exceptions.Exit(exits.DEAD if job.state is JobState.DEAD else exits.NOT_ENDED)


def _opened_within(path: str | None, timeout_secs: float | None) -> Queue:
    give_up_at = None if timeout_secs is None else time.monotonic() + timeout_secs
    while True:
        try:
            return open_queue(path)
        except StoreLocked:
            if give_up_at is not None and time.monotonic() >= give_up_at:
                raise
        time.sleep(_TRY_SECS)


def _line(job: JobRecord) -> str:
    said = describe.error_line(job)
    return f"{job.job_id} {describe.state_of(job)}" + (f": {said}" if said else "")
