"""JobRecord: what a verb returns. Every field reads as it was stored, and nothing about the object can change."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from uuid import UUID

import pytest
from hypothesis import given
from samples import JOB_ID, NOW, fresh, leased, records

from telha_queue._codec import encode_key, encode_record
from telha_queue.errors import CorruptRecord, StorageError, UnsupportedVersion
from telha_queue.job import JobEvent, JobRecord, JobState
from telha_queue.record import RecordFields
from telha_queue.scope import Scope

ACME = Scope.named("acme")
PLAIN_FIELDS = set(RecordFields._fields) - {"job_id", "payload", "headers", "progress", "result", "extra"}


class Source:
    """What a record asks for a payload or a result that stands aside."""

    def __init__(self, load):
        self.load_payload = self.load_result = load
        self.scope_of = Scope


def record_of(fields: RecordFields, load=None) -> JobRecord:
    key = encode_key(ACME.key, fields.state, fields.priority, fields.created_at, fields.job_id)
    return JobRecord(key, encode_record(fields), load and Source(load))


ASIDE = [("payload", fresh(payload=None, payload_bytes=5)), ("result", fresh(result_bytes=5))]
aside = pytest.mark.parametrize(("name", "fields"), ASIDE)


@given(records())
def test_every_field_reads_as_it_was_stored(fields):
    job = record_of(fields, lambda _: b"aside")
    assert {name: getattr(job, name) for name in PLAIN_FIELDS} == {name: getattr(fields, name) for name in PLAIN_FIELDS}
    assert dict(job.headers) == dict(zip(*[iter(fields.headers or ())] * 2, strict=True))
    assert (job.scope, job.job_id) == (ACME, UUID(bytes=fields.job_id))
    assert job.payload == (b"aside" if fields.payload is None else fields.payload)
    assert job.progress == (None if fields.progress is None else fields.progress / 1_000_000)
    kept = b"aside" if fields.result is None else fields.result
    assert job.result == (None if fields.result_bytes is None else kept)
    assert type(job.state) is JobState


@aside
def test_what_stands_aside_is_loaded_once_by_id(name, fields):
    asked = []
    job = record_of(fields, lambda job_id: asked.append(job_id) or b"aside")
    assert asked == []
    assert getattr(job, f"{name}_bytes") == 5
    assert getattr(job, name) == getattr(job, name) == b"aside"
    assert asked == [JOB_ID]


@aside
def test_an_error_while_loading_reaches_the_caller_and_is_not_kept(name, fields):
    answers = iter([StorageError("closed"), b"aside"])

    def load(_: bytes) -> bytes:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    job = record_of(fields, load)
    with pytest.raises(StorageError, match="closed"):
        getattr(job, name)
    assert getattr(job, name) == b"aside"


@aside
def test_what_is_out_of_reach_says_so(name, fields):
    with pytest.raises(StorageError, match=name):
        getattr(record_of(fields), name)


def test_what_stands_in_the_record_never_asks_the_store():
    job = record_of(fresh(payload=b"", result=b"", result_bytes=0), lambda _: pytest.fail("asked"))
    assert (job.payload, job.result) == (b"", b"")
    assert record_of(fresh(), lambda _: pytest.fail("asked")).result is None


@pytest.mark.parametrize(
    "change", [{"state": JobState.COMPLETED}, {"priority": 1}, {"created_at": NOW + 1}, {"job_id": bytes(16)}], ids=repr
)
def test_a_record_under_a_foreign_key_is_refused(change):
    with pytest.raises(CorruptRecord):
        JobRecord(record_of(fresh(**change)).key, encode_record(fresh()))


@pytest.mark.parametrize("size", [0, 57, 59])
def test_a_key_of_another_length_is_refused(size):
    with pytest.raises(CorruptRecord):
        JobRecord(record_of(fresh()).key.ljust(59, b"x")[:size], encode_record(fresh()))


def test_a_newer_version_is_told_apart():
    with pytest.raises(UnsupportedVersion):
        JobRecord(record_of(fresh()).key, b"\x02" + encode_record(fresh())[1:])


@pytest.mark.parametrize("arguments", [(), (b"",), (None, b""), (b"", None), (bytearray(58), b""), ("", "")])
def test_arguments_of_another_type_are_refused(arguments):
    with pytest.raises(TypeError):
        JobRecord(*arguments)


def test_records_are_equal_when_key_and_bytes_are():
    job = record_of(fresh())
    assert job == record_of(fresh())
    assert hash(job) == hash(record_of(fresh()))
    assert job != record_of(fresh(payload=b"other"))
    assert job != JobRecord(encode_key(bytes(32), *_key_parts()), job.value)
    assert job != (job.key, job.value)
    assert len({job, record_of(fresh()), record_of(leased())}) == 2


def _key_parts() -> tuple[int, int, int, bytes]:
    return fresh().state, fresh().priority, fresh().created_at, fresh().job_id


@pytest.mark.parametrize("name", [*RecordFields._fields[:-1], "scope", "key", "value", "last_error", "new"])
def test_nothing_can_be_set(name):
    with pytest.raises(AttributeError):
        setattr(record_of(fresh()), name, 1)


def test_calling_init_again_is_refused_and_changes_nothing():
    job = record_of(fresh())
    for arguments in ((b"other", b"bytes"), (job.key, encode_record(fresh(payload=b"other")))):
        with pytest.raises(TypeError, match="made once"):
            job.__init__(*arguments)
    assert job == record_of(fresh())


@pytest.mark.parametrize("name", [*RecordFields._fields[:-1], "scope", "key", "value", "last_error"])
def test_one_that_was_never_filled_has_no_field(name):
    with pytest.raises(TypeError, match="comes from a queue"):
        getattr(JobRecord.__new__(JobRecord), name)


def test_one_that_was_refused_may_be_filled_after_all():
    job = JobRecord.__new__(JobRecord)
    with pytest.raises(CorruptRecord):
        job.__init__(record_of(fresh()).key, b"\x01")
    job.__init__(record_of(fresh()).key, encode_record(fresh()))
    assert job == record_of(fresh())


def test_it_is_not_pickled_copied_or_subclassed():
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            attempt(record_of(fresh()))
    with pytest.raises(TypeError):
        type("Other", (JobRecord,), {})


def test_the_repr_is_short_and_shows_no_payload():
    job = record_of(leased(attempts=2, payload=b"secret"))
    assert repr(job) == f"<JobRecord {UUID(bytes=JOB_ID)} embed leased attempts=2>"
    assert "\x1b" not in repr(record_of(fresh(kind="\x1b[2J")))


@pytest.mark.parametrize(
    ("events", "error"),
    [
        ((), None),
        ((JobEvent(1, "enqueued"), JobEvent(2, "stats", "fine")), None),
        ((JobEvent(1, "failed", "boom"), JobEvent(2, "leased", "w1")), "boom"),
        ((JobEvent(1, "failed", "boom"), JobEvent(2, "dead", "worse"), JobEvent(3, "retried")), "worse"),
        ((JobEvent(1, "failed", "boom"), JobEvent(2, "reaped", "w1")), "lease of w1 expired"),
        ((JobEvent(1, "failed"),), None),
    ],
)
def test_the_last_error_is_what_the_newest_failure_said(events, error):
    assert record_of(fresh(events=events)).last_error == error


def test_importing_the_codec_imports_nothing_else():
    program = (
        "import sys, importlib.util as u\n"
        "before = set(sys.modules)\n"
        f"spec = u.spec_from_file_location('telha_queue._codec', {sys.modules['telha_queue._codec'].__file__!r})\n"
        "spec.loader.exec_module(u.module_from_spec(spec))\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    run = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    loaded = {name for name in run.stdout.split() if not name.startswith(("_cython_", "cython_runtime"))}
    assert loaded <= {"_codec", "telha_queue._codec"}
