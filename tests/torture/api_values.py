"""Values that callers should not pass: of the wrong type, too long, not what they say they are, or changing meanwhile.

Each is made afresh where it could be used up. No value is a valid wait of more than a moment: see `api_calls.py`.
"""

from __future__ import annotations

import array
import threading
from collections import UserString, deque
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import count, repeat
from random import Random
from typing import Any
from uuid import UUID

from telha_queue import Exact, JobSpec, JobState, Lease, Scope


class Mine(Exception):
    """Raised by values of the caller's own, who may well see it again."""


class LyingStr(str):
    """Text that answers every question in its favour."""

    def isprintable(self) -> bool:
        return True

    def isascii(self) -> bool:
        return True

    def encode(self, *_: Any, **__: Any) -> bytes:
        return b"x"

    def __len__(self) -> int:
        return 1

    def __str__(self) -> str:
        return "fine"

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 7

    def __repr__(self) -> str:
        raise Mine


class LyingInt(int):
    """A number that lies within every bound."""

    def __lt__(self, other: object) -> bool:
        return True

    __le__ = __gt__ = __ge__ = __eq__ = __lt__  # type: ignore[assignment]

    def __hash__(self) -> int:
        return 7

    def __index__(self) -> int:
        raise Mine


class LyingBytes(bytes):
    """Bytes that say that they are few, and others."""

    def __len__(self) -> int:
        return 1

    def __bytes__(self) -> bytes:
        return b"other"

    def __getitem__(self, _: Any) -> Any:
        raise Mine


class LyingFloat(float):
    """A span within every bound."""

    def __le__(self, other: object) -> bool:
        return True

    __ge__ = __lt__ = __gt__ = __le__

    def __round__(self, *_: Any) -> Any:
        return "soon"


class Pretender:
    """Says that it is a str, and is none."""

    __class__ = str  # type: ignore[assignment]

    def __repr__(self) -> str:
        raise Mine


class LyingUUID(UUID):
    """An id that says other bytes than it is."""

    bytes = b"short"  # type: ignore[assignment]


class Unborn(UUID):
    """An id that was never given its number."""

    def __init__(self) -> None:
        pass


class Raising:
    """Iterable, as far as one can see."""

    def __iter__(self) -> Iterator[Any]:
        raise Mine


def raising_later() -> Iterator[Any]:
    yield JobSpec("x")
    raise Mine


def grown(number: Any) -> UUID:
    """A UUID with a number that no UUID has."""
    made = UUID(int=0)
    object.__setattr__(made, "int", number)
    return made


class Restless:
    """A bytearray that another thread changes, in length too, for as long as it is used."""

    def __init__(self) -> None:
        self.data = bytearray(b"restless" * 64)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._change, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _change(self) -> None:
        for n in count():
            if self._over.is_set():
                return
            try:
                self.data[n % 64] = n % 256
                self.data.extend(b"y" * 64) if n % 2 else self.data.__delitem__(slice(-64, None))
            except BufferError:  # somebody reads it at this moment, which keeps its length
                continue


def _released() -> memoryview:
    view = memoryview(b"gone")
    view.release()
    return view


HUGE_BYTES = b"x" * (1024 * 1024 + 1)
TEXTS: tuple[Any, ...] = (
    "", "a\0b", "\ud800", "\x1b[2J", "\n", "\u202e", "k" * 128, "k" * 129, "k" * 256, "ä" * 64, "ä" * 65, "ä" * 128,
    "x" * 4096, "x" * 4097, "\U0010ffff", "e\u0301", " ", "refuse", "embed", "x" * 100_000,
)  # fmt: skip
NUMBERS: tuple[Any, ...] = (
    -1, 0, 1, 255, 256, 1000, 1001, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63) - 1, 10**5000,
    -(10**5000), True, False, 1.0, -0.0, 0.5, 1e-9, 4e-7, 1e18, 1e308, float("nan"), float("inf"), float("-inf"), 1j,
    Decimal(1), Fraction(1, 3), JobState.PENDING, JobState.DEAD, LyingInt(-5), LyingInt(7), LyingFloat(-1.0), 3,
)  # fmt: skip
BLOBS: tuple[Any, ...] = (
    b"", b"\0", b"embed", b"x" * 5000, HUGE_BYTES, bytearray(b"abc"), bytearray(HUGE_BYTES), memoryview(b"abc"),
    memoryview(b"abcdef")[::2], memoryview(array.array("i", [1, 2, 3])), array.array("b", b"abc"),
    LyingBytes(b"abc" * 9),
    memoryview(bytearray(b"abc")).cast("B", (1, 3)), LyingBytes(HUGE_BYTES),
)  # fmt: skip
THINGS: tuple[Any, ...] = (
    None, object(), Ellipsis, type, str, Scope.SYSTEM, Scope.named("acme"), UUID(int=0), UUID(int=2**128 - 1),
    grown(2**128),
    grown(-1), grown("7"), grown(None), LyingUUID(int=5), (), [], {}, set(), frozenset("ab"), {"a": 1},
    [1, 2], ["x", 1],
    ("a",) * 64, ("a",) * 65, [None], [JobSpec("x")], JobSpec("x"), JobSpec(1), JobSpec("x", priority=300),
    Exact("embed"),
    Exact(""), Exact("\ud800"), UserString("embed"), deque(["a"]), range(5), range(10**12), NotImplemented, Pretender(),
    Lease(Scope.SYSTEM, UUID(int=5), "w", 1), Lease(None, None, None, None), Lease("a", "b", "c", "d"), Mine, Raising(),
    Lease(Scope.SYSTEM, UUID(int=5), "", -1), (Scope.SYSTEM, UUID(int=5), "w", 1),
    [Lease(Scope.SYSTEM, UUID(int=5), "w", 1)],
)  # fmt: skip
MADE: tuple[Callable[[], Any], ...] = (
    lambda: repeat("a"), lambda: repeat(JobSpec("x")), raising_later, lambda: iter(["a", "b"]),
    lambda: (n for n in range(3)),
    _released, Unborn, lambda: iter(()), lambda: map(JobSpec, ["x", None]), lambda: memoryview(bytearray(9)),
)  # fmt: skip


def hostile(chance: Random, restless: Restless) -> Any:
    """One of them all."""
    dice = chance.random()
    if dice < 0.25:
        text = chance.choice(TEXTS)
        return LyingStr(text) if chance.random() < 0.2 else text
    if dice < 0.5:
        return chance.choice(NUMBERS)
    if dice < 0.65:
        return restless.data if chance.random() < 0.1 else chance.choice(BLOBS)
    if dice < 0.9:
        return chance.choice(THINGS)
    return chance.choice(MADE)()
