"""Write a function; have it run in parallel, kept alive, timed out, retried, drained and observed.

    from telha_queue.worker import Job, Worker, task

    @task("ingest:pdf", timeout_secs=600, max_attempts=4)
    def ingest(job: Job) -> None: ...

    Worker(queue, tasks=[ingest], concurrency=16).run()

It knows a queue by its verbs alone, so it runs on every engine.
"""

from telha_queue.worker.codecs import JSON, MSGPACK, BadPayload, Codec
from telha_queue.worker.job import Job, Lost
from telha_queue.worker.lanes import Lane
from telha_queue.worker.periodic import periodic
from telha_queue.worker.runtime import Worker
from telha_queue.worker.task import BytesTask, Task, task
from telha_queue.worker.verdict import ErrorRules, Permanent, Released, Retry

__all__ = [
    "BadPayload",
    "BytesTask",
    "Codec",
    "ErrorRules",
    "JSON",
    "Job",
    "Lane",
    "Lost",
    "MSGPACK",
    "Permanent",
    "Released",
    "Retry",
    "Task",
    "Worker",
    "periodic",
    "task",
]
