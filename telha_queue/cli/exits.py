"""Exit codes: which error ends the command with which code and line. docs/cli.md is the promise to scripts."""

from __future__ import annotations

import click

from telha_queue.cli.text import printable
from telha_queue.errors import ConfigError, InvalidArgument, InvalidPath, JobError, StorageError, StoreLocked

REFUSED = 1
"""The queue refused: no such job, or its state does not allow it."""
FOUND = 1
"""A check has found what was not repaired."""
USAGE = 2
"""The command line or a setting is wrong; click's own code for it."""
LOCKED = 3
"""Another process owns the directory."""
NO_QUEUE = 4
"""There is no queue at the path, or it cannot be one."""
STORAGE = 5
"""The store failed or is damaged."""
DEAD = 8
"""The job that was waited for is dead."""
NOT_ENDED = 9
"""It is neither completed nor dead."""
INTERRUPTED = 130
"""Ctrl-C; 128 + SIGINT."""
PIPE_CLOSED = 141
"""Whoever read the output stopped reading; 128 + SIGPIPE."""

_CODES = (
    (StoreLocked, LOCKED),
    (InvalidPath, NO_QUEUE),
    (StorageError, STORAGE),
    (InvalidArgument, USAGE),
    (ConfigError, USAGE),
)


class OneLine(Exception):
    """Ends the command with one line on stderr and an exit code."""

    def __init__(self, message: str, exit_code: int = USAGE) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def complain(message: str) -> None:
    """Print one line on stderr, safe for a terminal."""
    click.echo(f"telha: {printable(message)}", err=True)


def code_of(error: JobError) -> int:
    """The exit code that an error of the queue stands for."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), REFUSED)


def ending_of(error: JobError) -> OneLine:
    """How an error of the queue ends the command."""
    return OneLine(f"{error}{_advice(error)}", code_of(error))


def _advice(error: JobError) -> str:
    if isinstance(error, StoreLocked):
        return "; stop that one first, or do it in that program, by its queue: queue.list(), queue.enqueue() and so on"
    if isinstance(error, StorageError) and error.outcome == "unknown":
        return "; it may or may not have been done: look before you repeat it"
    return ""
