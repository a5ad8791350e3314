"""Whose jobs: the 32 bytes that every key starts with."""

from __future__ import annotations

from uuid import UUID

from telha_queue.errors import InvalidScope

NIL = UUID(int=0)
SCOPE_BYTES = 32

# Names become tenant ids by hashing, in a namespace of our own so that they never meet another system's ids.
_NAMES = UUID("6f1d0c5e-7d5b-5c39-9a0e-3d1f4c3c7a51")
_MAX_NAME_BYTES = 255


class Scope:
    """A tenant and a space within it, or the system. Immutable; equal when the keys are equal.

    Build one with `Scope.tenant`, `Scope.named` or `Scope.SYSTEM`. `key` is the 32-byte prefix of its rows.
    """

    __slots__ = ("_name", "key")
    SYSTEM: Scope
    _name: str | None
    key: bytes

    def __init__(self, key: bytes, name: str | None = None) -> None:
        if type(key) is not bytes or len(key) != SCOPE_BYTES:
            raise InvalidScope(f"a scope key is {SCOPE_BYTES} bytes")
        if key[:16] == NIL.bytes and key[16:] != NIL.bytes:
            raise InvalidScope("the nil tenant has no spaces: it is the system scope")
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "_name", name)

    @classmethod
    def tenant(cls, tenant_id: UUID, space_id: UUID = NIL) -> Scope:
        """The scope of one space of one tenant. Raises InvalidScope for the nil tenant, which is the system."""
        if not isinstance(tenant_id, UUID) or not isinstance(space_id, UUID):
            raise InvalidScope("tenant_id and space_id are uuid.UUID values")
        if tenant_id.int == 0:
            raise InvalidScope("the nil UUID is the system scope, not a tenant")
        return cls(tenant_id.bytes + space_id.bytes)

    @classmethod
    def named(cls, name: str) -> Scope:
        """The tenant scope that a short name stands for: 1 to 255 bytes of printable text, the same id every time."""
        if not isinstance(name, str) or not name.isprintable() or not 0 < len(_utf8(name)) <= _MAX_NAME_BYTES:
            raise InvalidScope(f"a scope name is printable text of 1 to {_MAX_NAME_BYTES} bytes")
        from uuid import uuid5  # hashing is only needed here

        return cls(uuid5(_NAMES, name).bytes + NIL.bytes, name)

    @property
    def is_system(self) -> bool:
        """Whether this is the reserved scope of deployment-wide work."""
        return self.key == bytes(SCOPE_BYTES)

    @property
    def tenant_id(self) -> UUID:
        """The tenant; nil for the system scope."""
        return UUID(bytes=self.key[:16])

    @property
    def space_id(self) -> UUID:
        """The space; nil when the tenant has only one."""
        return UUID(bytes=self.key[16:])

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Scope is immutable")

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Scope) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        if self.is_system:
            return "system"
        if self._name is not None:
            return self._name
        return str(self.tenant_id) if self.space_id.int == 0 else f"{self.tenant_id}/{self.space_id}"

    def __repr__(self) -> str:
        return f"<Scope {self}>"


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return b""


Scope.SYSTEM = Scope(bytes(SCOPE_BYTES))
