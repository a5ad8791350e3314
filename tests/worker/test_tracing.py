"""Traces: a handler's span is a child of the span in which its job was enqueued, on whatever thread it runs."""

from __future__ import annotations

import pytest

from telha_queue import JobState, Scope
from telha_queue.worker import Job, Permanent, task

ACME = Scope.named("acme")
sdk = pytest.importorskip("opentelemetry.sdk.trace")


@pytest.fixture(scope="module")
def spans():
    from opentelemetry import trace
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.mark.parametrize("is_async", [False, True])
def test_the_context_travels_with_the_job(queue, work, until, spans, is_async):
    from opentelemetry import trace

    spans.clear()
    inside = []

    def plain(job: Job) -> None:
        inside.append(trace.get_current_span().get_span_context().trace_id)

    async def coroutine(job: Job) -> None:
        plain(job)

    told = task("x")(coroutine if is_async else plain)
    with trace.get_tracer("test").start_as_current_span("request") as request:
        job = told.enqueue(queue, ACME)
        queue.enqueue_many(ACME, [told.spec()])
    work(told)
    until(lambda: queue.counts()[JobState.COMPLETED] == 2)
    until(lambda: len(spans.get_finished_spans()) == 3)
    assert inside == [request.get_span_context().trace_id] * 2
    process = [span for span in spans.get_finished_spans() if span.name == "process x"]
    assert [span.parent.span_id for span in process] == [request.get_span_context().span_id] * 2
    assert process[0].attributes["messaging.destination.name"] == "x"
    assert str(job.job_id) in {span.attributes["messaging.message.id"] for span in process}


def test_a_span_says_that_its_handler_failed(queue, work, until, spans):
    spans.clear()

    @task("bad")
    def bad(job: Job) -> None:
        raise Permanent("no")

    bad.enqueue(queue, ACME)
    work(bad)
    until(lambda: len(spans.get_finished_spans()) == 1)
    [span] = spans.get_finished_spans()
    assert not span.status.is_ok
    assert span.events[0].name == "exception"
