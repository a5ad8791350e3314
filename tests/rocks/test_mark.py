"""The mark: what it says is on disk, and that neither copies nor other tools make it demand too much."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from kill_ledger import whole
from marks import crc32c, read_mark

from telha_queue import JobSpec, JobState, Queue, QueueConfig, Scope
from telha_queue.errors import CorruptionError

ACME = Scope.named("acme")
SMALL = QueueConfig(durability="os", memtable_bytes=65536)


def test_a_flushed_queue_and_a_closed_one_are_marked_whole(path):
    with Queue.open(path, SMALL) as queue:
        queue.enqueue(ACME, "x", b"p" * 50)
        assert not [name for name in read_mark(path).files if name.endswith(".log")]
        queue.flush()
        [(name, size)] = [file for file in read_mark(path).files.items() if file[0].endswith(".log")]
        assert size == (path / name).stat().st_size > 50
        queue.enqueue(ACME, "x", b"p" * 50)
        assert (path / name).stat().st_size > size == read_mark(path).files[name]
    marked = read_mark(path).files
    assert {name: (path / name).stat().st_size for name in marked} == marked
    assert len(marked) == 2


@pytest.mark.parametrize("durability", ["sync", "group", "os"])
def test_a_call_that_asks_for_it_is_on_disk_when_it_returns(path, durability):
    with Queue.open(path, QueueConfig(durability=durability, group_sync_ms=60_000)) as queue:

        def is_on_disk(call) -> bool:
            call()
            [log] = path.glob("*.log")
            return read_mark(path).files.get(log.name) == log.stat().st_size

        now = {"durability": "sync"}
        queue.enqueue_many(ACME, [JobSpec("x")] * 8)
        first, second, *others = queue.lease_many(ACME, 8, worker_id="w")
        for call in (
            lambda **how: queue.enqueue(ACME, "x", **how),
            lambda **how: queue.enqueue_many(ACME, [JobSpec("x")], **how),
            lambda **how: queue.complete(first if how else second, **how),
            lambda **how: queue.complete_many([others.pop()], **how),
        ):
            assert not is_on_disk(call) or durability == "sync"
            assert is_on_disk(lambda call=call: call(**now)) or durability == "sync"


def test_a_store_that_others_opened_since_is_no_damage(path, ldb):
    with Queue.open(path, SMALL) as queue:
        jobs = [queue.enqueue(ACME, "x") for _ in range(20)]
    ldb.put("default", b"unrelated", b"row")
    with Queue.open(path, SMALL) as queue:
        assert whole(queue) == jobs


def test_a_whole_copy_opens_and_so_does_one_without_a_mark(path):
    with Queue.open(path, SMALL) as queue:
        jobs = [queue.enqueue(ACME, "x") for _ in range(20)]
    shutil.copytree(path, path.with_name("copy"))
    (path / "telha.mark").unlink()
    for where in (path, path.with_name("copy")):
        with Queue.open(where, SMALL) as queue:
            assert whole(queue) == jobs
        assert read_mark(where).sequence > 0


def test_a_mark_whose_newest_write_was_cut_short_counts_by_the_one_before(path):
    with Queue.open(path, SMALL) as queue:
        queue.enqueue(ACME, "x")
    newest = read_mark(path).generation % 2
    data = bytearray((path / "telha.mark").read_bytes())
    data[newest * 4096 + 100 : newest * 4096 + 200] = b"?" * 100
    (path / "telha.mark").write_bytes(data)
    with Queue.open(path, SMALL) as queue:
        assert queue.counts()[JobState.PENDING] == 1
    (path / "telha.mark").write_bytes(b"?" * 8192)
    with pytest.raises(CorruptionError, match=r"telha\.mark is damaged"):
        Queue.open(path, SMALL)
    with Queue.open(path, SMALL, recover="point_in_time") as queue:
        assert queue.recovered is not None
        assert queue.counts()[JobState.PENDING] == 1


def test_the_checksum_of_the_mark_is_the_one_of_its_name():
    assert crc32c(b"123456789") == 0xE3069283


def test_every_file_is_closed_to_others_whatever_the_umask_is(path: Path):
    previous = os.umask(0)
    try:
        with Queue.open(path, SMALL) as queue:
            for _ in range(400):
                queue.enqueue(ACME, "x", b"p" * 300)
            queue.reopen()
        modes = {name.name: name.stat().st_mode & 0o7777 for name in path.iterdir()}
    finally:
        os.umask(previous)
    assert path.stat().st_mode & 0o7777 == 0o700
    assert {name for name, mode in modes.items() if mode != 0o600} == set()
    assert any(name.endswith(".sst") for name in modes)


def test_files_that_an_earlier_release_left_open_to_others_are_closed_to_them(path: Path):
    with Queue.open(path, SMALL) as queue:
        queue.enqueue(ACME, "x")
    for file in path.iterdir():
        file.chmod(0o644)
    with Queue.open(path, SMALL):
        assert {file.stat().st_mode & 0o777 for file in path.iterdir()} == {0o600}
