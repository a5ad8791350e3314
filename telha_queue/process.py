"""What becomes of open queues when their process ends or is forked."""

from __future__ import annotations

import atexit
import os
from weakref import WeakSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Open(Protocol):
        """A queue that is open."""

        def close(self) -> None:
            """Release the directory."""

        def _abandon(self) -> None:
            """Refuse every call from now on, touching nothing."""


_open: WeakSet[Open] = WeakSet()


def watch(queue: Open) -> None:
    """Close the queue at the end of the process, and abandon it in forked children."""
    _open.add(queue)


def unwatch(queue: Open) -> None:
    """The queue is closed."""
    _open.discard(queue)


@atexit.register
def _close_all() -> None:
    """Close what is still open while threads and the interpreter are there to do it in order."""
    for queue in list(_open):
        queue.close()


def _abandon_all() -> None:
    for queue in list(_open):
        queue._abandon()


os.register_at_fork(after_in_child=_abandon_all)
