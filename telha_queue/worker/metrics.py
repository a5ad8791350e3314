"""A worker's figures for Prometheus. Needs the package prometheus-client, of the extra `metrics`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from telha_queue.worker.counters import BOUNDS_SECS, ENDINGS, Histogram
from telha_queue.worker.extras import wanted

if TYPE_CHECKING:
    from telha_queue.worker.runtime import Worker


class WorkerCollector:
    """Register it: `prometheus_client.REGISTRY.register(WorkerCollector(worker))`. Reads the figures when asked.

    `telha_worker_jobs_total{kind, ending}`, `telha_worker_run_seconds{kind}`, `telha_worker_wait_seconds{kind}`,
    `telha_worker_permits{lane}`, `telha_worker_permits_used{lane}`, `telha_worker_jobs_waiting{lane}`,
    `telha_worker_threads_abandoned`, `telha_worker_store_up`. Names and labels are stable.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._core: Any = wanted("prometheus_client.core", "metrics")

    def collect(self) -> Iterator[Any]:
        core, worker = self._core, self._worker
        jobs = core.CounterMetricFamily("telha_worker_jobs", "Jobs by how they ended.", labels=["kind", "ending"])
        runs = core.HistogramMetricFamily("telha_worker_run_seconds", "How long handlers ran.", labels=["kind"])
        waits = core.HistogramMetricFamily(
            "telha_worker_wait_seconds", "From enqueue to the first lease.", labels=["kind"]
        )
        for kind, figures in worker.counters.kinds.items():
            for ending in ENDINGS:
                jobs.add_metric([kind, ending], figures.endings[ending])
            runs.add_metric([kind], _buckets(figures.run), figures.run.sum_secs)
            waits.add_metric([kind], _buckets(figures.wait), figures.wait.sum_secs)
        yield from (jobs, runs, waits)
        permits = core.GaugeMetricFamily("telha_worker_permits", "Jobs that may run at a time.", labels=["lane"])
        used = core.GaugeMetricFamily("telha_worker_permits_used", "Jobs that run.", labels=["lane"])
        lines = core.GaugeMetricFamily("telha_worker_jobs_waiting", "Jobs leased ahead.", labels=["lane"])
        for lane, load in worker.load().items():
            permits.add_metric([lane], load.permits)
            used.add_metric([lane], load.used)
            lines.add_metric([lane], load.waiting)
        yield from (permits, used, lines)
        yield core.GaugeMetricFamily(
            "telha_worker_threads_abandoned", "Threads whose handlers hang.", value=worker.abandoned
        )
        yield core.GaugeMetricFamily(
            "telha_worker_store_up", "1 if jobs can be leased.", value=int(worker.store_error is None)
        )


def exposition(worker: Worker) -> bytes:
    """The figures of one worker as the text that Prometheus reads."""
    client = wanted("prometheus_client", "metrics")
    registry = client.CollectorRegistry()
    registry.register(WorkerCollector(worker))
    text: bytes = client.generate_latest(registry)
    return text


def _buckets(histogram: Histogram) -> list[tuple[str, int]]:
    count, cumulated = 0, []
    for bound, n in zip((*map(str, map(float, BOUNDS_SECS)), "+Inf"), list(histogram.buckets), strict=True):
        count += n
        cumulated.append((bound, count))
    return cumulated
