"""What a worker and a process of its tasks say to each other: bytes, with a letter in front. Knows no process.

Behind the letter is the number of the job that it is about, for a process runs many jobs, and what is said late is not
of the job in hand. A job travels as key, value and payload, as it is stored; outcomes as JSON. Nothing here is pickled.
"""

from __future__ import annotations

import json
import logging
import struct
from importlib import import_module
from typing import TYPE_CHECKING
from uuid import UUID

from telha_queue import errors
from telha_queue.errors import ConfigError, JobError, StorageError
from telha_queue.job import JobRecord
from telha_queue.scope import Scope
from telha_queue.worker.verdict import Done, Failed, GivenBack, Outcome

if TYPE_CHECKING:
    from telha_queue.worker.task import AnyTask

JOB, REPLY, LOST = b"j", b"r", b"l"
HELLO, CHECKPOINT, STATS, PROGRESS, LOG = b"h", b"c", b"s", b"p", b"o"
DONE, FAILED, GIVEN_BACK = b"d", b"f", b"g"

NO_JOB = 0
"""The number in messages about none. Those of jobs begin with 1, in each process."""
MAX_MESSAGE_BYTES = 256 << 20
"""Whoever announces more does not speak this language: text begins with a byte that makes it twice as long."""

_HEAD = struct.Struct(">cI")
_SIZES = struct.Struct(">III")


def message(letter: bytes, number: int, body: bytes = b"") -> bytes:
    """One message. Raises ValueError when it is too long to be sent."""
    if len(body) > MAX_MESSAGE_BYTES - _HEAD.size:
        raise ValueError(f"{len(body)} bytes are too many to send; at most {MAX_MESSAGE_BYTES >> 20} MiB")
    return _HEAD.pack(letter, number) + body


def parts(message: bytes) -> tuple[bytes, int, bytes]:
    """Letter, number and body of a message. Raises struct.error when it is none."""
    letter, number = _HEAD.unpack_from(message)
    return letter, number, message[_HEAD.size :]


class _Source:
    """Where a record finds what it does not hold: here it came along."""

    def __init__(self, payload: bytes, scope_name: str | None) -> None:
        self._payload = payload
        self._scope_name = scope_name

    def load_payload(self, job_id: bytes) -> bytes:
        return self._payload

    def load_result(self, job_id: bytes) -> bytes:
        raise StorageError("a job that a process works on has no result yet")

    def scope_of(self, scope: bytes) -> Scope:
        return Scope(scope, self._scope_name)


def job_body(record: JobRecord) -> bytes:
    """A job on its way to a process: how long key, value and the scope's name are, then these, then the payload.

    Raises StorageError when the payload cannot be read.
    """
    key, value, name = record.key, record.value, (record.scope.name or "").encode()
    return b"".join((_SIZES.pack(len(key), len(value), len(name)), key, value, name, record.payload))


def record_of(body: bytes) -> JobRecord:
    """The job in a body."""
    parts, at = [], _SIZES.size
    for size_bytes in _SIZES.unpack_from(body):
        parts.append(body[at : at + size_bytes])
        at += size_bytes
    key, value, name = parts
    return JobRecord(key, value, _Source(body[at:], name.decode() or None))


def checkpoint_body(continuation: bytes, durable: bool) -> bytes:
    """A checkpoint on its way to the worker: whether it is to last, and then its bytes."""
    return (b"\1" if durable else b"\0") + continuation


def checkpoint_in(body: bytes) -> tuple[bytes, bool]:
    """The checkpoint in a body."""
    return body[1:], body[:1] == b"\1"


def progress_body(said: tuple[float, str | None] | None) -> bytes:
    """What a handler says of its progress; nothing if only that there is some."""
    return b"" if said is None else json.dumps(said).encode()


def progress_in(body: bytes) -> tuple[float, str | None] | None:
    """What it said. Raises ValueError when that is not to be read."""
    if not body:
        return None
    fraction, text = json.loads(body)
    return fraction, text


def outcome_message(number: int, outcome: Outcome) -> bytes:
    """An outcome on its way back."""
    if isinstance(outcome, Done):
        return message(DONE, number, b"" if outcome.result is None else b"\1" + outcome.result)
    try:
        body = json.dumps(outcome._asdict())
    except (TypeError, ValueError) as unsaid:  # the delay that a handler asked for may be anything
        text = f"{unsaid}: {outcome.error}" if isinstance(outcome, Failed) else str(unsaid)
        outcome = Failed(f"the outcome cannot be sent: {text}")
        body = json.dumps(outcome._asdict())
    return message(FAILED if isinstance(outcome, Failed) else GIVEN_BACK, number, body.encode())


def outcome_in(letter: bytes, body: bytes) -> Outcome | None:
    """The outcome in a message; None if it is another message."""
    if letter == DONE:
        return Done(body[1:] if body else None)
    if letter == FAILED:
        return Failed(**json.loads(body))
    if letter == GIVEN_BACK:
        return GivenBack(**json.loads(body))
    return None


def error_body(error: JobError) -> bytes:
    """An error by which the queue has refused what a handler asks for, on its way to that handler."""
    return json.dumps([type(error).__name__, str(error), vars(error)], default=str).encode()


def error_in(body: bytes) -> JobError:
    """The error in a body: of the class that it was, for handlers and rules go by that."""
    name, text, facts = json.loads(body)
    kind = getattr(errors, name, JobError)
    error: JobError = kind.__new__(kind, text)
    error.__dict__.update(facts)
    if "job_id" in facts:
        error.__dict__["job_id"] = UUID(facts["job_id"])
    return error


def log_body(record: logging.LogRecord) -> bytes:
    """A line that a handler logs, on its way to the worker's log."""
    facts = {"name": record.name, "levelno": record.levelno, "levelname": record.levelname, "msg": record.getMessage()}
    facts |= {name: getattr(record, name) for name in ("created", "msecs", "pathname", "lineno", "funcName", "process")}
    if record.exc_info:
        facts["exc_text"] = logging.Formatter().formatException(record.exc_info)
    return json.dumps(facts).encode()


def log_in(body: bytes) -> logging.LogRecord:
    """The line in a body."""
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
