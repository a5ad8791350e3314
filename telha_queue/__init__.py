"""A durable job queue that a Python program imports."""

from __future__ import annotations

from telha_queue.config import QueueConfig
from telha_queue.job import Exact, JobEvent, JobRecord, JobSpec, JobState, Lease, ReapReport
from telha_queue.queue import Queue
from telha_queue.scope import Scope

__all__ = [
    "Exact",
    "JobEvent",
    "JobRecord",
    "JobSpec",
    "JobState",
    "Lease",
    "Queue",
    "QueueConfig",
    "ReapReport",
    "Scope",
    "__version__",
    "build_info",
]
__version__ = "0.1.0"


def build_info() -> dict[str, str | bool]:
    """How the compiled core was built: versions, RocksDB "system" or "bundled", and whether its asserts are on.

    A RocksDB with asserts ends the process where another returns an error; see docs/operating.md.
    """
    from telha_queue.engines.rocks import build_info as rocks_build_info

    return {"telha_queue": __version__, **rocks_build_info()}
