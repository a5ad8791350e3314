"""The command `telha`: its groups, the options all commands share, and the one place where errors become exits.

Commands are imported when they are asked for, so that each starts as fast as it can.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import click

from telha_queue.cli import exits
from telha_queue.errors import InvalidPath, JobError

if TYPE_CHECKING:
    from telha_queue.queue import Queue

Command = TypeVar("Command", bound=Callable[..., Any])

PATH_VARIABLE = "TELHA_QUEUE_PATH"
_EARLIER = "telha_queue.cli.earlier."


class LazyGroup(click.Group):
    """A group whose commands are named here and imported on use: name -> "module:attribute"."""

    def __init__(self, *args: Any, commands_at: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._commands_at = commands_at

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order in which they were given."""
        return list(self._commands_at)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in self._commands_at:
            return None
        module, _, attribute = self._commands_at[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command


class Telha(LazyGroup):
    """The root: runs a command and turns what it raises into a line and an exit code, never a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run, then flush, so that a reader that went away is noticed here and not at interpreter exit."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except exits.OneLine as ending:
            raise _exit(ending) from None
        except JobError as error:
            raise _exit(exits.ending_of(error)) from None
        except KeyboardInterrupt:
            raise click.exceptions.Exit(exits.INTERRUPTED) from None
        except BrokenPipeError:
            _discard_output()
            raise click.exceptions.Exit(exits.PIPE_CLOSED) from None
        except OSError as error:
            _discard_output()
            raise _exit(exits.OneLine(str(error), exits.REFUSED)) from None
        return result


def _exit(ending: exits.OneLine) -> click.exceptions.Exit:
    exits.complain(str(ending))
    return click.exceptions.Exit(ending.exit_code)


def _discard_output() -> None:
    """Let what is still buffered go nowhere: the interpreter would try again to write it at exit, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def queue_options(command: Command) -> Command:
    """The options of every command on one queue: which, and for whom the output is."""
    return path_option(json_option(command))


def path_option(command: Command) -> Command:
    """Which queue it is about."""
    return click.option(
        "--path",
        metavar="DIR",
        envvar=PATH_VARIABLE,
        callback=_or_earlier,
        help=f"The queue's directory; else ${PATH_VARIABLE}.",
    )(command)


def json_option(command: Command) -> Command:
    """For whom the output is."""
    return click.option("--json", "as_json", is_flag=True, callback=_or_earlier, help="Print JSON, for programs.")(
        command
    )


def early_options(group: Command) -> Command:
    """The same options in front of a command's name, `telha --path DIR jobs list`, where many type them."""
    how: dict[str, Any] = {"callback": _remember, "expose_value": False, "hidden": True}
    return click.option("--path", **how)(click.option("--json", "as_json", is_flag=True, **how)(group))


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value:
        ctx.meta[_EARLIER + str(param.name)] = value


def _or_earlier(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """What was given in front of the command counts as given to it, unless it has its own."""
    name = str(param.name)
    given = click.core.ParameterSource.COMMANDLINE
    if ctx.get_parameter_source(name) is given or _EARLIER + name not in ctx.meta:
        return value
    ctx.set_parameter_source(name, given)
    return ctx.meta[_EARLIER + name]


def open_queue(path: str | None, *, create: bool = False, recover: str | None = None) -> Queue:
    """Open the queue that a command is about. It must exist unless `create` is true."""
    if not path:
        raise exits.OneLine(f"which queue? Give --path DIR or set {PATH_VARIABLE}")
    from telha_queue.queue import Queue

    try:
        return Queue.open(path, create=create, recover=recover)
    except InvalidPath as error:
        raise exits.OneLine(f"{error}{_way_out(path)}", exits.NO_QUEUE) from error
    except ImportError as error:
        raise exits.OneLine(f"the storage engine does not load: {error}", exits.STORAGE) from error


def _way_out(path: str) -> str:
    """For a path without a queue: that one can be made there, or where the path was taken from."""
    ctx = click.get_current_context()
    if "create" in ctx.params and not os.path.lexists(path):
        return "; give --create to make one"
    from_environment = ctx.get_parameter_source("path") is click.core.ParameterSource.ENVIRONMENT
    is_it = from_environment and ctx.params["path"] == path
    return f"; the path is from {PATH_VARIABLE if is_it else 'the command line'}"


def now_us() -> int:
    """The time by which ages and waits are told."""
    return time.time_ns() // 1000


def _print_version(ctx: click.Context, param: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        from telha_queue import __version__

        click.echo(f"telha {__version__}")
        ctx.exit()


@click.group(
    cls=Telha,
    commands_at={
        "jobs": "telha_queue.cli.app:jobs",
        "worker": "telha_queue.cli.worker:worker",
        "top": "telha_queue.cli.top:top",
        "stats": "telha_queue.cli.stats:stats",
        "info": "telha_queue.cli.info:info",
        "recover": "telha_queue.cli.recover:recover",
        "fsck": "telha_queue.cli.fsck:fsck",
        "snapshot": "telha_queue.cli.snapshots:snapshot",
        "restore": "telha_queue.cli.snapshots:restore",
    },
)
@early_options
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version."
)
def telha() -> None:
    """Look into a job queue, and put its jobs right.

    Commands take --path DIR (or TELHA_QUEUE_PATH) and --json. Exit codes: 0 done, 1 refused or found, 2 usage,
    3 locked by another process, 4 no queue at the path, 5 storage failed; of telha worker 6 jobs were given back, 7 it
    could not go on; of telha jobs wait 8 the job is dead, 9 it has not ended.
    """


@click.group(
    cls=LazyGroup,
    commands_at={
        "enqueue": "telha_queue.cli.jobs:enqueue",
        "list": "telha_queue.cli.jobs:list_jobs",
        "show": "telha_queue.cli.jobs:show",
        "result": "telha_queue.cli.ends:result",
        "wait": "telha_queue.cli.ends:wait",
        "retry": "telha_queue.cli.jobs:retry",
        "cancel": "telha_queue.cli.jobs:cancel",
        "reschedule": "telha_queue.cli.jobs:reschedule",
        "reap": "telha_queue.cli.jobs:reap",
    },
)
@early_options
def jobs() -> None:
    """Enqueue, find and repair jobs."""
