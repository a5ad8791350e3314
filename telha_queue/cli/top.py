"""`telha top`: how a worker is, again and again, from what it answers at its health address."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from typing import TYPE_CHECKING, Any

import click

from telha_queue.cli.exits import NO_QUEUE, OneLine
from telha_queue.cli.text import printable

if TYPE_CHECKING:
    from rich.console import RenderableType

_TIMEOUT_SECS = 5.0


@click.command()
@click.option("--every-secs", default=1.0, show_default=True, help="How often it asks.")
@click.option("--once", is_flag=True, help="Show it once, and end.")
@click.option("--json", "as_json", is_flag=True, help="Print what the worker answers, once.")
@click.argument("address", metavar="ADDRESS")
def top(every_secs: float, once: bool, as_json: bool, address: str) -> None:
    """Watch a worker: its lanes, kinds, and the jobs at work.

    ADDRESS is where the worker answers: what `telha worker --health` or Worker(health=...) was given, HOST:PORT or
    unix:PATH. Ctrl-C ends it.
    """
    if as_json:
        click.echo(json.dumps(status_at(address)))
        return
    from rich.console import Console
    from rich.live import Live

    console = Console()
    before = status_at(address)
    if once or not console.is_terminal:
        console.print(view(before, before, every_secs))
        return
    pause = threading.Event()
    with Live(view(before, before, every_secs), console=console, screen=True, auto_refresh=False) as live:
        while not pause.wait(every_secs):
            now = status_at(address)
            live.update(view(now, before, every_secs), refresh=True)
            before = now


def status_at(address: str) -> dict[str, Any]:
    """What the worker at that address says of itself. Ends the command if none answers."""
    connection = _UnixConnection(address[5:]) if address.startswith("unix:") else None
    try:
        asked = connection or http.client.HTTPConnection(address, timeout=_TIMEOUT_SECS)
        asked.request("GET", "/status")
        answer: dict[str, Any] = json.loads(asked.getresponse().read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise OneLine(f"no worker answers at {address}: {error}", NO_QUEUE) from None
    return answer


def view(now: dict[str, Any], before: dict[str, Any], secs: float) -> RenderableType:
    """The screen: rates are those since the answer before."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    head = Text(f"{now['worker']}: {'ready' if now['ready'] else 'not ready'}")
    if now["store_error"]:
        head.append(f"  store: {printable(now['store_error'])}", style="red")
    if now["threads_abandoned"]:
        head.append(f"  {now['threads_abandoned']} threads hang", style="red")
    lanes = Table("lane", "at work", "permits", "leased ahead", title="lanes", title_justify="left")
    for name, load in now["lanes"].items():
        lanes.add_row(Text(name), str(load["used"]), str(load["permits"]), str(load["waiting"]))
    kinds = Table("kind", "a second", "completed", "failed", "dead", "lost", "mean run", "mean wait", title="kinds")
    kinds.title_justify = "left"
    for kind, figures in now["kinds"].items():
        rate = (figures["completed"] - before["kinds"].get(kind, figures)["completed"]) / secs
        counts = [f"{figures[ending]:,}" for ending in ("completed", "failed", "dead", "lost")]
        spans = [f"{figures[span]['mean_secs']:.3f} s" for span in ("run", "wait")]
        kinds.add_row(Text(printable(kind)), f"{rate:,.0f}", *counts, *spans)
    running = Table("for", "kind", "attempt", "scope", "lane", "job", title="at work, longest first")
    running.title_justify = "left"
    for job in now["running"][:20]:
        texts = [Text(printable(str(job[name]))) for name in ("kind", "attempt", "scope", "lane", "job")]
        running.add_row(f"{job['secs']:.1f} s", *texts)
    return Group(head, lanes, kinds, running)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_TIMEOUT_SECS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
