"""`telha fsck`: is every row as it ought to be, and what is left to do."""

from __future__ import annotations

import json

import click

from telha_queue.cli import exits, render, scopes
from telha_queue.cli.app import open_queue, queue_options
from telha_queue.scope import SCOPE_BYTES, scope_as_stored
from telha_queue.upkeep import Finding, FsckReport


@click.command()
@queue_options
@click.argument("directory", metavar="[PATH]", required=False)
@click.option("--repair", is_flag=True, help="Rebuild side rows from jobs, and remove what belongs to no job.")
def fsck(path: str | None, as_json: bool, directory: str | None, repair: bool) -> None:
    """Check every row of a queue, in the directory PATH or --path.

    Changes nothing unless --repair is given; never changes or removes a job's row. Ends with 0 when all is well or was
    repaired, and with 1 when something is left.
    """
    with open_queue(directory or path) as queue:
        report = queue.fsck(repair=repair)
        known = scopes.Known.of(queue)
    if as_json:
        click.echo(json.dumps(_as_json(report, known)))
    else:
        _show(report, known)
    if not report.is_clean:
        raise click.exceptions.Exit(exits.FOUND)


def _show(report: FsckReport, known: scopes.Known) -> None:
    if report.found:
        totals = [
            render.Row((kind.value, str(count), str(report.repaired.get(kind, 0))))
            for kind, count in report.found.items()
        ]
        listed = [render.Row((found.kind.value, _whose(found)), _note(found, known)) for found in report.findings]
        render.show(
            render.Table(("KIND", "FOUND", "REPAIRED"), totals, right=(1, 2)),
            render.Table(("KIND", "JOB OR ROW"), listed, least=render.ID_CHARS),
        )
    left = sum(report.found.values()) - sum(report.repaired.values())
    said = "clean" if not report.found else f"{sum(report.repaired.values())} repaired, {left} left"
    click.echo(f"{report.jobs} jobs checked: {said}")
    if report.is_partial:
        exits.complain("orphans were not looked for: too many side rows are wrong. Repair, and check again")


def _whose(found: Finding) -> str:
    return str(found.job_id) if found.job_id is not None else f"row {found.row.hex()}"


def _note(found: Finding, known: scopes.Known) -> str:
    scope = _scope_of(found, known)
    whose = f"scope {scope['scope_name'] or scope['scope']}" if scope else ""
    return "; ".join(filter(None, (whose, found.detail)))


def _scope_of(found: Finding, known: scopes.Known) -> dict[str, str | None]:
    """The fields of its scope, none if it has none: what a damaged key begins with need not be one."""
    if found.scope is None or len(found.scope) != SCOPE_BYTES or (not any(found.scope[:16]) and any(found.scope)):
        return {}
    return scopes.as_json(known[scope_as_stored(found.scope, None)])


def _as_json(report: FsckReport, known: scopes.Known) -> dict[str, object]:
    return {
        "clean": report.is_clean,
        "jobs": report.jobs,
        "partial": report.is_partial,
        "found": {kind.value: count for kind, count in report.found.items()},
        "repaired": {kind.value: count for kind, count in report.repaired.items()},
        "findings": [
            {
                "kind": found.kind.value,
                "job_id": None if found.job_id is None else str(found.job_id),
                **({"scope": None, "scope_name": None} | _scope_of(found, known)),
                "row": found.row.hex(),
                "detail": found.detail,
            }
            for found in report.findings
        ],
    }
