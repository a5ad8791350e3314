"""Bytes that no writer of ours made: compiled codec and twin refuse the same ones, with the same errors, cheaply."""

from __future__ import annotations

import os
import random
import tracemalloc

import msgpack
import pytest
from samples import fresh, leased

from telha_queue import record as twin
from telha_queue._codec import JobRecord, decode_record, encode_key
from telha_queue.errors import CorruptRecord, UnsupportedVersion
from telha_queue.job import JobEvent
from telha_queue.record import RecordFields

SEED = int(os.environ.get("TELHA_SEED", "0")) or random.randrange(1, 2**32)
MUTANTS = int(os.environ.get("TELHA_MUTANTS", "20000"))

WHOLE = twin.encode(fresh(extra=("later",)))
RICH = twin.encode(
    leased(
        idempotency_key="kéy",
        max_attempts=70_000,
        continuation=b"c" * 300,
        expires_at=2**40,
        progress=1_000_000,
        progress_text="é",
        durable_continuation=b"d",
        result=b"r" * 20,
        result_bytes=20,
        events=(JobEvent(1, "enqueued"), JobEvent(2, "leased", "w1"), JobEvent(3, "extended", None, 9, 12)),
        extra=(None, True, -(2**40), "tail", (1, (2, ("x", b"y")))),
    )
)


def with_tail(raw: bytes, count: int = 1) -> bytes:
    """A record whose fields behind the known ones are these raw bytes."""
    packed = twin.encode(fresh(result_bytes=7))[1:]
    assert packed[:3] == b"\xdc\x00\x1c"
    return b"\x01\xdc" + (28 + count).to_bytes(2) + packed[3:] + raw


def with_field(name: str, raw: bytes) -> bytes:
    """A record with the raw bytes of one field exchanged."""
    packed = [msgpack.packb(value) for value in msgpack.unpackb(twin.encode(leased(result_bytes=7))[1:])]
    packed[RecordFields._fields.index(name)] = raw
    return b"\x01\xdc\x00\x1c" + b"".join(packed)


def verdict(decode, value: bytes):
    try:
        return decode(value)
    except CorruptRecord as error:
        return type(error)


def assert_refused(value: bytes, error: type[CorruptRecord] = CorruptRecord) -> None:
    assert verdict(decode_record, value) is error
    assert verdict(twin.decode, value) is error


TAILS = {
    "100,000 nested arrays": (b"\x91" * 100_000, 1),
    "eight levels below the record": (b"\x91" * 8 + b"\xc0", 1),
    "array32 of 4 G": (b"\xdd\xff\xff\xff\xff", 1),
    "array16 of 64 K": (b"\xdc\xff\xff", 1),
    "bin32 of 4 G": (b"\xc6\xff\xff\xff\xff", 1),
    "str32 of 4 G": (b"\xdb\xff\xff\xff\xffabc", 1),
    "str8 one byte short": (b"\xd9\x04abc", 1),
    "0xC1": (b"\xc1", 1),
    "a map": (b"\x80", 1),
    "a map with duplicate keys": (b"\x82\xa1k\x01\xa1k\x02", 1),
    "a map with an array for a key": (b"\x81\x90\x01", 1),
    "map32 of 4 G": (b"\xdf\xff\xff\xff\xff", 1),
    "a map in an array": (b"\x91\x80", 1),
    "float32": (b"\xca\x00\x00\x00\x00", 1),
    "NaN": (b"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", 1),
    "fixext1": (b"\xd4\x05\x00", 1),
    "a timestamp": (b"\xd6\xff\x00\x00\x00\x01", 1),
    "ext8": (b"\xc7\x01\x05\x00", 1),
    "ext32 of 4 G": (b"\xc9\xff\xff\xff\xff\x05", 1),
    "a lone continuation byte": (b"\xa1\x80", 1),
    "a surrogate": (b"\xa3\xed\xa0\x80", 1),
    "an overlong NUL": (b"\xa2\xc0\x80", 1),
    "an overlong slash": (b"\xa3\xe0\x80\xaf", 1),
    "past U+10FFFF": (b"\xa4\xf4\x90\x80\x80", 1),
    "a character cut in two": (b"\xa2\xc3", 1),
    "bad text behind good": (b"\xac12345678901\xff", 1),
    "one field fewer than counted": (b"\xc0", 2),
    "one field more than counted": (b"\xc0\xc0", 1),
}


@pytest.mark.parametrize(("raw", "count"), TAILS.values(), ids=TAILS)
def test_a_hostile_later_field_is_refused(raw, count):
    assert_refused(with_tail(raw, count))


@pytest.mark.parametrize(("raw", "count"), TAILS.values(), ids=TAILS)
def test_refusing_allocates_next_to_nothing(raw, count):
    value = with_tail(raw, count)
    verdict(decode_record, value)
    tracemalloc.start()
    try:
        verdict(decode_record, value)
        assert tracemalloc.get_traced_memory()[1] < 4096
    finally:
        tracemalloc.stop()


