"""Damage and want beneath the queue: it says so each time, and makes nothing worse."""

from __future__ import annotations

import os
import shutil

import pytest

from telha_queue import JobRecord, JobSpec, JobState, Queue, QueueConfig, Scope
from telha_queue.engine import Token
from telha_queue.errors import CorruptionError, CorruptRecord, StorageError, StorageFull, StoreLocked

ACME = Scope.named("acme")
QUICK = QueueConfig(durability="os", memtable_bytes=65536)


def filled(path, jobs: int = 600) -> None:
    with Queue.open(path, QUICK) as queue:
        queue.enqueue_many(ACME, [JobSpec("x", b"p" * 400) for _ in range(jobs)])


def test_a_missing_current_file_is_damage_at_every_open_and_nothing_is_cleared_away(path):
    filled(path)
    (path / "CURRENT").rename(path.parent / "CURRENT")
    before = sorted(os.listdir(path))
    for create in (True, True):
        with pytest.raises(CorruptionError, match="CURRENT"):
            Queue.open(path, QUICK, create=create)
    assert sorted(os.listdir(path)) == before
    (path.parent / "CURRENT").rename(path / "CURRENT")
    with Queue.open(path, QUICK) as queue:
        assert queue.counts()[JobState.PENDING] == 600


def test_a_directory_whose_creation_was_cut_short_is_made_anew(path):
    path.mkdir(mode=0o700)
    for name in ("telha.lock", "LOCK", "MANIFEST-000001", "000001.dbtmp"):
        (path / name).touch()
    with Queue.open(path, QUICK) as queue:
        assert sum(queue.counts().values()) == 0


def test_without_descriptors_a_scan_fails_and_never_comes_back_short(ended, path):
    filled(path)
    program = """
import resource
queue = Queue.open(PATH, QueueConfig(durability="os", memtable_bytes=65536))
used = len(os.listdir("/proc/self/fd"))
resource.setrlimit(resource.RLIMIT_NOFILE, (used + 3, 4096))
acknowledged = 600
try:
    while acknowledged < 20_000:
        queue.enqueue(ACME, "x", b"p" * 400)
        acknowledged += 1
except StorageError as error:
    say("refused", error.outcome)
else:
    raise AssertionError("descriptors never ran out")
for read in (lambda: sum(queue.counts().values()), lambda: sum(1 for _ in pages(queue))):
    try:
        found = read()
    except StorageError:
        continue
    assert found >= acknowledged, (found, acknowledged)
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
try:
    queue.close()
except StorageError:
    pass
with Queue.open(PATH) as queue:
    assert sum(queue.counts().values()) in (acknowledged, acknowledged + 1)
"""
    pages = """
def pages(queue):
    after = None
    while page := queue.list(limit=1000, after=after):
        yield from page
        after = page[-1]
"""
    ended(pages + program)


@pytest.mark.parametrize("obstacle", ["directory", "no space"])
def test_only_a_lock_that_is_held_counts_as_locked(path, obstacle, monkeypatch):
    filled(path, jobs=1)
    if obstacle == "directory":
        (path / "LOCK").unlink()
        (path / "LOCK").mkdir()
        error = StorageError
    else:
        shutil.rmtree(path)
        monkeypatch.setattr(os, "mkdir", refuse_for_want_of_space)
        error = StorageFull
    with pytest.raises(error) as caught:
        Queue.open(path, QUICK)
    assert not isinstance(caught.value, StoreLocked)


def refuse_for_want_of_space(path: str, mode: int) -> None:
    raise OSError(28, os.strerror(28), path)


def test_a_key_whose_job_is_damaged_stores_nothing_of_its_batch(path, ldb):
    with Queue.open(path, QUICK) as queue:
        job = queue.enqueue(ACME, "x", idempotency_key="k")
    ldb.put("jobs", job.key, job.value[:-1])
    with Queue.open(path, QUICK) as queue:
        jobs = [JobSpec("new"), JobSpec("x", idempotency_key="k"), JobSpec("y", idempotency_key="k"), JobSpec("new")]
        with pytest.raises(CorruptRecord):
            queue.enqueue_many(ACME, jobs, atomic=True)
        assert queue.list(kinds="new") == []
        outcomes = queue.enqueue_many(ACME, jobs)
        assert [type(outcome) for outcome in outcomes] == [JobRecord, CorruptRecord, CorruptRecord, JobRecord]
        assert len(queue.list(kinds="new")) == 2


@pytest.mark.parametrize("size", [0, 3, 15, 17, 4096])
def test_the_compiled_store_takes_no_id_and_no_scope_of_another_length(path, size):
    with Queue.open(path, QUICK) as queue:
        engine, short = queue._engine, b"x" * size
        good = queue.enqueue(ACME, "x").job_id.bytes
        calls = [
            lambda: engine.get(ACME.key, short),
            lambda: engine.find(short),
            lambda: engine.load_payload(short),
            lambda: engine.retry(ACME.key, short, 1),
            lambda: Token(ACME.key, short, "w", 1),
            lambda: Token(short, good, "w", 1),
            lambda: engine.get(short, good),
            lambda: engine.lease_next(short, None, "w", 1, 1),
            lambda: engine.counts(short),
            lambda: engine.list(ACME.key, None, None, 1, short),
        ]
        for call in calls:
            with pytest.raises(ValueError, match="bytes"):
                call()
