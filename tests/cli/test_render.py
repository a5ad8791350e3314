from __future__ import annotations

import pytest

from telha_queue.cli import render

TABLE = render.Table(
    ("ID", "N", "NAME"),
    [render.Row(("a", "10", "[red]x[/red]")), render.Row(("bcd", "9", "\x1b[2J"), "note\n")],
    right=(1,),
)


def test_plain_columns_align_and_nothing_trails(capsys: pytest.CaptureFixture[str]) -> None:
    render.show(TABLE)
    assert capsys.readouterr().out.splitlines() == [
        "ID    N  NAME",
        "a    10  [red]x[/red]",
        "bcd   9  \\x1b[2J",
        "    note\\n",
    ]


def test_one_long_cell_in_a_pipe_is_whole_and_leaves_the_other_lines_short(capsys: pytest.CaptureFixture[str]) -> None:
    render.show(render.Table(("KIND", "NOTE"), [render.Row(("k" * 128, "a")), render.Row(("x", "b"))]))
    assert capsys.readouterr().out.splitlines()[1:] == ["k" * 128 + "  a", "x".ljust(40) + "  b"]


def test_a_terminal_shows_markup_and_escapes_literally(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "on_terminal", lambda: True)
    render.show(TABLE)
    shown = capsys.readouterr().out
    assert "[red]x[/red]" in shown
    assert "\\x1b[2J" in shown
    assert "\x1b" not in shown


def test_only_the_last_column_folds_at_the_edge(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    render.show(render.Table(("ID", "KIND"), [render.Row(("i" * 30, "k" * 20)), render.Row((), "h" * 10)]))
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "ID" + " " * 30 + "KIND",
        "i" * 30 + "  " + "k" * 8,
        " " * 32 + "k" * 8,
        " " * 32 + "kkkk",
        "h" * 10,
    ]
