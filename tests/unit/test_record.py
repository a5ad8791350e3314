"""Records: the compiled codec and its readable twin write the same bytes and read the same fields."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from samples import NOW, fresh, leased, records

from telha_queue import record as twin
from telha_queue._codec import decode_record, encode_record
from telha_queue.errors import CorruptRecord, InvalidArgument, UnsupportedVersion
from telha_queue.job import JobEvent, JobState
from telha_queue.record import RecordFields, WiderEvent

CODECS = [
    pytest.param((encode_record, decode_record), id="compiled"),
    pytest.param((twin.encode, twin.decode), id="twin"),
]


@pytest.fixture(params=CODECS)
def codec(request):
    return request.param


def values_of(fields: RecordFields) -> list:
    """The record's array as msgpack has it, to be bent out of shape."""
    return msgpack.unpackb(twin.encode(fields)[1:])


def stored(values: list, version: int = 1) -> bytes:
    return bytes([version]) + msgpack.packb(values)


@given(records())
def test_any_record_comes_back_as_it_was(fields):
    value = encode_record(fields)
    assert value == twin.encode(fields)
    for decoded in (decode_record(value), twin.decode(value)):
        assert decoded == fields
        assert [getattr(event, "extra", ()) for event in decoded.events] == [
            getattr(event, "extra", ()) for event in fields.events
        ]


@given(records())
def test_there_is_one_encoding_of_a_record(fields):
    value = encode_record(fields)
    assert encode_record(decode_record(value)) == twin.encode(twin.decode(value)) == value


def test_a_record_is_its_version_and_an_array(codec):
    encode, _ = codec
    value = encode(fresh())
    assert value[0] == 1
    assert msgpack.unpackb(value[1:]) == [
        fresh().job_id, "embed", b"payload", 128, NOW, 0, 0, 0, None, None, None, None, None, None,
        [[NOW, "enqueued", None]], 7, None, None, 0, 0, None, None,
    ]  # fmt: skip


def test_only_a_merged_heartbeat_has_a_count(codec):
    encode, decode = codec
    events = (JobEvent(1, "leased", "w1"), JobEvent(2, "extended", None, 3, 9))
    value = encode(leased(events=events))
    assert msgpack.unpackb(value[1:])[14] == [[1, "leased", "w1"], [2, "extended", None, 3, 9]]
    assert decode(value).events == events


WITH_TAIL = fresh(expires_at=NOW, progress=7, progress_text="a", durable_continuation=b"b", result=b"c", result_bytes=1)


@pytest.mark.parametrize("field_count", range(15, 28))
def test_fields_that_an_older_writer_did_not_know_read_as_empty(codec, field_count):
    _, decode = codec
    whole = WITH_TAIL._replace(
        payload_bytes=7, reaped_worker_id="w0", events_dropped=4, crashes=2, lease_ttl_us=9, headers=("a", "b")
    )
    decoded = decode(stored(values_of(whole)[:field_count]))
    absent = {name: RecordFields._field_defaults[name] for name in RecordFields._fields[field_count:]}
    assert decoded == whole._replace(**absent)


def test_the_tail_is_written_as_far_as_its_last_value(codec):
    encode, decode = codec
    names = RecordFields._fields[22:-1]
    for count, name in enumerate(names, 1):
        alone = fresh(**{name: getattr(WITH_TAIL, name)})
        assert values_of(alone)[22:] == [None] * (count - 1) + [getattr(WITH_TAIL, name)]
        assert decode(encode(alone)) == alone
        assert encode(decode(stored([*values_of(alone), *[None] * (len(names) - count)]))) == encode(alone)
    assert values_of(fresh(extra=("tag",)))[22:] == [None] * len(names) + ["tag"]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("expires_at", 2**63), ("progress", 1_000_001), ("progress_text", b"a"), ("durable_continuation", "b"),
     ("result", "c"), ("result_bytes", 2**63), ("expires_at", "soon"), ("progress", -1)],
)  # fmt: skip
def test_a_tail_of_another_shape_is_refused(codec, name, wrong):
    _, decode = codec
    values = values_of(WITH_TAIL)
    values[RecordFields._fields.index(name)] = wrong
    with pytest.raises(CorruptRecord, match=name):
        decode(stored(values))


