"""A worker as plain values, for JSON: how it is, its lanes, its kinds, the jobs at work. No payloads."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from telha_queue.worker.claim import Claim
    from telha_queue.worker.counters import Histogram
    from telha_queue.worker.runtime import Worker

MAX_SHOWN = 100
"""Jobs at work that are listed, the oldest first."""


def status_of(worker: Worker, running: Sequence[Claim]) -> dict[str, Any]:
    """What `/status` answers. Fields are added in later releases, never changed."""
    oldest = sorted((claim for claim in running if claim.started_ns), key=lambda claim: claim.started_ns)
    return {
        "worker": worker.worker_id,
        "ready": worker.is_ready,
        "store_error": None if worker.store_error is None else str(worker.store_error),
        "threads_abandoned": worker.abandoned,
        "lanes": {name: load._asdict() for name, load in worker.load().items()},
        "kinds": {
            kind: {**figures.endings, "run": _spans(figures.run), "wait": _spans(figures.wait)}
            for kind, figures in worker.counters.kinds.items()
        },
        "running": [_job(claim) for claim in oldest[:MAX_SHOWN]],
    }


def _job(claim: Claim) -> dict[str, Any]:
    record = claim.record
    return {
        "job": str(record.job_id),
        "kind": record.kind,
        "scope": str(record.scope),
        "attempt": record.attempts + 1,
        "lane": claim.share.name,
        "secs": (time.monotonic_ns() - claim.started_ns) / 1e9,
    }


def _spans(histogram: Histogram) -> dict[str, Any]:
    mean = histogram.sum_secs / histogram.count if histogram.count else 0.0
    return {"count": histogram.count, "mean_secs": mean, "buckets": list(histogram.buckets)}
