"""`telha worker`: tasks of a module, run until told to stop."""

from __future__ import annotations

import logging
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from telha_queue.cli import arguments
from telha_queue.cli.app import open_queue, path_option
from telha_queue.cli.exits import OneLine

if TYPE_CHECKING:
    from telha_queue.queue import Queue
    from telha_queue.scope import Scope
    from telha_queue.worker import Worker


@click.command()
@path_option
@click.option("--create", is_flag=True, help="Make the queue if there is none.")
@click.option("--scope", metavar="SCOPE", type=arguments.scope, help="Work for this scope only; else for all.")
@click.option("--concurrency", default=16, show_default=True, help="Jobs at a time.")
@click.option("--prefetch", default=0, show_default=True, help="Jobs leased ahead, for short ones.")
@click.option("--grace-secs", default=30.0, show_default=True, help="How long handlers may go on after SIGTERM.")
@click.option("--health", metavar="ADDRESS", help="Answer there for itself: HOST:PORT of loopback, or unix:PATH.")
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.argument("target", metavar="MODULE[:NAME]")
def worker(
    path: str | None,
    create: bool,
    scope: Scope | None,
    health: str | None,
    log_format: str,
    target: str,
    **options: Any,
) -> None:
    """Run the tasks of a module until SIGTERM or Ctrl-C.

    MODULE has functions with @task in front. NAME is one of them, a list of them, or a function that is given the
    queue and returns a Worker; without it all of the module's tasks are run. A second signal ends the wait for
    handlers. Exit codes besides the usual: 6 some jobs had to be given back, 7 the worker could not go on.
    """
    _log(log_format)
    found = _found(target)
    with open_queue(path, create=create) as queue:
        made = _made(queue, found, scope=scope, health=health, **options)
        code = made.run()
    raise click.exceptions.Exit(code)


def _found(target: str) -> object:
    """What the target names: tasks, or what makes a worker."""
    from telha_queue.worker import BytesTask, Task

    module_name, _, name = target.partition(":")
    if not all(part.isidentifier() for part in module_name.split(".")):
        raise OneLine(f"{module_name!r} is not the name of a module; it is given as in an import: package.module")
    if module_name.endswith(".py"):
        raise OneLine(f"{module_name} is a file; its module is {module_name.removesuffix('.py')}")
    sys.path.insert(0, os.getcwd())  # where a program's own modules are, for a command that stands elsewhere
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not module_name.startswith(error.name):
            raise  # the module is there, and what it imports is not
        raise OneLine(f"there is no module {module_name}") from None
    if not name:
        tasks = [value for value in vars(module).values() if isinstance(value, (BytesTask, Task))]
        if not tasks:
            raise OneLine(f"module {module_name} has no tasks: functions with @task in front")
        return list(dict.fromkeys(tasks))
    try:
        return getattr(module, name)
    except AttributeError:
        raise OneLine(f"module {module_name} has no {name}") from None


def _made(queue: Queue, found: object, **options: Any) -> Worker:
    from telha_queue.worker import BytesTask, Task, Worker

    if isinstance(found, (BytesTask, Task)):
        found = [found]
    if isinstance(found, (list, tuple)):
        return Worker(queue, tasks=found, **options)
    if given := _given():
        raise OneLine(f"{', '.join(given)}: a function that makes the worker gives it its settings itself")
    made = found(queue) if callable(found) else found
    if not isinstance(made, Worker):
        raise OneLine(
            f"a worker is made of tasks, or of a function that returns a Worker, not of {type(made).__name__}"
        )
    return made


def _given() -> list[str]:
    """Settings of a worker that stand on the command line."""
    context = click.get_current_context()
    command_line = click.core.ParameterSource.COMMANDLINE
    names = ("scope", "concurrency", "prefetch", "grace_secs", "health")
    return [f"--{name.replace('_', '-')}" for name in names if context.get_parameter_source(name) is command_line]


def _log(how: str) -> None:
    from telha_queue.worker.logs import JsonFormatter, KeyValueFormatter

    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if how == "json" else KeyValueFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
