"""The stored form of a job, written to be read: what docs/format.md says, in msgpack.

This is the twin that the compiled codec (`ext/record.hpp`) is held to, byte for byte. It is for tests and tools: no
verb runs through it, and only `encode` and `decode` need msgpack. It knows bytes; it knows nothing of time, of
transitions or of RocksDB.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from telha_queue.errors import CorruptRecord, InvalidArgument, UnsupportedVersion
from telha_queue.job import JobEvent, JobState

VALUE_VERSION = 1
KEY_BYTES = 58
JOB_ID_BYTES = 16
MAX_KIND_BYTES = 128
MAX_DEPTH = 8
REQUIRED_FIELDS = 15
"""The fields that every record has; those behind them read as their empty value when absent."""
WRITTEN_FIELDS = 22
"""The fields that are always written; those behind them are, as far as the last that is not nil."""
WHOLE_PROGRESS = 1_000_000


class RecordFields(NamedTuple):
    """A job record taken apart, in the order in which it is stored.

    Strings are str, times are integer microseconds, `payload` is None when the bytes stand in their own row. `headers`
    are names and values in turn. `extra` holds a newer writer's fields, untouched.
    """

    job_id: bytes
    kind: str
    payload: bytes | None
    priority: int
    created_at: int
    state: int
    attempts: int = 0
    lease_generation: int = 0
    worker_id: str | None = None
    lease_deadline: int | None = None
    not_before: int | None = None
    idempotency_key: str | None = None
    max_attempts: int | None = None
    continuation: bytes | None = None
    events: tuple[JobEvent, ...] = ()
    payload_bytes: int = 0
    dead_reason: str | None = None
    reaped_worker_id: str | None = None
    events_dropped: int = 0
    crashes: int = 0
    lease_ttl_us: int | None = None
    headers: tuple[str, ...] | None = None
    expires_at: int | None = None
    progress: int | None = None
    progress_text: str | None = None
    durable_continuation: bytes | None = None
    result: bytes | None = None
    result_bytes: int | None = None
    extra: tuple[Any, ...] = ()


class WiderEvent(JobEvent):
    """An event to which a newer writer gave more fields; `extra` holds them through every rewrite."""

    extra: tuple[Any, ...] = ()

    @classmethod
    def of(cls, values: tuple[Any, ...]) -> WiderEvent:
        """Make one of all its stored values."""
        event = cls(*values[:5])
        event.extra = values[5:]
        return event

    def _replace(self, **changes: Any) -> WiderEvent:
        return self.of((*super()._replace(**changes), *self.extra))


def encode(fields: RecordFields) -> bytes:
    """Write a record in its canonical form. Raises InvalidArgument for fields that no reader would accept."""
    import msgpack  # type: ignore[import-untyped]

    known: list[Any] = list(fields[:-1])
    while not fields.extra and len(known) > WRITTEN_FIELDS and known[-1] is None:
        known.pop()
    known[_EVENTS_AT] = [_event_values(event) for event in fields.events]
    try:
        value: bytes = bytes([VALUE_VERSION]) + msgpack.packb([*known, *fields.extra])
        decode(value)
    except (CorruptRecord, ValueError, TypeError, OverflowError) as error:
        raise InvalidArgument(f"not a record: {error}") from None
    return value


def decode(value: bytes) -> RecordFields:
    """Read and check a record. Raises CorruptRecord, or UnsupportedVersion for a newer release's format."""
    import msgpack

    if not value:
        raise CorruptRecord("record: empty")
    if value[0] != VALUE_VERSION:
        raise UnsupportedVersion("record: a format version of a newer release")
    try:
        values = msgpack.unpackb(value[1:], use_list=False)
    except (msgpack.UnpackException, ValueError, TypeError, RecursionError):
        # The reason would quote the record.
        raise CorruptRecord("record: not msgpack") from None
    if type(values) is not tuple or len(values) < REQUIRED_FIELDS or not _is_plain(values, depth=0):
        raise CorruptRecord("record: not an array of fields")
    for (name, is_valid), field in zip(_FIELDS.items(), values, strict=False):
        if not is_valid(field):
            raise CorruptRecord(f"record: {name}")
    known = list(values[: len(_FIELDS)])
    known[_EVENTS_AT] = tuple(map(_event, known[_EVENTS_AT]))
    fields = RecordFields(*known)._replace(extra=values[len(_FIELDS) :])
    _check_state(fields)
    return fields


