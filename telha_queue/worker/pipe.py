"""What a worker and a process of its tasks say to each other: bytes, with a letter in front. Knows no process.

A job travels as key, value and payload, as it is stored; outcomes as JSON. Nothing here is pickled.
"""

from __future__ import annotations

import json
import struct
from importlib import import_module
from typing import TYPE_CHECKING

from telha_queue.errors import ConfigError
from telha_queue.job import JobRecord
from telha_queue.worker.verdict import Done, Failed, GivenBack, Outcome

if TYPE_CHECKING:
    from telha_queue.worker.task import AnyTask

JOB, REPLY, LOST = b"j", b"r", b"l"
CHECKPOINT, STATS, PROGRESS = b"c", b"s", b"p"
DONE, FAILED, GIVEN_BACK = b"d", b"f", b"g"

_SIZES = struct.Struct(">II")


class _Payload:
    """Where a record finds its payload that is stored in a row of its own."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload

    def load_payload(self, job_id: bytes) -> bytes:
        return self._payload


def job_message(record: JobRecord) -> bytes:
    """A job on its way to a process."""
    key, value = record.key, record.value
    return b"".join((JOB, _SIZES.pack(len(key), len(value)), key, value, record.payload))


def record_of(body: bytes) -> JobRecord:
    """The job in a message, without its letter."""
    key_bytes, value_bytes = _SIZES.unpack_from(body)
    value_at = _SIZES.size + key_bytes
    payload_at = value_at + value_bytes
    return JobRecord(body[_SIZES.size : value_at], body[value_at:payload_at], _Payload(body[payload_at:]))


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
