"""A durable job queue that a Python program imports."""

from __future__ import annotations

from telha_queue.config import QueueConfig
from telha_queue.engine import Outcomes
from telha_queue.job import Exact, Failure, JobEvent, JobRecord, JobSpec, JobState, Lease, ReapReport
from telha_queue.queue import Queue
from telha_queue.scope import Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os

    from telha_queue.clock import Clock
    from telha_queue.upkeep import RestoreReport

__all__ = [
    "Exact",
    "Failure",
    "JobEvent",
    "JobRecord",
    "JobSpec",
    "JobState",
    "Lease",
    "Outcomes",
    "Queue",
    "QueueConfig",
    "ReapReport",
    "Scope",
    "__version__",
    "build_info",
    "restore",
]
__version__ = "0.1.0"


def build_info() -> dict[str, str | bool]:
    """How the compiled core was built: versions, RocksDB "system" or "bundled", and whether its asserts are on.

    A RocksDB with asserts ends the process where another returns an error; see docs/operating.md.
    """
    from telha_queue.engines.rocks import build_info as rocks_build_info

    return {"telha_queue": __version__, **rocks_build_info()}


def restore(
    snapshot: str | os.PathLike[str], directory: str | os.PathLike[str], *, clock: Clock | None = None
) -> RestoreReport:
    """Make a queue in a new directory of what `Queue.snapshot` made, which stays as it is; then open it as any other.

    Jobs that were leased are pending again. No lease from before is accepted by the new queue, neither one taken before
    the snapshot nor one that the original has given out since. The directory is there, fsynced, when the call returns,
    and not at all when it raises: InvalidPath for a path at which something is, or for what is no snapshot;
    StorageError, CorruptionError.
    """
    from telha_queue.clock import GuardedClock
    from telha_queue.engines.snapshots import restore_snapshot

    return restore_snapshot(snapshot, directory, GuardedClock(clock)())