def test_fields_of_a_newer_writer_are_kept(codec):
    encode, decode = codec
    values = [*values_of(WITH_TAIL), "tag", None, -7, [True, [b"deep", 2**64 - 1]]]
    decoded = decode(stored(values))
    assert decoded.extra == ("tag", None, -7, (True, (b"deep", 2**64 - 1)))
    assert encode(decoded) == stored(values)


def test_fields_that_a_newer_writer_gave_an_event_are_kept(codec):
    encode, decode = codec
    values = values_of(fresh())
    values[14] = [[NOW, "enqueued", None, 1, NOW, "host-7", [1, 2]]]
    (event,) = decode(stored(values)).events
    assert isinstance(event, WiderEvent)
    assert event.extra == ("host-7", (1, 2))
    assert encode(decode(stored(values))) == stored(values)


def test_longer_forms_of_another_writer_are_read(codec):
    _, decode = codec
    value = encode_record(fresh())
    longer = value.replace(b"\xa5embed", b"\xdb\x00\x00\x00\x05embed").replace(
        b"\xcc\x80", b"\xd3" + bytes(7) + b"\x80"
    )
    assert len(longer) == len(value) + 4 + 7
    assert decode(longer) == fresh()


@pytest.mark.parametrize("version", [0, 2, 255])
def test_another_version_is_told_apart_from_damage(codec, version):
    _, decode = codec
    with pytest.raises(UnsupportedVersion):
        decode(stored(values_of(fresh()), version))
    with pytest.raises(UnsupportedVersion):
        decode(bytes([version]) + b"whatever a newer release may write")


@pytest.mark.parametrize("state", JobState)
def test_a_lease_is_there_exactly_when_the_state_is_leased(codec, state):
    _, decode = codec
    index = RecordFields._fields.index
    for worker_id, deadline in [(None, None), ("w1", None), (None, NOW), ("w1", NOW)]:
        values = values_of(fresh())
        values[index("state")], values[index("worker_id")], values[index("lease_deadline")] = state, worker_id, deadline
        if (worker_id is not None, deadline is not None) == (state == JobState.LEASED,) * 2:
            assert decode(stored(values)).state == state
        else:
            with pytest.raises(CorruptRecord):
                decode(stored(values))


@pytest.mark.parametrize(
    "change",
    [
        {"priority": 256},
        {"priority": True},
        {"priority": 1.0},
        {"priority": "1"},
        {"priority": None},
        {"created_at": -1},
        {"created_at": 2**63},
        {"lease_generation": 2**64},
        {"attempts": 2**32},
        {"state": 5},
        {"kind": ""},
        {"kind": "k" * 129},
        {"kind": "ä" * 65},
        {"kind": "\udc80"},
        {"kind": b"embed"},
        {"payload": "text"},
        {"job_id": bytes(15)},
        {"events": (JobEvent(-1, "enqueued"),)},
        {"events": (JobEvent(1, "extended", None, 2, None),)},
        {"events": ((1, "enqueued", b"bytes"),)},
        {"worker_id": "w1"},
        {"dead_reason": "attempts"},
        {"extra": (1.5,)},
        {"extra": ({},)},
        {"extra": (((((((((),),),),),),),),)},
    ],
    ids=repr,
)
def test_a_record_that_no_reader_would_accept_is_not_written(codec, change):
    encode, _ = codec
    with pytest.raises(InvalidArgument):
        encode(fresh(**change))


def test_the_message_names_the_field_and_quotes_nothing(codec):
    _, decode = codec
    values = values_of(fresh(payload=b"secret"))
    values[1] = "secret" * 40
    with pytest.raises(CorruptRecord) as caught:
        decode(stored(values))
    assert str(caught.value) == "record: kind"
