"""While a queue is made, the power may go at any call: what is left is nothing, or a directory known to be a queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from telha_queue.errors import StorageFull
from tests.torture import children, shim, trace
from tests.torture.disk import Disk


def test_the_directory_and_its_lock_are_on_disk_before_the_store_makes_anything(tmp_path: Path) -> None:
    if shim.compiler() is None:
        pytest.skip("no C compiler")
    queue, record = tmp_path / "root" / "queue", tmp_path / "trace"
    queue.parent.mkdir()
    environment = shim.Shim(tmp_path, queue.parent).environment(trace=record)
    child = children.ended("workload", [queue, "os", 65536, "seed", 1, 0, 1], tmp_path / "errors", environment)
    assert child.code == 0, child.errors
    lock, disk, made = str(queue / "telha.lock"), Disk(), set()
    for call in trace.read(record):
        disk.carry_out(call)
        made |= disk.names.keys()
        if made - {lock}:
            assert lock in disk.synced_names
            assert str(queue) in disk.synced_folders
    assert {Path(path).name for path in made} >= {"telha.lock", "telha.mark", "CURRENT"}


def test_a_file_that_cannot_be_opened_is_told_as_it_is(tmp_path: Path) -> None:
    if shim.compiler() is None:
        pytest.skip("no C compiler")
    shimmed, record, root = shim.Shim(tmp_path, tmp_path / "root"), tmp_path / "trace", tmp_path / "root"
    root.mkdir()

    def opened(name: str, environment: dict[str, str]) -> children.Ended:
        return children.ended("workload", [root / name, "os", 65536, "s", 1, 0, 1], tmp_path / "errors", environment)

    opened("first", shimmed.environment(trace=record))
    calls = [call for call in trace.read(record) if call.kind not in trace.NOT_NUMBERED]
    currents = [at for at, call in enumerate(calls, 1) if call.kind == b"O" and call.path.endswith("/CURRENT")]
    assert len(currents) > 1
    for at in currents:
        child = opened(f"failed{at}", shimmed.environment(at=at, action="ENOSPC"))
        assert "open of" in child.errors
        assert [line for line in child.lines if "Error" in line] == []
        assert f"refused session {StorageFull.__name__}" in child.lines
