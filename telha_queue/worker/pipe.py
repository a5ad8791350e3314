"""What a worker and a process of its tasks say to each other: bytes, with a letter in front. Knows no process.

A job travels as key, value and payload, as it is stored; outcomes as JSON. Nothing here is pickled.
"""

from __future__ import annotations

import json
import logging
import struct
from importlib import import_module
from typing import TYPE_CHECKING

from telha_queue.errors import ConfigError
from telha_queue.job import JobRecord
from telha_queue.scope import Scope
from telha_queue.worker.verdict import Done, Failed, GivenBack, Outcome

if TYPE_CHECKING:
    from telha_queue.worker.task import AnyTask

JOB, REPLY, LOST = b"j", b"r", b"l"
CHECKPOINT, STATS, PROGRESS, LOG = b"c", b"s", b"p", b"o"
DONE, FAILED, GIVEN_BACK = b"d", b"f", b"g"

_SIZES = struct.Struct(">III")


class _Source:
    """Where a record finds what it does not hold: here it came along."""

    def __init__(self, payload: bytes, scope_name: str | None) -> None:
        self._payload = payload
        self._scope_name = scope_name

    def load_payload(self, job_id: bytes) -> bytes:
        return self._payload

    def scope_of(self, scope: bytes) -> Scope:
        return Scope(scope, self._scope_name)


def job_message(record: JobRecord) -> bytes:
    """A job on its way to a process: how long key, value and the scope's name are, then these, then the payload."""
    key, value, name = record.key, record.value, (record.scope.name or "").encode()
    return b"".join((JOB, _SIZES.pack(len(key), len(value), len(name)), key, value, name, record.payload))


def record_of(body: bytes) -> JobRecord:
    """The job in a message, without its letter."""
    parts, at = [], _SIZES.size
    for size_bytes in _SIZES.unpack_from(body):
        parts.append(body[at : at + size_bytes])
        at += size_bytes
    key, value, name = parts
    return JobRecord(key, value, _Source(body[at:], name.decode() or None))


def outcome_message(outcome: Outcome) -> bytes:
    """An outcome on its way back."""
    if isinstance(outcome, Done):
        return DONE
    letter = FAILED if isinstance(outcome, Failed) else GIVEN_BACK
    return letter + json.dumps(outcome._asdict()).encode()


def outcome_in(message: bytes) -> Outcome | None:
    """The outcome in a message; None if it is another message."""
    letter, body = message[:1], message[1:]
    if letter == DONE:
        return Done()
    if letter == FAILED:
        return Failed(**json.loads(body))
    if letter == GIVEN_BACK:
        return GivenBack(**json.loads(body))
    return None


def log_message(record: logging.LogRecord) -> bytes:
    """A line that a handler logs, on its way to the worker's log."""
    facts = {"name": record.name, "levelno": record.levelno, "levelname": record.levelname, "msg": record.getMessage()}
    facts |= {name: getattr(record, name) for name in ("created", "msecs", "pathname", "lineno", "funcName", "process")}
    if record.exc_info:
        facts["exc_text"] = logging.Formatter().formatException(record.exc_info)
    return LOG + json.dumps(facts).encode()


def log_in(body: bytes) -> logging.LogRecord:
    """The line in a message, without its letter."""
    return logging.makeLogRecord(json.loads(body))


def name_of(task: AnyTask) -> tuple[str, str]:
    """By what module and name a process finds a task. Raises ConfigError when it cannot."""
    module, name = task.__module__, task.__qualname__
    if "<" in name:
        raise ConfigError(f"{task!r}: a task that runs in a process stands at the top of a module")
    return module, name


def find(module: str, name: str) -> AnyTask:
    """The task of that name."""
    found: object = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found  # type: ignore[return-value]
