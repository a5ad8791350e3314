"""The disk that power cuts are played on: what was synced is there, and of the rest whatever the image chooses."""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

import pytest

from tests.torture.disk import ENTRIES, TAILS, Disk
from tests.torture.trace import Call

MAKE = os.O_CREAT | os.O_WRONLY
FOLDER_FD, FD = 3, 4


def call(kind: str, fd: int = -1, a: int = 0, path: str = "", data: bytes = b"") -> Call:
    return Call(kind.encode(), fd, a, 0, path, data)


def played(*calls: Call) -> Disk:
    disk = Disk()
    for each in (call("M", path="/q"), call("O", FOLDER_FD, os.O_RDONLY, "/q"), *calls):
        disk.carry_out(each)
    return disk


MADE = (call("O", FD, MAKE, "/q/log"), call("W", FD, 0, data=b"a" * 5000))
SYNCED = (*MADE, call("S", FD), call("S", FOLDER_FD))


def images(disk: Disk) -> list[dict[str, bytes]]:
    return [disk.after_cut(tail, entries, Random(n)) for n in range(20) for tail in TAILS for entries in ENTRIES]


def test_what_was_synced_is_in_every_image() -> None:
    assert all(image == {"/q/log": b"a" * 5000} for image in images(played(*SYNCED)))


def test_a_synced_file_brings_its_own_entry() -> None:
    assert all(image == {"/q/log": b"a" * 5000} for image in images(played(*MADE, call("S", FD))))


def test_a_file_not_synced_may_be_missing_or_empty_or_whole() -> None:
    found = {image.get("/q/log") for image in images(played(*MADE))}
    assert {None, b"", b"a" * 5000} <= found


@pytest.mark.parametrize(
    ("tail", "is_right"),
    [
        ("dropped", lambda data: data == b"a" * 5000),
        ("kept", lambda data: data == b"a" * 5000 + b"b" * 9000),
        ("cut", lambda data: (b"a" * 5000 + b"b" * 9000).startswith(data) and len(data) >= 5000),
        (
            "zeroed",
            lambda data: len(data) == 14000 and data.startswith(b"a" * 5000) and set(data[5000:]) <= {0, ord("b")},
        ),
    ],
)
def test_a_tail_not_synced_goes_the_way_that_was_chosen(tail: str, is_right: Callable[[bytes], bool]) -> None:
    disk = played(*SYNCED, call("W", FD, 5000, data=b"b" * 9000))
    found = [disk.after_cut(tail, "none", Random(n))["/q/log"] for n in range(50)]
    assert all(map(is_right, found))
    assert len(set(found)) > 1 or tail in ("dropped", "kept")


def test_a_removal_and_a_rename_not_synced_may_be_undone() -> None:
    disk = played(*SYNCED, call("U", path="/q/log"))
    assert {len(image) for image in images(disk)} == {0, 1}
    disk = played(*SYNCED, call("R", path="/q/log", data=b"/q/new"))
    assert {tuple(image) for image in images(disk)} == {("/q/log",), ("/q/new",)}
    disk.carry_out(call("S", FOLDER_FD))
    assert {tuple(image) for image in images(disk)} == {("/q/new",)}


def test_a_name_that_was_used_before_is_the_new_file_once_that_is_synced() -> None:
    again = (call("U", path="/q/log"), call("O", 5, MAKE, "/q/log"), call("W", 5, 0, data=b"new"), call("S", 5))
    disk = played(*MADE, *again)
    assert all(image == {"/q/log": b"new"} for image in images(disk))
    disk.carry_out(call("S", FOLDER_FD))
    assert all(image == {"/q/log": b"new"} for image in images(disk))


def test_a_file_cut_shorter_is_as_before_or_as_after() -> None:
    disk = played(*SYNCED, call("T", FD, 100))
    assert {len(image["/q/log"]) for image in images(disk)} == {100, 5000}
    disk.carry_out(call("S", FD))
    assert {len(image["/q/log"]) for image in images(disk)} == {100}


def test_a_folder_that_nobody_synced_from_above_is_known() -> None:
    disk = played(*SYNCED)
    assert "/q" not in disk.synced_folders
    disk.carry_out(call("O", 9, os.O_RDONLY, "/"))
    disk.carry_out(call("S", 9))
    assert "/q" in disk.synced_folders
