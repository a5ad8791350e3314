"""Spans, and the context of a trace that travels with a job. Needs opentelemetry-api, of the extra `otel`.

Nothing happens unless the program has set up OpenTelemetry: without it in `sys.modules` not even an import does.
Names follow the messaging conventions of semconv 1.45, which may still change: they stand here and nowhere else.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from telha_queue.job import JobRecord

SYSTEM = "telha_queue"
_NAMES = ("traceparent", "tracestate")


def carried() -> dict[str, str] | None:
    """The context of the span under way, as headers of a job that is enqueued in it; None if there is none."""
    if "opentelemetry.trace" not in sys.modules:
        return None
    from opentelemetry import propagate

    headers: dict[str, str] = {}
    propagate.inject(headers)
    return {name: headers[name] for name in _NAMES if name in headers} or None


def is_on() -> bool:
    """Whether the program uses OpenTelemetry."""
    return "opentelemetry.trace" in sys.modules


@contextmanager
def processing(record: JobRecord, worker_id: str) -> Iterator[None]:
    """A span around a handler, child of the one in which the job was enqueued. An exception marks and passes it."""
    from opentelemetry import propagate, trace

    tracer = trace.get_tracer("telha_queue.worker")
    context = propagate.extract(_plain(record.headers))
    attributes: dict[str, Any] = {
        "messaging.system": SYSTEM,
        "messaging.operation.type": "process",
        "messaging.destination.name": record.kind,
        "messaging.message.id": str(record.job_id),
        "messaging.consumer.group.name": worker_id,
        "telha.job.attempt": record.attempts + 1,
        "telha.scope": str(record.scope),
    }
    with tracer.start_as_current_span(
        f"process {record.kind}", context=context, kind=trace.SpanKind.CONSUMER, attributes=attributes
    ):
        yield


def _plain(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: headers[name] for name in _NAMES if name in headers}
