"""How the arguments of a task become the payload of a job, and come back. Knows no queue.

A payload is bytes. A codec turns keyword arguments into bytes that other languages can write and read too: one map from
the names of a task's parameters to their values. There is none that could run code that a payload brings along.
"""

from __future__ import annotations

import json
from typing import Any, Protocol, runtime_checkable

from telha_queue.worker.verdict import Permanent


class BadPayload(Permanent):
    """The payload is not what the task's codec and parameters ask for: no attempt can succeed."""


class Codec(Protocol):
    """Both ways. `decode` raises ValueError for anything that `encode` would not make."""

    name: str

    def encode(self, arguments: dict[str, Any]) -> bytes: ...

    def decode(self, payload: bytes) -> dict[str, Any]: ...


@runtime_checkable
class ResultCodec(Codec, Protocol):
    """A codec for what tasks return, too, which may be anything that it has a form for."""

    def encode_result(self, value: Any) -> bytes: ...

    def decode_result(self, result: bytes) -> Any: ...


class JsonCodec:
    """A JSON object in UTF-8. NaN and infinities are refused, for JSON has none."""

    name = "json"

    def encode(self, arguments: dict[str, Any]) -> bytes:
        return self.encode_result(arguments)

    def decode(self, payload: bytes) -> dict[str, Any]:
        return _a_map(self.decode_result(payload))

    def encode_result(self, value: Any) -> bytes:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()

    def decode_result(self, result: bytes) -> Any:
        return json.loads(result)


class MsgpackCodec:
    """A msgpack map; bytes stay bytes. Needs the package msgpack, of the extra `worker`."""

    name = "msgpack"

    def encode(self, arguments: dict[str, Any]) -> bytes:
        return self.encode_result(arguments)

    def decode(self, payload: bytes) -> dict[str, Any]:
        return _a_map(self.decode_result(payload))

    def encode_result(self, value: Any) -> bytes:
        packed: bytes = _msgpack().packb(value)
        return packed

    def decode_result(self, result: bytes) -> Any:
        return _msgpack().unpackb(result)


JSON = JsonCodec()
MSGPACK = MsgpackCodec()


def _a_map(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"a map of arguments by name, not {type(value).__name__}")
    return value


def _msgpack() -> Any:
    from telha_queue.worker.extras import wanted

    return wanted("msgpack", "worker")
