"""Where a queue or a snapshot may be made: not among the files of another. Knows names of files only."""

from __future__ import annotations

import os

from telha_queue.errors import InvalidPath

LOCK_NAME = "telha.lock"
"""Held by the owner; its presence marks a directory as a queue. See docs/format.md."""
SNAPSHOT_NAME = "telha.snapshot"
"""Says that a directory is a snapshot, and holds the latest time that it knows of. See docs/format.md."""


def refuse_inside_another(where: str) -> None:
    """Raise InvalidPath if the directory that a new one is to be made in is itself a queue or a snapshot.

    Its name may be one that the store of that queue will use, or takes for a file of its own. Deeper down, in a
    directory that somebody else made there, it is in nobody's way. Raises OSError too.
    """
    parent = os.path.realpath(os.path.dirname(where))
    for name, what in ((LOCK_NAME, "queue"), (SNAPSHOT_NAME, "snapshot")):
        if os.path.lexists(os.path.join(parent, name)):
            raise InvalidPath(f"{where}: is inside of {parent}, which is a {what}")
