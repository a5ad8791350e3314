"""Rows of a program's own: families of keys and values, in the order of the keys, apart from each other."""

from __future__ import annotations

import pytest

from telha_queue.errors import InvalidArgument, StoreClosed


def put(queue, family, rows):
    with queue.transaction() as tx:
        for key, value in rows.items():
            tx.put(family, key, value)


def test_a_value_is_there_until_it_is_deleted(queue):
    put(queue, "f", {b"k": b"v", b"empty": b""})
    assert queue.data("f").get(b"k") == b"v"
    assert queue.data("f").get(b"empty") == b""
    assert queue.data("f").get(b"other") is None
    put(queue, "f", {b"k": b"w"})
    assert queue.data("f").get(b"k") == b"w"
    with queue.transaction() as tx:
        tx.delete("f", b"k")
        tx.delete("f", b"never there")
    assert queue.data("f").get(b"k") is None


def test_the_last_word_on_a_key_counts(queue):
    with queue.transaction() as tx:
        tx.put("f", b"a", b"1")
        tx.delete("f", b"a")
        tx.delete("f", b"b")
        tx.put("f", b"b", b"2")
    assert queue.data("f").scan() == [(b"b", b"2")]


def test_a_scan_is_in_the_order_of_the_keys_and_goes_page_by_page(queue):
    keys = [bytes([n]) for n in (0, 1, 127, 128, 254, 255)]
    put(queue, "f", dict.fromkeys(reversed(keys), b"v"))
    data = queue.data("f")
    assert [key for key, _ in data.scan()] == keys
    assert [key for key, _ in data.scan(limit=2)] == keys[:2]
    assert [key for key, _ in data.scan(after=keys[1], limit=2)] == keys[2:4]
    assert data.scan(after=keys[-1]) == []


def test_a_prefix_is_a_part_of_the_key_and_a_whole_one(queue):
    put(queue, "f", dict.fromkeys([b"a", b"ab", b"ab\xff", b"ac", b"b", b"\xff", b"\xff\xff"], b""))
    data = queue.data("f")
    assert [key for key, _ in data.scan(b"ab")] == [b"ab", b"ab\xff"]
    assert [key for key, _ in data.scan(b"a", after=b"ab")] == [b"ab\xff", b"ac"]
    assert [key for key, _ in data.scan(b"a", after=b"0")] == [b"a", b"ab", b"ab\xff", b"ac"]
    assert [key for key, _ in data.scan(b"\xff")] == [b"\xff", b"\xff\xff"]
    assert data.scan(b"a", after=b"b") == []


def test_families_are_apart_whatever_their_names(queue):
    names = ["a", "aa", "b", "ä", "x" * 64]
    for name in names:
        put(queue, name, {b"a": name.encode(), b"aa": name.encode()})
    for name in names:
        assert queue.data(name).scan() == [(b"a", name.encode()), (b"aa", name.encode())]
        assert queue.data(name).name == name
    assert queue.data("nothing").scan() == []


def test_a_page_ends_before_it_is_too_large(make_queue):
    queue = make_queue(max_payload_bytes=7 << 20)
    for n in range(5):
        put(queue, "f", {bytes([n]): bytes(7 << 20)})
    pages, after = [], None
    while page := queue.data("f").scan(after=after):
        pages.append(len(page))
        after = page[-1][0]
    assert pages == [2, 2, 1]


def test_it_is_there_after_a_restart(queue, reopen):
    put(queue, "f", {b"k": b"v"})
    assert reopen(queue).data("f").scan() == [(b"k", b"v")]


@pytest.mark.parametrize("name", ["", "x" * 65, "a\nb", 7, None])
def test_a_family_has_a_short_printable_name(queue, name):
    with pytest.raises(InvalidArgument):
        queue.data(name)


@pytest.mark.parametrize(
    "read",
    [
        lambda data: data.get("k"),
        lambda data: data.get(b""),
        lambda data: data.get(b"k" * 1025),
        lambda data: data.scan("a"),
        lambda data: data.scan(after="a"),
        lambda data: data.scan(limit=0),
        lambda data: data.scan(limit=1001),
    ],
)
def test_bad_arguments_of_a_read_are_refused(queue, read):
    with pytest.raises(InvalidArgument):
        read(queue.data("f"))


def test_a_closed_queue_has_no_rows(queue):
    data = queue.data("f")
    queue.close()
    for read in (lambda: data.get(b"k"), data.scan):
        with pytest.raises(StoreClosed):
            read()
