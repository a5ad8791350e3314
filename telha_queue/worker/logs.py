"""Log lines that say which job they are about: key=value for people, JSON for machines. Uses `logging` alone.

    handler.setFormatter(JsonFormatter())      # or KeyValueFormatter()

Whatever a handler logs while it runs, through any logger, carries job, kind, scope and attempt. No payload is logged.
"""

from __future__ import annotations

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from telha_queue.job import JobRecord

current: ContextVar[JobRecord | None] = ContextVar("telha_job", default=None)
"""The job whose handler is running here: in this thread, or this task of the event loop."""


def _facts(record: logging.LogRecord) -> dict[str, object]:
    facts: dict[str, object] = {
        "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "text": record.getMessage(),
    }
    job = current.get()
    if job is not None:
        facts |= {"job": str(job.job_id), "kind": job.kind, "scope": str(job.scope), "attempt": job.attempts + 1}
    if record.exc_info:
        facts["error"] = logging.Formatter().formatException(record.exc_info)
    elif record.exc_text:
        facts["error"] = record.exc_text
    return facts


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(_facts(record), ensure_ascii=True, default=str)


class KeyValueFormatter(logging.Formatter):
    """key=value, quoted where it has to be."""

    def format(self, record: logging.LogRecord) -> str:
        return " ".join(f"{name}={_quoted(str(value))}" for name, value in _facts(record).items())


def _quoted(text: str) -> str:
    plain = text.isprintable() and text and not set(' "=') & set(text)
    return text if plain else json.dumps(text)
