"""`telha jobs`: enqueue, list, show, retry, cancel, reschedule, reap."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, islice
from typing import IO, TYPE_CHECKING, Any
from uuid import UUID

import click

from telha_queue.arguments import MAX_ATTEMPTS
from telha_queue.cli import arguments, describe, exits, render, scopes
from telha_queue.cli.app import now_us, open_queue, queue_options
from telha_queue.config import HARD_PAYLOAD_BYTES
from telha_queue.errors import JobError
from telha_queue.job import JobRecord, JobState
from telha_queue.scope import Scope

if TYPE_CHECKING:
    from telha_queue.queue import Queue

_PAGE_JOBS = 1000
_STATE_HELP = "pending, leased, completed or dead; runnable, running, done and failed mean the same."
_LIST_HEADER = ("ID", "STATE", "PRI", "FAILS", "AGE", "KIND")


@click.command()
@queue_options
@click.argument("kind")
@click.option("--payload", metavar="TEXT", help="The payload, as UTF-8.")
@click.option("--payload-file", type=click.File("rb"), help="Read the payload from a file; - is stdin.")
@click.option(
    "--scope", metavar="SCOPE", type=arguments.scope, default="system", show_default=True, help="Whose job it is."
)
@click.option(
    "--priority",
    metavar="N",
    type=arguments.whole("--priority", 0, 255),
    default=128,
    show_default=True,
    help="0 to 255; lower is leased sooner.",
)
@click.option("--delay", type=float, metavar="SECS", help="Not before so many seconds from now.")
@click.option(
    "--not-before", metavar="TIME", type=arguments.instant, help="Not before this time, ISO 8601; UTC without a zone."
)
@click.option("--idempotency-key", metavar="KEY", help="If a job of the scope has this key, that job is the answer.")
@click.option(
    "--max-attempts",
    metavar="N",
    type=arguments.whole("--max-attempts", 1, MAX_ATTEMPTS),
    help="The job's own limit of attempts.",
)
@click.option("--expires-secs", type=float, metavar="SECS", help="Not leased any more so many seconds from now.")
@click.option("--create", is_flag=True, help="Create the queue if there is none at the path.")
def enqueue(
    path: str | None,
    as_json: bool,
    kind: str,
    payload: str | None,
    payload_file: IO[bytes] | None,
    scope: Scope,
    priority: int,
    delay: float | None,
    not_before: int | None,
    idempotency_key: str | None,
    max_attempts: int | None,
    expires_secs: float | None,
    create: bool,
) -> None:
    """Enqueue a job of KIND and print its id."""
    if payload is not None and payload_file is not None:
        raise exits.OneLine("give --payload or --payload-file, not both")
    # Read before the queue is opened: a slow pipe must not keep everybody else out of the directory.
    body = (payload or "").encode(errors="surrogateescape")
    if payload_file is not None:
        body = payload_file.read(HARD_PAYLOAD_BYTES + 1)
    asked_us = now_us()
    with open_queue(path, create=create) as queue:
        job = queue.enqueue(
            scope,
            kind,
            body,
            priority=priority,
            not_before=not_before,
            delay_secs=delay,
            idempotency_key=idempotency_key,
            max_attempts=max_attempts,
            expires_secs=expires_secs,
        )
        told = _line(job, scopes.Known.of(queue)) if as_json else str(job.job_id)
    if job.created_at < asked_us:
        click.echo("a job with this idempotency key was there already", err=True)
    click.echo(told)


@click.command("list")
@queue_options
@click.option(
    "--scope",
    metavar="SCOPE",
    type=arguments.scope,
    help="system, a tenant's UUID, UUID/UUID, or a name. Else all scopes.",
)
@click.option(
    "--state", metavar="STATE", type=click.Choice(list(arguments.STATES), case_sensitive=False), help=_STATE_HELP
)
@click.option("--kind", "kinds", multiple=True, metavar="PREFIX", help="Kinds that start so; may be repeated.")
@click.option(
    "--limit",
    metavar="N",
    type=arguments.whole("--limit", 1),
    default=50,
    show_default=True,
    help="How many at most.",
)
@click.option(
    "--after", metavar="ID", type=arguments.job_id, help="Go on behind this job: the last one of the page before."
)
@click.pass_context
def list_jobs(
    ctx: click.Context,
    path: str | None,
    as_json: bool,
    scope: Scope | None,
    state: str | None,
    kinds: tuple[str, ...],
    limit: int,
    after: UUID | None,
) -> None:
    """List jobs by scope, state, priority and age.

    With --json, one object per line.
    """
    with open_queue(path) as queue:
        last = None if after is None else queue.find(after)
        found = _pages(queue, scope, None if state is None else arguments.STATES[state], kinds or None, last)
        listed = list(islice(found, limit))
        has_more = next(found, None) is not None
        known = scopes.Known.of(queue)
    if as_json:
        for job in listed:
            click.echo(_line(job, known))
    elif listed:
        render.show(_table(listed, known, now_us()))
    if scope is not None and scope not in known:
        scopes.tell_unknown(scope)
    elif not listed:
        click.echo("no jobs match", err=True)
    if has_more:
        click.echo(f"more: {_next_page(ctx, listed[-1])}", err=True)


def _pages(
    queue: Queue, scope: Scope | None, state: JobState | None, kinds: Sequence[str] | None, after: JobRecord | None
) -> Iterator[JobRecord]:
    while True:
        page = queue.list(scope, state=state, kinds=kinds, limit=_PAGE_JOBS, after=after)
        yield from page
        if len(page) < _PAGE_JOBS:
            return
        after = page[-1]


def _table(listed: list[JobRecord], known: scopes.Known, now: int) -> render.Table:
    """On a terminal a heading per scope and notes beneath; in a pipe, where lines get filtered, all in one line."""
    rows = []
    headings = render.on_terminal()
    for scope, group in groupby(listed, key=lambda job: job.scope):
        label = scopes.label(known[scope])
        if headings:
            rows.append(render.Row((), f"scope {label}"))
        for job in group:
            note = "; ".join(filter(None, (describe.outlook(job, now), describe.error_line(job))))
            numbers = str(job.priority), str(job.attempts), describe.age_of(job, now)
            cells = str(job.job_id), describe.state_of(job), *numbers, job.kind
            rows.append(render.Row(cells, note) if headings else render.Row((*cells, label, note)))
    header = _LIST_HEADER if headings else (*_LIST_HEADER, "SCOPE", "NOTE")
    return render.Table(header, rows, right=(2, 3, 4), state=1)


def _next_page(ctx: click.Context, last: JobRecord) -> str:
    """The command that lists what comes next: this one, with another --after."""
    words = ["telha", "jobs", "list"]
    for option in ctx.command.params:
        name = option.name or ""
        source = ctx.get_parameter_source(name)
        if name == "after" or source is not click.core.ParameterSource.COMMANDLINE:
            continue
        value = ctx.params[name]
        if value is True:
            words.append(option.opts[0])
        else:
            for each in value if isinstance(value, tuple) else (value,):
                words += [option.opts[0], str(each)]
    return shlex.join([*words, "--after", str(last.job_id)])


@click.command()
@queue_options
@click.argument("job_id", metavar="ID", type=arguments.job_id)
@click.option("--payload", "payload_only", is_flag=True, help="Write the payload's bytes to stdout and nothing else.")
def show(path: str | None, as_json: bool, job_id: UUID, payload_only: bool) -> None:
    """Show the job of that ID, of whatever scope, with its whole trail."""
    if as_json and payload_only:
        raise exits.OneLine("give --json or --payload, not both")
    with open_queue(path) as queue:
        job = queue.find(job_id)
        known = scopes.Known.of(queue)
        payload = job.payload  # may stand in a row of its own, so it is read while the queue is open
    if payload_only:
        sys.stdout.buffer.write(payload)
    elif as_json:
        click.echo(_line(job, known, payload))
    else:
        facts = describe.facts(job, known[job.scope], payload, now_us())
        head = render.Table(("", ""), [render.Row(fact) for fact in facts], least=render.ID_CHARS)
        trail = [render.Row(step) for step in describe.steps(job)]
        render.show(head, render.Table(("TIME", "SINCE", "STEP", "DETAIL"), trail, right=(1,), state=2))


@click.command()
@queue_options
@click.argument("job_ids", metavar="ID...", type=arguments.job_id, nargs=-1, required=True)
@click.pass_context
def retry(ctx: click.Context, path: str | None, as_json: bool, job_ids: tuple[UUID, ...]) -> None:
    """Put dead jobs back in line, their attempts at 0.

    A job that cannot be retried is named on stderr and makes the exit code 1; the others are retried all the same.
    """
    _change_each(ctx, path, as_json, job_ids, lambda queue, scope, job_id: queue.retry(scope, job_id))


@click.command()
@queue_options
@click.argument("job_ids", metavar="ID...", type=arguments.job_id, nargs=-1, required=True)
@click.option("--reason", metavar="TEXT", default="", help="Why; it is kept in the trail.")
@click.pass_context
def cancel(ctx: click.Context, path: str | None, as_json: bool, job_ids: tuple[UUID, ...], reason: str) -> None:
    """End pending and leased jobs: they are dead at once, and can be retried.

    A job that cannot be cancelled is named on stderr and makes the exit code 1; the others are cancelled all the same.
    """
    _change_each(ctx, path, as_json, job_ids, lambda queue, scope, job_id: queue.cancel(scope, job_id, reason))


@click.command()
@queue_options
@click.argument("job_ids", metavar="ID...", type=arguments.job_id, nargs=-1, required=True)
@click.option(
    "--priority", metavar="N", type=arguments.whole("--priority", 0, 255), help="0 to 255; lower is leased sooner."
)
@click.option("--delay-secs", type=float, metavar="SECS", help="Not before so many seconds from now; 0 is due now.")
@click.option(
    "--not-before", metavar="TIME", type=arguments.instant, help="Not before this time, ISO 8601; UTC without a zone."
)
@click.pass_context
def reschedule(
    ctx: click.Context,
    path: str | None,
    as_json: bool,
    job_ids: tuple[UUID, ...],
    priority: int | None,
    delay_secs: float | None,
    not_before: int | None,
) -> None:
    """Give pending jobs another priority, or another time from which on they are due.

    A job that is not pending is named on stderr and makes the exit code 1; the others are changed all the same.
    """
    how: dict[str, Any] = {"priority": priority, "delay_secs": delay_secs, "not_before": not_before}
    _change_each(ctx, path, as_json, job_ids, lambda queue, scope, job_id: queue.reschedule(scope, job_id, **how))


def _change_each(
    ctx: click.Context,
    path: str | None,
    as_json: bool,
    job_ids: tuple[UUID, ...],
    change: Callable[[Queue, Scope, UUID], JobRecord],
) -> None:
    """Do the same to jobs of whatever scope, and say how each then is."""
    refused = False
    with open_queue(path) as queue:
        known = scopes.Known.of(queue)
        for job_id in job_ids:
            try:
                job = change(queue, queue.find(job_id).scope, job_id)
            except JobError as error:
                if exits.code_of(error) != exits.REFUSED:
                    raise
                exits.complain(str(error))
                refused = True
            else:
                click.echo(_line(job, known) if as_json else f"{job_id} {describe.state_of(job)}")
    if refused:
        ctx.exit(exits.REFUSED)


@click.command()
@queue_options
def reap(path: str | None, as_json: bool) -> None:
    """Take back every lease that has expired, and bury the jobs that have, once, in all scopes.

    The store keeps no settings: this goes by the TELHA_JOBS_* variables of its own environment, and by defaults. For
    it to judge as your workers do, give it theirs: TELHA_JOBS_LEASE_GRACE_SECS, TELHA_JOBS_MAX_ATTEMPTS and
    TELHA_JOBS_BACKOFF_*. A job's own --max-attempts goes before.
    """
    with open_queue(path) as queue:
        report = queue.reap_expired()
        known = scopes.Known.of(queue)
    if as_json:
        dead = [
            {**job._asdict(), **scopes.as_json(known[job.scope]), "job_id": str(job.job_id)} for job in report.dead_jobs
        ]
        click.echo(json.dumps(report._asdict() | {"dead_jobs": dead}))
        return
    expired = f", {report.expired} expired" if report.expired else ""
    click.echo(f"{report.reclaimed} reclaimed, {report.dead} dead{expired}")
    rows = [
        render.Row((str(job.job_id), job.kind), describe.death_of(job, known[job.scope])) for job in report.dead_jobs
    ]
    if rows:
        render.show(render.Table(("ID", "KIND"), rows))
    if report.corrupt:
        exits.complain(f"{report.corrupt} leased rows do not decode; they were left as they are")


def _line(job: JobRecord, known: scopes.Known, payload: bytes | None = None) -> str:
    return json.dumps(describe.as_json(job, known[job.scope], payload))
