"""`telha snapshot` and `telha restore`: a queue's directory as of one moment, and a queue made of that."""

from __future__ import annotations

import json

import click

from telha_queue.cli.app import json_option, open_queue
from telha_queue.cli.text import instant, size


@click.command()
@json_option
@click.argument("source", metavar="SRC")
@click.argument("directory", metavar="DST")
def snapshot(as_json: bool, source: str, directory: str) -> None:
    """Make a snapshot DST of the queue in SRC, for `telha restore`.

    DST must not exist, and its parent must. A program that has the queue open makes one beside its workers:
    queue.snapshot(DST).
    """
    with open_queue(source) as queue:
        report = queue.snapshot(directory)
    if as_json:
        click.echo(json.dumps(report._asdict() | {"directory": str(report.directory)}))
    else:
        click.echo(f"{report.directory}: {size(report.size_bytes)}, as of {instant(report.seen_us)}")


@click.command()
@json_option
@click.argument("snapshot", metavar="SNAPSHOT")
@click.argument("directory", metavar="DST")
def restore(as_json: bool, snapshot: str, directory: str) -> None:
    """Make a queue in DST of a snapshot, which stays as it is.

    Jobs that were leased are pending again, and no lease from before is accepted by the new queue. DST must not exist,
    and its parent must.
    """
    from telha_queue import restore as restored

    report = restored(snapshot, directory)
    if as_json:
        click.echo(json.dumps(report._asdict() | {"directory": str(report.directory)}))
        return
    jobs = f"{report.jobs} jobs, {report.leases_ended} leases ended"
    damaged = f", {report.corrupt} rows that do not decode" if report.corrupt else ""
    click.echo(f"{report.directory}: {jobs}{damaged}; leases start at generation {report.generation_floor}")
