"""How the arguments of a task become the payload of a job, and come back. Knows no queue.

A payload is bytes. A codec turns keyword arguments into bytes that other languages can write and read too: one map from
the names of a task's parameters to their values. There is none that could run code that a payload brings along.
"""

from __future__ import annotations

import json
from typing import Any, Protocol

from telha_queue.worker.verdict import Permanent


class BadPayload(Permanent):
    """The payload is not what the task's codec and parameters ask for: no attempt can succeed."""


class Codec(Protocol):
    """Both ways. `decode` raises ValueError for anything that `encode` would not make."""

    name: str

    def encode(self, arguments: dict[str, Any]) -> bytes: ...

    def decode(self, payload: bytes) -> dict[str, Any]: ...


class JsonCodec:
    """A JSON object in UTF-8. NaN and infinities are refused, for JSON has none."""

    name = "json"

    def encode(self, arguments: dict[str, Any]) -> bytes:
        return json.dumps(arguments, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()

    def decode(self, payload: bytes) -> dict[str, Any]:
        return _a_map(json.loads(payload))


class MsgpackCodec:
    """A msgpack map; bytes stay bytes. Needs the package msgpack, of the extra `worker`."""

    name = "msgpack"

    def encode(self, arguments: dict[str, Any]) -> bytes:
        packed: bytes = _msgpack().packb(arguments)
        return packed

    def decode(self, payload: bytes) -> dict[str, Any]:
        return _a_map(_msgpack().unpackb(payload))


JSON = JsonCodec()
MSGPACK = MsgpackCodec()


def _a_map(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"a map of arguments by name, not {type(value).__name__}")
    return value


def _msgpack() -> Any:
    from telha_queue.worker.extras import wanted

    return wanted("msgpack", "worker")