def test_seven_levels_below_the_record_are_accepted():
    value = with_tail(b"\x91" * 7 + b"\xc0")
    assert decode_record(value) == twin.decode(value)


FIELDS = [
    ("job_id", b"\xc4\x0f" + bytes(15)),
    ("job_id", b"\xb0" + b"i" * 16),
    ("job_id", b"\xc0"),
    ("kind", b"\xa0"),
    ("kind", b"\xd9\x81" + b"k" * 129),
    ("kind", b"\xc4\x01k"),
    ("payload", b"\xa1p"),
    ("priority", b"\xcd\x01\x00"),
    ("priority", b"\xff"),
    ("priority", b"\xc3"),
    ("priority", b"\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00"),
    ("created_at", b"\xcf\x80" + bytes(7)),
    ("created_at", b"\xd3\xff" + bytes(7)),
    ("state", b"\x05"),
    ("attempts", b"\xcf\x00\x00\x00\x01\x00\x00\x00\x00"),
    ("lease_generation", b"\xc0"),
    ("worker_id", b"\xa1\xff"),
    ("worker_id", b"\xc0"),
    ("lease_deadline", b"\xc0"),
    ("lease_deadline", b"\xd0\xff"),
    ("not_before", b"\xcf" + b"\xff" * 8),
    ("max_attempts", b"\xcf" + b"\xff" * 8),
    ("max_attempts", b"\xff"),
    ("continuation", b"\xa1c"),
    ("events", b"\xc0"),
    ("events", b"\x91\x90"),
    ("events", b"\x91\x92\x01\xa1t"),
    ("events", b"\x91\x94\x01\xa1t\xc0\x01"),
    ("events", b"\x91\x95\x01\xa1t\xc0\x01\xc0"),
    ("events", b"\x91\x93\xff\xa1t\xc0"),
    ("events", b"\x91\x93\x01\xc0\xc0"),
    ("events", b"\x91\x93\x01\xa1t\xc4\x00"),
    ("events", b"\x91\x96\x01\xa1t\xc0\x01\x02" + b"\x91" * 6 + b"\xc0"),
    ("dead_reason", b"\xa1d"),
    ("crashes", b"\xd1\xff\xff"),
]


@pytest.mark.parametrize(("name", "raw"), FIELDS, ids=lambda value: str(value)[:40])
def test_a_known_field_of_another_shape_is_refused(name, raw):
    assert_refused(with_field(name, raw))


def test_an_event_may_nest_as_deep_as_the_record_may():
    value = with_field("events", b"\x91\x96\x01\xa1t\xc0\x01\x02" + b"\x91" * 5 + b"\xc0")
    assert decode_record(value) == twin.decode(value)


@pytest.mark.parametrize("raw", [b"", b"\x01", b"\x01\xc0", b"\x01\x90", b"\x01\x9e" + b"\xc0" * 14, b"\x01\x80"])
def test_what_is_no_array_of_fields_is_refused(raw):
    assert_refused(raw)


def test_another_version_is_never_looked_into():
    for version in {*range(256)} - {1}:
        assert_refused(bytes([version]) + b"\xc1", UnsupportedVersion)


@pytest.mark.parametrize("value", [WHOLE, RICH], ids=["whole", "rich"])
def test_every_truncation_and_any_trailing_byte_is_refused(value):
    for end in range(len(value)):
        assert_refused(value[:end])
    for byte in range(256):
        assert_refused(value + bytes([byte]))


def mutant(rng: random.Random, value: bytes) -> bytes:
    """The value with a few bytes flipped, exchanged, dropped, doubled or spliced in."""
    bent = bytearray(value)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(1, len(bent))
        match rng.randrange(5):
            case 0:
                bent[at] ^= 1 << rng.randrange(8)
            case 1:
                bent[at] = rng.choice(
                    b"\x00\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc3\xc4\xc6\xca\xcf\xd3\xd9\xdc\xdd\xff"
                )
            case 2:
                del bent[at : at + rng.randint(1, 9)]
            case 3:
                bent[at:at] = bent[at : at + rng.randint(1, 9)]
            case _:
                bent[at:at] = rng.randbytes(rng.randint(1, 4))
        if len(bent) < 2:
            break
    return bytes(bent)


def test_codec_and_twin_agree_on_mutants():
    rng = random.Random(SEED)
    accepted = 0
    for _ in range(MUTANTS):
        value = mutant(rng, rng.choice([WHOLE, RICH]))
        compiled = verdict(decode_record, value)
        assert compiled == verdict(twin.decode, value), f"TELHA_SEED={SEED} {value.hex()}"
        accepted += isinstance(compiled, RecordFields)
    assert 0 < accepted < MUTANTS


def test_a_job_record_refuses_what_the_codec_refuses():
    key = encode_key(bytes(32), 0, 128, fresh().created_at, fresh().job_id)
    for value in (WHOLE[:-1], WHOLE + b"\xc0", b""):
        with pytest.raises(CorruptRecord):
            JobRecord(key, value)
