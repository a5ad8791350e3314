"""NamedTuple for the modules that every user imports.

`typing.NamedTuple` would do, but importing `typing` takes as long as all of our own modules together. Type checkers
see the real one; at run time this one makes the same classes.
"""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:

    class _Maker(type):
        def __new__(cls, name, bases, namespace):
            if not bases:
                return super().__new__(cls, name, bases, namespace)
            fields = list(namespace["__annotations__"])
            defaults = [namespace.pop(field) for field in fields if field in namespace]
            base = namedtuple(name, fields, defaults=defaults, module=namespace["__module__"])
            return type(name, (base,), {"__slots__": (), **namespace})

    class NamedTuple(metaclass=_Maker):
        """Base of an immutable value: a class with annotated fields, and defaults for the last of them."""


__all__ = ["NamedTuple"]
