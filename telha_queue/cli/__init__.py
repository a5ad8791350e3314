"""The operator's command, `telha`: ask a queue directory where a job is and why it failed, and put it right.

An outer ring: it knows the queue, its jobs, scopes, errors and settings, and no engine.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


_EXTRA = ("click", "rich")


def main() -> None:
    """Run the command line and exit with its code; docs/cli.md lists the codes."""
    try:
        from telha_queue.cli.app import telha

        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # nothing is unprintable
        telha(prog_name="telha")
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in _EXTRA:
            raise
        print("telha needs its extra: pip install 'telha-queue[cli]'", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
