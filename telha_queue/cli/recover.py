"""`telha recover`: open a damaged queue with what is left of it, and say what is not."""

from __future__ import annotations

import json

import click

from telha_queue.cli.app import open_queue, queue_options
from telha_queue.cli.text import printable


@click.command()
@queue_options
def recover(path: str | None, as_json: bool) -> None:
    """Open a queue that is refused as damaged, with what is left, and tell what is missing.

    What is missing then is gone for good: copy the directory first.
    """
    with open_queue(path, recover="point_in_time") as queue:
        recovered = queue.recovered
    damage = [] if recovered is None else list(recovered.damage)
    lost_rows = 0 if recovered is None else recovered.lost_rows
    if as_json:
        click.echo(json.dumps({"damage": damage, "lost_rows": lost_rows}))
        return
    for sentence in damage or ["nothing is missing"]:
        click.echo(printable(sentence))
