"""`telha top`: how workers are, again and again, from what they answer at their health addresses."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from telha_queue.cli.app import json_option
from telha_queue.cli.exits import NO_QUEUE, OneLine
from telha_queue.cli.text import printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

_TIMEOUT_SECS = 5.0
_MAX_ROWS = 20


@click.command()
@click.option("--every-secs", default=1.0, show_default=True, help="How often it asks.")
@click.option("--once", is_flag=True, help="Show it once, and end.")
@json_option
@click.argument("addresses", metavar="ADDRESS...", nargs=-1, required=True)
def top(every_secs: float, once: bool, as_json: bool, addresses: tuple[str, ...]) -> None:
    """Watch workers: their lanes, kinds, scopes, and the jobs at work.

    ADDRESS is where a worker answers: what `telha worker --health` or Worker(health=...) was given, HOST:PORT or
    unix:PATH. Ctrl-C ends it.
    """
    if as_json:
        for address in addresses:
            click.echo(json.dumps(status_at(address)))
        return
    from rich.console import Console
    from rich.live import Live

    def asked() -> list[dict[str, Any]]:
        return [status_at(address) for address in addresses]

    console = Console()
    before = asked()
    if once or not console.is_terminal:
        console.print(view(before, before, every_secs))
        return
    pause = threading.Event()
    with Live(view(before, before, every_secs), console=console, screen=True, auto_refresh=False) as live:
        while not pause.wait(every_secs):
            now = asked()
            live.update(view(now, before, every_secs), refresh=True)
            before = now


def status_at(address: str) -> dict[str, Any]:
    """What the worker at that address says of itself. Ends the command if none answers."""
    if ":" not in address:
        raise OneLine(f"an address is HOST:PORT or unix:PATH, not {address!r}")
    where = address.removeprefix("unix:")
    connection = (
        http.client.HTTPConnection(where, timeout=_TIMEOUT_SECS) if where == address else _UnixConnection(where)
    )
    try:
        connection.request("GET", "/status")
        answer: dict[str, Any] = json.loads(connection.getresponse().read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise OneLine(f"no worker answers at {address}: {error}", NO_QUEUE) from None
    finally:
        connection.close()
    return answer


def view(now: list[dict[str, Any]], before: list[dict[str, Any]], secs: float) -> RenderableType:
    """The screen: rates are those since the answers before."""
    from rich.console import Group

    workers, lanes = _table("worker", "", "store", "threads that hang"), _table("lane", "at work", "permits", "ahead")
    kinds = _table("kind", "a second", "completed", "failed", "dead", "lost", "mean run", "mean wait")
    scopes, running = _table("scope", "at work"), _table("for", "kind", "attempt", "scope", "lane", "job")
    for worker in now:
        state = "ready" if worker["ready"] else "not ready"
        _row(workers, worker["worker"], state, worker["store_error"] or "well", worker["threads_abandoned"])
        for name, load in worker["lanes"].items():
            _row(lanes, name, load["used"], load["permits"], load["waiting"])
    earlier = _sums(before)
    for kind, figures in _sums(now).items():
        rate = (figures["completed"] - earlier.get(kind, figures)["completed"]) / secs
        counts = [f"{figures[ending]:,}" for ending in ("completed", "failed", "dead", "lost")]
        _row(kinds, kind, f"{rate:,.0f}", *counts, _mean(now, kind, "run"), _mean(now, kind, "wait"))
    for scope, count in sum((Counter(worker["scopes"]) for worker in now), Counter()).most_common(_MAX_ROWS):
        _row(scopes, scope, count)
    for job in sorted((job for worker in now for job in worker["running"]), key=lambda job: -job["secs"])[:_MAX_ROWS]:
        _row(running, f"{job['secs']:.1f} s", *(job[name] for name in ("kind", "attempt", "scope", "lane", "job")))
    return Group(workers, lanes, kinds, scopes, running)


def _sums(workers: list[dict[str, Any]]) -> dict[str, Counter[str]]:
    """By kind, how many jobs ended how, over all workers."""
    kinds: dict[str, Counter[str]] = {}
    for worker in workers:
        for kind, figures in worker["kinds"].items():
            kinds.setdefault(kind, Counter()).update({ending: n for ending, n in figures.items() if type(n) is int})
    return kinds


def _mean(workers: list[dict[str, Any]], kind: str, span: str) -> str:
    spans = [worker["kinds"][kind][span] for worker in workers if kind in worker["kinds"]]
    count = sum(one["count"] for one in spans)
    return f"{sum(one['count'] * one['mean_secs'] for one in spans) / count:.3f} s" if count else "-"


def _table(*columns: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(*columns, box=SIMPLE_HEAD)


def _row(table: Table, *cells: object) -> None:
    from rich.text import Text

    table.add_row(*(Text(printable(str(cell))) for cell in cells))


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_TIMEOUT_SECS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
