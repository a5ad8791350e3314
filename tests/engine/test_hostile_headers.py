"""Headers are read by code of whoever made the mapping: whatever it does, it is that job's headers that are refused."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count, product

import pytest

from telha_queue.errors import InvalidArgument
from telha_queue.job import JobSpec
from telha_queue.scope import Scope

ACME = Scope.named("acme")


class Headers(Mapping):
    """A mapping whose items are what a test says, made by code that may raise."""

    def __init__(self, items):
        self._items = items

    def items(self):
        return self._items()

    def __getitem__(self, key):
        raise KeyError(key)

    def __iter__(self):
        raise RuntimeError

    def __len__(self):
        return -1


class Dict(dict):
    """A dict that is not read like one."""

    def __init__(self, items):
        super().__init__(a="b")
        self.items = items


class Faceless:
    """It cannot even be asked what it is."""

    @property
    def __class__(self):
        raise RuntimeError


class Unspeakable(Exception):
    """An error that cannot be shown."""

    def __str__(self):
        raise RuntimeError

    __repr__ = __str__


def raising(error, after=()):
    """A function whose items are these, and then an error."""

    def items():
        yield from after
        raise error

    return items


ERRORS = (RuntimeError("boom"), ValueError("v" * 5000), TypeError(), KeyError("k"), StopIteration(), Unspeakable())
SHAPES = (5, None, "a", "abc", b"ab", 1.5, object(), (), ("a",), ("a", "b", "c"), [["a", "b"]], count(), {"a": 1})
HOSTILE_ITEMS = [
    *(lambda shape=shape: shape for shape in (5, None, 1.5, object())),
    *(lambda before=before, shape=shape: [*before, shape] for before, shape in product(([], [("a", "b")]), SHAPES)),
    *(raising(error, after) for error, after in product(ERRORS, ((), [("a", "b")]))),
    lambda: raising(RuntimeError())().throw(KeyError()),
    lambda: zip(count(), count(), strict=False),
]


@pytest.mark.parametrize("kind", [Headers, Dict, lambda _: Faceless()], ids=["mapping", "dict", "faceless"])
def test_headers_that_are_no_pairs_or_raise_when_read_are_refused_and_stop_no_other_job(queue, refused, kind):
    for items in HOSTILE_ITEMS:
        bad = kind(items)
        with refused(queue, InvalidArgument) as caught:
            queue.enqueue(ACME, "embed", headers=bad)
        assert len(str(caught.value)) < 200
        with refused(queue, InvalidArgument):
            queue.enqueue_many(ACME, [JobSpec("embed"), JobSpec("embed", headers=bad)], atomic=True)
        first, wrong, last = queue.enqueue_many(
            ACME, [JobSpec("embed"), JobSpec("embed", headers=kind(items)), JobSpec("embed")]
        )
        assert isinstance(wrong, InvalidArgument)
        assert str(wrong).startswith("job 1: ")
        assert first.created_at < last.created_at


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_what_is_no_fault_of_the_headers_is_not_taken_for_one(queue, error):
    with pytest.raises(error):
        queue.enqueue(ACME, "embed", headers=Headers(raising(error)))
    assert queue.list(ACME) == []
