"""The operator's command, `telha`: ask a queue directory where a job is and why it failed, and put it right.

An outer ring: it knows the queue, its jobs, scopes, errors and settings, and no engine.
"""

from __future__ import annotations

import os
import sys

__all__ = ["main"]


_EXTRA = ("click", "rich")
_STDERR = 2


def main() -> None:
    """Run the command line and exit with its code; docs/cli.md lists the codes."""
    _occupy_standard_streams()
    if sys.stdout is None:
        if sys.stderr is not None:
            print("telha: standard output is closed", file=sys.stderr)
        sys.exit(1)
    try:
        from telha_queue.cli.app import telha

        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.reconfigure(errors="backslashreplace")  # nothing is unprintable
        telha(prog_name="telha")
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in _EXTRA:
            raise
        print("telha needs its extra: pip install 'telha-queue[cli]'", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


def _occupy_standard_streams() -> None:
    """Where the shell has closed a standard stream, see that no file of the queue gets its number."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        pass
    os.close(descriptor)
