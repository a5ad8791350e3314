"""docs/cli.md is the promise: it names every command, option, exit code and field there is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from telha_queue.cli import describe, exits
from telha_queue.cli.app import telha
from telha_queue.cli.arguments import STATES
from telha_queue.scope import Scope
from telha_queue.testing import memory_queue


@pytest.fixture(scope="module")
def page() -> str:
    return (Path(__file__).parents[2] / "docs" / "cli.md").read_text()


def commands(group: click.Group, words: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{words} {name}")
        else:
            yield f"{words} {name}", command


@pytest.mark.parametrize(("words", "command"), list(commands(telha, "telha")))
def test_every_command_is_documented_with_an_example_and_its_options(
    page: str, words: str, command: click.Command
) -> None:
    assert f"\n## {words}\n" in page
    assert f"{words} " in page.replace("\n", " ")
    for option in command.params:
        if isinstance(option, click.Option):
            assert f"`{option.opts[0]}" in page


def test_every_exit_code_is_documented(page: str) -> None:
    codes = [value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)]
    assert len(set(codes)) == 9
    for code in codes:
        assert f"| {code} |" in page


def test_every_word_for_a_state_and_every_json_field_is_documented(page: str) -> None:
    with memory_queue() as queue:
        fields = describe.as_json(queue.enqueue(Scope.SYSTEM, "x"), Scope.SYSTEM, b"")
    for word in [*STATES, *fields]:
        assert f"`{word}`" in page
