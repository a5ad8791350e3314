"""Whose jobs: the 32 bytes that every key starts with."""

from __future__ import annotations

from uuid import UUID

from telha_queue.errors import InvalidScope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

NIL = UUID(int=0)
SCOPE_BYTES = 32

# Names become tenant ids by hashing, in a namespace of our own so that they never meet another system's ids.
_NAMES = UUID("6f1d0c5e-7d5b-5c39-9a0e-3d1f4c3c7a51")
_MAX_NAME_BYTES = 255


class Scope:
    """A tenant and a space within it, or the system. Immutable; equal when the keys are equal.

    Build one with `Scope.tenant`, `Scope.named` or `Scope.SYSTEM`. `key` is the 32-byte prefix of its rows. `name` is
    the text it was named by, None for any other. The scope of a job has it when the store does.
    """

    __slots__ = ("key", "name")
    SYSTEM: Scope
    key: bytes
    name: str | None

    def __new__(cls, key: bytes, name: str | None = None) -> Self:
        if type(key) is not bytes:
            raise InvalidScope(
                f"a scope key is {SCOPE_BYTES} bytes, not {type(key).__name__}; use Scope.named or Scope.tenant"
            )
        if len(key) != SCOPE_BYTES:
            raise InvalidScope(f"a scope key is {SCOPE_BYTES} bytes, not {len(key)}")
        if key[:16] == NIL.bytes and key[16:] != NIL.bytes:
            raise InvalidScope("the nil tenant has no spaces: it is the system scope")
        if name is not None:
            name = _checked(name)
            if key != _key_of(name):
                raise InvalidScope("a scope's name is the one that its key is made of")
        scope = super().__new__(cls)
        object.__setattr__(scope, "key", key)
        object.__setattr__(scope, "name", name)
        return scope

    @classmethod
    def tenant(cls, tenant_id: UUID, space_id: UUID = NIL) -> Scope:
        """The scope of one space of one tenant. Raises InvalidScope for the nil tenant, which is the system."""
        tenant, space = uuid_as_bytes(tenant_id), uuid_as_bytes(space_id)
        if tenant is None or space is None:
            wrong = tenant_id if tenant is None else space_id
            raise InvalidScope(f"tenant_id and space_id are uuid.UUID values, not {type(wrong).__name__}")
        if tenant == NIL.bytes:
            raise InvalidScope("the nil UUID is the system scope, not a tenant")
        return cls(tenant + space)

    @classmethod
    def named(cls, name: str) -> Scope:
        """The tenant scope that a short name stands for: 1 to 255 bytes of printable text, the same id every time.

        A store remembers the name from the first job that is enqueued with it; `Queue.scopes` tells it.
        """
        checked = _checked(name)
        scope = cls(_key_of(checked))
        object.__setattr__(scope, "name", checked)
        return scope

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

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What is not there; of a key or a name, because `object.__new__` made a scope without them."""
            if name in Scope.__slots__:
                raise InvalidScope("a scope is made by Scope.named, Scope.tenant or Scope itself")
            raise AttributeError(f"a Scope has no attribute {name!r}", name=name, obj=self)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Scope is immutable")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.key, self.name)

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Scope) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        if self.is_system:
            return "system"
        if self.name is not None:
            return self.name
        return str(self.tenant_id) if self.space_id.int == 0 else f"{self.tenant_id}/{self.space_id}"

    def __repr__(self) -> str:
        return f"<Scope {self}>"


def scope_as_stored(key: bytes, name: str | None) -> Scope:
    """The scope of a key and of the name that a store has for it, which is left out when it is damaged."""
    try:
        return Scope(key, name)
    except InvalidScope:
        return Scope(key)


_number_of = vars(UUID)["int"].__get__


def uuid_as_bytes(value: UUID) -> bytes | None:
    """The 16 bytes of a UUID, or None for what is none. By its number: what else a subclass says is its own affair."""
    try:
        return int.to_bytes(_number_of(value, UUID), 16, "big")
    except (TypeError, AttributeError, OverflowError):  # no UUID, one that was never given its number, or a huge one
        return None


def exact_text(value: str) -> str | None:
    """A str as nothing but its text, so that what is checked is what is stored; None for what is no str."""
    try:
        return str.__str__(value)
    except TypeError:
        return None


def _checked(name: str) -> str:
    text = exact_text(name)
    if text is None:
        raise InvalidScope(f"a scope name is a str, not {type(name).__name__}")
    # Printable comes first: it refuses lone surrogates too, which cannot be encoded.
    if not text.isprintable() or not 0 < len(text.encode()) <= _MAX_NAME_BYTES:
        raise InvalidScope(f"a scope name is printable text of 1 to {_MAX_NAME_BYTES} bytes")
    return text


def _key_of(name: str) -> bytes:
    from uuid import uuid5  # hashing is only needed here

    return uuid5(_NAMES, name).bytes + NIL.bytes


Scope.SYSTEM = Scope(bytes(SCOPE_BYTES))
