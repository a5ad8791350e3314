"""Scopes as people and programs see them: by name where the store knows one, and always by key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from telha_queue.cli import arguments
from telha_queue.cli.exits import OneLine
from telha_queue.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from telha_queue.queue import Queue


class Known:
    """The scopes that have jobs, with their names: what turns the scope of a job into one that says its name."""

    def __init__(self, scopes: Iterable[Scope]) -> None:
        self._known = {scope: scope for scope in scopes}  # equal by key, and these have their names

    @classmethod
    def of(cls, queue: Queue) -> Known:
        """Those of a queue that is open."""
        return cls(queue.scopes())

    def __getitem__(self, scope: Scope) -> Scope:
        """The same scope, with its name if it is known."""
        return self._known.get(scope, scope)

    def __iter__(self) -> Iterator[Scope]:
        return iter(self._known)

    def __contains__(self, scope: Scope) -> bool:
        """Whether it has jobs."""
        return scope in self._known


def key_form(scope: Scope) -> str:
    """`system`, a tenant's UUID or `tenant/space`, whatever its name is."""
    return str(Scope(scope.key))


def label(scope: Scope) -> str:
    """What an operator calls it and may type: its name, unless that, typed, would be taken for something else."""
    try:
        return str(scope if arguments.scope(str(scope)) == scope else Scope(scope.key))
    except OneLine:  # a name that looks like a UUID
        return key_form(scope)


def tell_unknown(scope: Scope) -> None:
    """Say that a scope somebody typed has no jobs: most likely it is a slip of the pen."""
    click.echo(f"no jobs in scope {label(scope)}", err=True)


def facts(scope: Scope) -> list[tuple[str, str]]:
    """Its lines in `telha jobs show`. Two UUIDs are too long for one line of 80 columns."""
    if scope.space_id.int:
        return [("tenant", str(scope.tenant_id)), ("space", str(scope.space_id))]
    shown = label(scope)
    return [("scope", shown)] if shown == key_form(scope) else [("scope", shown), ("tenant", key_form(scope))]


def as_json(scope: Scope) -> dict[str, str | None]:
    """Its fields in any JSON object."""
    return {"scope": key_form(scope), "scope_name": scope.name}
