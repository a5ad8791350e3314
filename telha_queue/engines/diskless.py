"""What an engine without a disk answers to calls that are about one."""

from __future__ import annotations

import os

from telha_queue.errors import UnsupportedByEngine
from telha_queue.job import JobState
from telha_queue.upkeep import FsckReport, SnapshotReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Never


class Diskless:
    """Nothing to take to disk, to open again, to recover or to make a snapshot of, and nothing that can be damaged."""

    recovered = None
    failure = None

    def flush(self) -> None:
        """Whatever is acknowledged is as safe as it gets, unless the engine is closed."""
        self.last_seen_us()

    def reopen(self) -> None:
        """As flush."""
        self.last_seen_us()

    def fsck(self, repair: bool) -> FsckReport:
        """Nothing can be wrong."""
        return FsckReport(sum(self.counts(None).values()), {}, {})

    def snapshot(self, directory: str | os.PathLike[str]) -> SnapshotReport:
        """Nothing is on disk."""
        raise UnsupportedByEngine("only a queue in a directory has snapshots")

    def renewer(self) -> Never:
        """Nobody but Python can reach it."""
        raise UnsupportedByEngine("only a queue in a directory has a native keeper")

    def last_seen_us(self) -> int:
        """A verb of the engine that changes nothing."""
        raise NotImplementedError

    def counts(self, scope: bytes | None) -> dict[JobState, int]:
        """Another."""
        raise NotImplementedError
