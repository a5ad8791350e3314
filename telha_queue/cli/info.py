"""`telha info`: which queue, which build, which settings."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from telha_queue.cli import render
from telha_queue.cli.app import open_queue, queue_options
from telha_queue.cli.text import size
from telha_queue.config import ENV_PREFIX


@click.command()
@queue_options
def info(path: str | None, as_json: bool) -> None:
    """Tell the path, the versions and the settings in force.

    The settings are those that this command opened the queue with: defaults and TELHA_JOBS_* variables.
    """
    from telha_queue import build_info

    with open_queue(path) as queue:
        config = queue.config
    where = Path(path or "").resolve()
    size_bytes = _size_bytes(where)
    build = build_info()
    settings = config._asdict() | {"backoff_base_secs_by_kind": dict(config.backoff_base_secs_by_kind)}
    if as_json:
        click.echo(json.dumps({"path": str(where), "size_bytes": size_bytes, "build": build, "config": settings}))
        return
    store = [("path", str(where)), ("size", size(size_bytes))]
    store += [(name.replace("_", " "), str(value)) for name, value in build.items()]
    chosen = [(name, f"{value}{_origin(name)}") for name, value in settings.items()]
    render.show(
        render.Table(("", ""), [render.Row(fact) for fact in store]),
        render.Table(("SETTING", "VALUE"), [render.Row(setting) for setting in chosen]),
    )


def _origin(setting: str) -> str:
    variable = ENV_PREFIX + setting.upper()
    return f"  from {variable}" if variable in os.environ else ""


def _size_bytes(where: Path) -> int:
    """What the directory's files take. Looks at their sizes only: opening a lock file could break the lock."""
    return sum(entry.stat().st_size for entry in os.scandir(where) if entry.is_file(follow_symlinks=False))
