"""A snapshot that is no longer whole makes no queue, and a queue that was made of one keeps its fence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from marks import crc32c, read_mark

from telha_queue import JobState, Queue, QueueConfig, Scope, restore
from telha_queue.engines.snapshots import label
from telha_queue.errors import CorruptionError, StorageError

ACME = Scope.named("acme")
SMALL = QueueConfig(durability="os", memtable_bytes=65536)
CUTS = (0, 1, 0.3, 0.7, -1)
"""Bytes that are left: so many, such a share, or so many less than all."""


def cut(file: Path, left: float) -> None:
    size = file.stat().st_size
    os.truncate(file, int(left * size) if 0 < left < 1 else int(left) % size)


def remove(file: Path, _: float) -> None:
    file.unlink()


def overwrite(file: Path, _: float) -> None:
    file.write_bytes(b"?" * file.stat().st_size)


@pytest.fixture
def snapshot(quick_path) -> Path:
    """A snapshot of a queue with rows in several table files."""
    with Queue.open(quick_path / "queue", SMALL) as queue:
        for number in range(300):
            queue.enqueue(ACME, "x", bytes([number % 256]) * 900, idempotency_key=str(number))
        queue.reopen()
        queue.lease_many(ACME, 20, worker_id="w")
        queue.snapshot(quick_path / "snapshot")
    return quick_path / "snapshot"


@pytest.mark.parametrize("damage", [*((cut, left) for left in CUTS), (remove, 0), (overwrite, 0)], ids=repr)
@pytest.mark.parametrize("name", ["CURRENT", "MANIFEST-*", "*.sst"])
def test_a_file_that_is_missing_short_or_overwritten_is_found_by_a_restore(snapshot, name, damage):
    harm, left = damage
    for file in sorted(snapshot.glob(name)):
        whole = file.read_bytes()
        harm(file, left)
        with pytest.raises(CorruptionError) as caught:
            restore(snapshot, snapshot.with_name("restored"))
        assert ".tmp" not in str(caught.value)
        file.unlink(missing_ok=True)
        file.write_bytes(whole)
        assert sorted(os.listdir(snapshot.parent)) == ["queue", "snapshot"]
    assert restore(snapshot, snapshot.with_name("restored")).jobs == 300


@pytest.mark.parametrize(("harm", "left"), [(cut, 0), (cut, 1), (cut, 0.3), (remove, 0), (overwrite, 0)])
def test_so_is_a_mark_that_is_missing_or_says_nothing(snapshot, harm, left):
    harm(snapshot / "telha.mark", left)
    with pytest.raises(CorruptionError, match=r"telha\.mark"):
        restore(snapshot, snapshot.with_name("restored"))
    assert sorted(os.listdir(snapshot.parent)) == ["queue", "snapshot"]


@pytest.mark.parametrize("half", [0, 1])
def test_half_of_its_mark_says_all(snapshot, half):
    mark = bytearray((snapshot / "telha.mark").read_bytes())
    mark[half * 4096 : half * 4096 + 4096] = b"?" * 4096
    (snapshot / "telha.mark").write_bytes(mark)
    assert restore(snapshot, snapshot.with_name("restored")).jobs == 300
    cut(next(snapshot.glob("MANIFEST-*")), 0.7)
    with pytest.raises(CorruptionError, match="MANIFEST"):
        restore(snapshot, snapshot.with_name("again"))


def refused_for_its_label(snapshot: Path, text: bytes) -> None:
    (snapshot / "telha.snapshot").write_bytes(text)
    with pytest.raises(CorruptionError, match=r"telha\.snapshot is damaged"):
        restore(snapshot, snapshot.with_name("restored"))
    assert sorted(os.listdir(snapshot.parent)) == ["queue", "snapshot"]


def test_what_it_says_of_itself_is_whole_or_damaged(snapshot):
    text = (snapshot / "telha.snapshot").read_bytes()
    lines, _, crc = text.partition(b"crc32c ")
    assert int(crc, 16) == crc32c(lines)
    for at in range(len(text)):
        refused_for_its_label(snapshot, text[:at])
        for bit in range(8):
            refused_for_its_label(snapshot, text[:at] + bytes([text[at] ^ 1 << bit]) + text[at + 1 :])
    for other in (text + b"\n", text + text, lines, b"\n" + text, text.replace(b"\n", b"\r\n"), bytes(1 << 20)):
        refused_for_its_label(snapshot, other)


@pytest.mark.parametrize(
    "seen", [b"", b"-1", b"+1", b"01", b" 1", b"1_0", "\u0661".encode(), b"1.0", str(2**63).encode(), b"9" * 5000]
)
def test_a_time_that_is_none_is_refused_though_its_checksum_is_right(snapshot, seen):
    lines = b"telha snapshot 1\nseen_us %s\n" % seen
    refused_for_its_label(snapshot, b"%scrc32c %08x\n" % (lines, crc32c(lines)))


@pytest.mark.parametrize("seen_us", [0, 2**63 - 1])
def test_the_first_and_the_last_time_are_times(snapshot, seen_us):
    (snapshot / "telha.snapshot").write_bytes(label(seen_us))
    assert restore(snapshot, snapshot.with_name("restored")).jobs == 300


def linked(file: Path) -> None:
    os.rename(file, file.parents[1] / "queue" / "elsewhere")
    file.symlink_to(file.parents[1] / "queue" / "elsewhere")


def a_directory(file: Path) -> None:
    file.unlink(missing_ok=True)
    file.mkdir()


def a_pipe(file: Path) -> None:
    file.unlink(missing_ok=True)
    os.mkfifo(file)


@pytest.mark.parametrize("harm", [linked, a_directory, a_pipe])
@pytest.mark.parametrize("name", ["telha.mark", "telha.snapshot", "CURRENT", "MANIFEST-*", "*.sst", "OPTIONS-*"])
def test_a_file_in_it_that_is_no_regular_file_is_refused(snapshot, name, harm):
    file = next(snapshot.glob(name))
    harm(file)
    with pytest.raises(CorruptionError, match=f"{file.name} is not a regular file"):
        restore(snapshot, snapshot.with_name("restored"))
    assert sorted(os.listdir(snapshot.parent)) == ["queue", "snapshot"]


def test_so_is_one_of_links_alone_and_one_with_something_more(snapshot):
    a_directory(snapshot / "more")
    with pytest.raises(CorruptionError, match="more is not a regular file"):
        restore(snapshot, snapshot.with_name("restored"))
    (snapshot / "more").rmdir()
    links = snapshot.with_name("links")
    links.mkdir()
    for file in snapshot.iterdir():
        (links / file.name).symlink_to(file)
    with pytest.raises(CorruptionError, match="not a regular file"):
        restore(links, snapshot.with_name("restored"))
    assert sorted(os.listdir(snapshot.parent)) == ["links", "queue", "snapshot"]


def test_its_mark_demands_every_byte_of_its_logs_and_its_manifest(snapshot):
    mark = read_mark(snapshot)
    assert mark.files == {
        file.name: file.stat().st_size
        for file in snapshot.iterdir()
        if file.name.startswith("MANIFEST") or (file.name.endswith(".log") and file.stat().st_size)
    }
    assert mark.sequence > 300


def test_the_mark_is_the_last_that_is_made_of_it_and_the_rest_is_on_disk_by_then(quick_path, monkeypatch):
    from telha_queue.engines import snapshots

    synced, made = set(), []
    monkeypatch.setattr(snapshots, "sync", lambda path: synced.add(os.path.basename(path)))

    def mark_copy(path: bytes, sequence: int) -> None:
        made.append(sequence)
        assert synced >= {os.fsdecode(name) for name in os.listdir(path)} | {"made"}

    monkeypatch.setattr(snapshots, "mark_copy", mark_copy)
    with Queue.open(quick_path / "queue", SMALL) as queue:
        queue.enqueue(ACME, "x")
        queue.snapshot(quick_path / "snapshot")
    assert len(made) == 1


def test_its_files_are_demanded_by_whatever_opens_it_as_a_queue(snapshot):
    (snapshot / "telha.lock").touch()
    cut(next(snapshot.glob("MANIFEST-*")), 0.7)
    with pytest.raises(CorruptionError, match="MANIFEST"):
        Queue.open(snapshot, SMALL)


def test_a_restored_queue_without_its_log_still_has_its_fence(snapshot):
    restored = snapshot.with_name("restored")
    report = restore(snapshot, restored)
    assert report.leases_ended == 20
    logs = list(restored.glob("*.log"))
    assert any(log.stat().st_size for log in logs)
    for log in logs:
        log.unlink()
    with pytest.raises(StorageError):
        Queue.open(restored, SMALL)
    with Queue.open(restored, SMALL, recover="point_in_time") as queue:
        assert queue.counts()[JobState.PENDING] == 300
        assert queue.lease_next(ACME, worker_id="w").lease_generation >= report.generation_floor


def test_a_restored_queue_is_marked_whole(snapshot):
    restored = snapshot.with_name("restored")
    restore(snapshot, restored)
    marked = read_mark(restored).files
    assert {name: (restored / name).stat().st_size for name in marked} == marked
    assert len(marked) == 2