def _check_state(fields: RecordFields) -> None:
    """What must hold between fields, so that no verb has to ask."""
    is_leased = fields.state == JobState.LEASED
    if is_leased != (fields.worker_id is not None) or is_leased != (fields.lease_deadline is not None):
        raise CorruptRecord("record: worker_id or lease_deadline does not fit the state")
    if fields.dead_reason is not None and fields.state != JobState.DEAD:
        raise CorruptRecord("record: dead_reason does not fit the state")


def _event(values: tuple[Any, ...]) -> JobEvent:
    return JobEvent(*values) if len(values) <= len(JobEvent._fields) else WiderEvent.of(values)


def _event_values(event: JobEvent) -> tuple[Any, ...]:
    """Only merged heartbeats are written with a count."""
    values = tuple(event)
    if isinstance(event, WiderEvent):
        return values + event.extra
    return values[:3] if values[3:] == (1, None) else values


def _is_plain(value: object, depth: int) -> bool:
    """Whether it is nil, a boolean, an integer, a string, a binary, or a shallow array of these."""
    if type(value) is tuple:
        return depth < MAX_DEPTH and all(_is_plain(item, depth + 1) for item in value)
    return value is None or type(value) in (bool, int, str, bytes)


def _is_event(value: object) -> bool:
    if type(value) is not tuple or len(value) < 3 or len(value) == 4:
        return False
    at, transition, detail, *merged = value
    if not (_is_time(at) and _is_text(transition) and _is_optional_text(detail)):
        return False
    return not merged or (_is_uint64(merged[0]) and _is_time(merged[1]))


def _is_uint(limit: int) -> Callable[[object], bool]:
    return lambda value: type(value) is int and 0 <= value < limit


def _is_optional(is_valid: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or is_valid(value)


def _is_text(value: object) -> bool:
    return type(value) is str


def _is_binary(value: object) -> bool:
    return type(value) is bytes


_is_uint32 = _is_uint(2**32)
_is_uint64 = _is_uint(2**64)
_is_time = _is_uint(2**63)
_is_optional_text = _is_optional(_is_text)

_FIELDS: dict[str, Callable[[Any], bool]] = {
    "job_id": lambda value: _is_binary(value) and len(value) == JOB_ID_BYTES,
    "kind": lambda value: _is_text(value) and 0 < len(value.encode()) <= MAX_KIND_BYTES,
    "payload": _is_optional(_is_binary),
    "priority": _is_uint(256),
    "created_at": _is_time,
    "state": _is_uint(len(JobState)),
    "attempts": _is_uint32,
    "lease_generation": _is_uint64,
    "worker_id": _is_optional_text,
    "lease_deadline": _is_optional(_is_time),
    "not_before": _is_optional(_is_time),
    "idempotency_key": _is_optional_text,
    "max_attempts": _is_optional(_is_uint32),
    "continuation": _is_optional(_is_binary),
    "events": lambda value: type(value) is tuple and all(map(_is_event, value)),
    "payload_bytes": _is_uint64,
    "dead_reason": _is_optional_text,
    "reaped_worker_id": _is_optional_text,
    "events_dropped": _is_uint64,
    "crashes": _is_uint32,
    "lease_ttl_us": _is_optional(_is_time),
    "headers": _is_optional(lambda value: type(value) is tuple and len(value) % 2 == 0 and all(map(_is_text, value))),
    "expires_at": _is_optional(_is_time),
    "progress": _is_optional(_is_uint(WHOLE_PROGRESS + 1)),
    "progress_text": _is_optional_text,
    "durable_continuation": _is_optional(_is_binary),
    "result": _is_optional(_is_binary),
    "result_bytes": _is_optional(_is_time),
}
_EVENTS_AT = RecordFields._fields.index("events")
