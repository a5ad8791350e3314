"""Tables for people: through rich on a terminal, aligned plain text in a pipe.

Every cell is made safe here, on its way out: nothing that a job holds can move the cursor, change a colour or be taken
for markup. Knows no job. Imports rich only when a terminal is there to use it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

import click

from telha_queue.cli.text import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from rich.console import Console
    from rich.table import Table as RichTable

_STYLES = {
    "pending": "cyan",
    "leased": "yellow",
    "completed": "green",
    "dead": "bold red",
    "failed": "red",
    "reaped": "red",
}
"""Colours of states and of steps in a trail."""
ID_CHARS = 36
"""Of a job's id, or a tenant's: one that is folded cannot be copied."""
_GAP = 2
_INDENT = 4
_PLAIN_CHARS = 40
"""No column of plain text is padded further: one long kind must not push every line's end away. Nothing is cut."""


class Row(NamedTuple):
    """One row, with a `note` beneath it; a row without cells is a heading."""

    cells: Sequence[str]
    note: str = ""


class Table(NamedTuple):
    """Rows under a header, which may be empty. The last column alone may be long: it folds at the terminal's edge."""

    header: Sequence[str]
    rows: Sequence[Row]
    right: Sequence[int] = ()
    """Columns set to the right: numbers."""
    state: int | None = None
    """The column that holds a state or a step, shown in its colour."""
    least: int = 8
    """What the last column has at least, if it needs it: in a narrower terminal the lines are too long."""


def on_terminal() -> bool:
    """Whether a person reads the output directly."""
    return sys.stdout.isatty()


def show(*tables: Table) -> None:
    """Print tables, an empty line between two."""
    printer = _print_rich if on_terminal() else _print_plain
    for number, table in enumerate(tables):
        if number:
            click.echo()
        printer(_safe(table))


def _safe(table: Table) -> Table:
    rows = [Row([printable(cell) for cell in row.cells], printable(row.note)) for row in table.rows]
    return table._replace(rows=rows)


def _print_plain(table: Table) -> None:
    widths = [min(width, _PLAIN_CHARS) for width in _widths(table, len)]
    for cells, note in [Row(table.header), *table.rows]:
        padded = [
            cell.rjust(width) if column in table.right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=False))
        ]
        for line in ((" " * _GAP).join(padded), " " * _INDENT * bool(cells) + note):
            if line.strip():
                click.echo(line.rstrip())


def _print_rich(table: Table) -> None:
    from rich.cells import cell_len
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    plain = bool(os.environ.get("NO_COLOR"))  # rich would still print bold and dim

    def console_of(width: int | None) -> Console:
        colours: Literal["auto"] | None = None if plain else "auto"
        return Console(highlight=False, emoji=False, markup=False, color_system=colours, width=width)

    console = console_of(None)
    widths = _widths(table, cell_len)
    # Rich would cut columns that do not fit, ids among them. A terminal wraps a line that is too long and cuts nothing.
    fixed = sum(widths[:-1]) + _GAP * (len(widths) - 1)
    grids = console_of(max(console.width, fixed + min(widths[-1], table.least)))
    if any(table.header):
        _print_run(grids, table, widths, [Row(table.header)], "bold")
    run: list[Row] = []
    for row in table.rows:
        if row.cells:
            run.append(row)
        if row.note:
            _print_run(grids, table, widths, run)
            run = []
            note = Text(row.note, "dim" if row.cells else "bold", overflow="fold")
            console.print(Padding(note, (0, 0, 0, _INDENT if row.cells else 0)))
    _print_run(grids, table, widths, run)


def _print_run(console: Console, table: Table, widths: Sequence[int], rows: Sequence[Row], style: str = "") -> None:
    """Print rows that stand together; the widths are those of the whole table, so that all runs align."""
    from rich.text import Text

    if not rows:
        return
    grid = _grid(table, widths)
    for row in rows:
        cells = []
        for column, cell in enumerate(row.cells):
            own = _STYLES.get(cell, "") if column == table.state else ""
            cells.append(Text(cell, style or own))
        grid.add_row(*cells)
    console.print(grid)


def _grid(table: Table, widths: Sequence[int]) -> RichTable:
    from rich.table import Table as RichTable

    grid = RichTable.grid(padding=(0, _GAP, 0, 0), pad_edge=False)
    for column, width in enumerate(widths[:-1]):
        grid.add_column(width=width, no_wrap=True, justify="right" if column in table.right else "left")
    grid.add_column(overflow="fold", justify="left")
    return grid


def _widths(table: Table, measure: Callable[[str], int]) -> list[int]:
    return [
        max(map(measure, column))
        for column in zip(table.header, *filter(None, (row.cells for row in table.rows)), strict=True)
    ]
