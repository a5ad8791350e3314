"""Keys: where every byte stands, and that byte order is the order of leasing."""

from __future__ import annotations

from itertools import pairwise, product
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telha_queue._codec import decode_key, encode_key, make_job_id, patch_state, prefix_successor
from telha_queue.errors import InvalidArgument, InvalidType
from telha_queue.job import JobState

SCOPE = bytes(range(32))
JOB_ID = bytes(range(100, 116))
MAX_TIME = 2**63 - 1


def test_every_part_stands_where_the_format_says():
    key = encode_key(SCOPE, 4, 200, 0x0102030405060708, JOB_ID)
    assert key == SCOPE + b"\x04\xc8" + bytes([1, 2, 3, 4, 5, 6, 7, 8]) + JOB_ID
    assert len(key) == 58


@given(st.binary(min_size=32, max_size=32), st.integers(0, 4), st.integers(0, 255), st.integers(0, MAX_TIME))
def test_a_decoded_key_is_what_was_encoded(scope, state, priority, created_at):
    assert decode_key(encode_key(scope, state, priority, created_at, JOB_ID)) == (
        scope, state, priority, created_at, JOB_ID,
    )  # fmt: skip


def test_byte_order_is_scope_then_state_then_priority_then_age_then_id():
    parts = list(
        product([bytes(32), SCOPE], [0, 1, 4], [0, 127, 128, 255], [0, 255, 256, MAX_TIME], [bytes(16), JOB_ID])
    )
    assert parts == sorted(parts)
    assert all(encode_key(*lower) < encode_key(*higher) for lower, higher in pairwise(parts))


def test_patching_the_state_changes_one_byte():
    key = encode_key(SCOPE, JobState.PENDING, 7, 8, JOB_ID)
    patched = patch_state(key, JobState.DEAD)
    assert patched == encode_key(SCOPE, JobState.DEAD, 7, 8, JOB_ID)
    assert decode_key(key)[1] == JobState.PENDING


@pytest.mark.parametrize(
    ("prefix", "successor"),
    [
        (b"", None),
        (b"\x00", b"\x01"),
        (b"\xff", None),
        (b"\xff" * 33, None),
        (b"a\xff\xff", b"b"),
        (b"a\x00", b"a\x01"),
        (SCOPE + b"\xff", SCOPE[:31] + b"\x20"),
    ],
)
def test_the_successor_is_the_least_string_behind_a_prefix(prefix, successor):
    assert prefix_successor(prefix) == successor


@given(st.binary(max_size=5), st.binary(max_size=5))
def test_whatever_starts_with_a_prefix_sorts_before_its_successor(prefix, rest):
    successor = prefix_successor(prefix)
    assert successor is None or prefix + rest < successor


def test_a_successor_leaves_the_prefix_as_it_was():
    prefixes = [bytes([byte]) for byte in range(256)] + [b"ab"]
    copies = [bytearray(prefix) for prefix in prefixes]
    for prefix in prefixes:
        prefix_successor(prefix)
    assert prefixes == copies


@given(st.integers(0, 2**48 * 1000 - 1), st.integers(0, 2**64 - 1))
def test_a_job_id_is_a_uuid_7_that_tells_its_microsecond(created_at, random):
    job_id = UUID(bytes=make_job_id(created_at, random))
    assert job_id.version == 7
    assert job_id.variant == "specified in RFC 4122"
    assert job_id.int >> 80 == created_at // 1000
    assert job_id.int >> 64 & 0xFFF == created_at % 1000
    assert job_id.int & (2**62 - 1) == random & (2**62 - 1)


def test_job_ids_sort_as_created_at_does():
    times = [0, 1, 999, 1000, 1001, 1_760_000_000_000_000, 1_760_000_000_000_001]
    ids = [make_job_id(at, 2**64 - 1 if at % 2 else 0) for at in times]
    assert ids == sorted(ids)


@pytest.mark.parametrize("state", [5, -1, 256])
def test_a_state_that_does_not_exist_is_refused(state):
    with pytest.raises(InvalidArgument):
        encode_key(SCOPE, state, 0, 0, JOB_ID)
    with pytest.raises(InvalidArgument):
        patch_state(bytes(58), state)


@pytest.mark.parametrize("bad", [True, 1.0, "1", None, b"\x01"])
def test_only_an_int_is_an_int(bad):
    for arguments in [(bad, 0, 0), (0, bad, 0), (0, 0, bad)]:
        with pytest.raises(InvalidType):
            encode_key(SCOPE, *arguments, JOB_ID)
    with pytest.raises(InvalidType):
        make_job_id(bad, 0)
    with pytest.raises(InvalidType):
        make_job_id(0, bad)


@pytest.mark.parametrize("arguments", [(0, 256, 0), (0, -1, 0), (0, 0, -1), (0, 0, 2**63), (0, 0, 2**64)])
def test_numbers_outside_their_range_are_refused(arguments):
    with pytest.raises(InvalidArgument):
        encode_key(SCOPE, *arguments, JOB_ID)


def test_lengths_are_checked():
    with pytest.raises(InvalidArgument):
        encode_key(SCOPE[:31], 0, 0, 0, JOB_ID)
    with pytest.raises(InvalidArgument):
        encode_key(SCOPE, 0, 0, 0, JOB_ID + b"x")
    for call in (decode_key, lambda key: patch_state(key, 0)):
        with pytest.raises(InvalidArgument):
            call(bytes(57))
    with pytest.raises(TypeError):
        decode_key(bytearray(58))
