"""`telha stats`: how many jobs are where, and whether a line moves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import click

from telha_queue.cli import arguments, describe, render, scopes
from telha_queue.cli.app import now_us, open_queue, queue_options
from telha_queue.cli.text import age
from telha_queue.job import JobState
from telha_queue.scope import Scope

if TYPE_CHECKING:
    from telha_queue.queue import Queue

_STATES = (JobState.PENDING, JobState.LEASED, JobState.COMPLETED, JobState.DEAD)
_HEAD_JOBS = 100
"""How far down the line a job that is due is looked for."""


class ScopeCounts(NamedTuple):
    """One line: jobs per state, and how long the first job in line that is due has been due."""

    scope: Scope
    counts: dict[JobState, int]
    wait_us: int | None


@click.command()
@queue_options
@click.option(
    "--scope",
    metavar="SCOPE",
    type=arguments.scope,
    help="system, a tenant's UUID, UUID/UUID, or a name. Else all scopes.",
)
def stats(path: str | None, as_json: bool, scope: Scope | None) -> None:
    """Count jobs by scope and state.

    Reads every key. WAIT is how long the next job in line has been due; empty when none of the first 100 is due.
    """
    with open_queue(path) as queue:
        now = now_us()
        known = scopes.Known.of(queue)
        lines = [
            ScopeCounts(each, queue.counts(each), _wait_us(queue, each, now))
            for each in (known if scope is None else [known[scope]])
        ]
    total = {state: sum(line.counts[state] for line in lines) for state in _STATES}
    if as_json:
        told = [{**scopes.as_json(line.scope), **_named(line.counts), "wait_us": line.wait_us} for line in lines]
        click.echo(json.dumps({"scopes": told, "total": _named(total)}))
    if scope is not None and scope not in known:
        scopes.tell_unknown(scope)
    elif not as_json:
        _show(lines, total)


def _show(lines: list[ScopeCounts], total: dict[JobState, int]) -> None:
    rows = [_row(line) for line in lines]
    jobs = sum(total.values())
    rows.append(render.Row((*_cells(total), "", f"{_number(len(lines), 'scope')}, {_number(jobs, 'job')}")))
    header = (*(state.name for state in _STATES), "WAIT", "SCOPE")
    render.show(render.Table(header, rows, right=(0, 1, 2, 3, 4), least=render.ID_CHARS))


def _wait_us(queue: Queue, scope: Scope, now: int) -> int | None:
    line = queue.list(scope, state=JobState.PENDING, limit=_HEAD_JOBS)
    return next((now - ready for ready in map(describe.ready_us, line) if ready <= now), None)


def _row(line: ScopeCounts) -> render.Row:
    scope = scopes.label(line.scope)
    cells = *_cells(line.counts), "" if line.wait_us is None else age(line.wait_us)
    if render.on_terminal() and line.scope.space_id.int:  # too long for its column: it would be broken in two
        return render.Row((*cells, "tenant/space:"), scope)
    return render.Row((*cells, scope))


def _named(counts: dict[JobState, int]) -> dict[str, int]:
    return {state.name.lower(): counts[state] for state in _STATES}


def _cells(counts: dict[JobState, int]) -> list[str]:
    return [str(counts[state]) for state in _STATES]


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
