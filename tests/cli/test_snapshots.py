"""`telha snapshot` and `telha restore`: what they say, and with which code they end."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from click.testing import Result

from telha_queue.queue import Queue
from telha_queue.scope import Scope

Telha = Callable[..., Result]
Opened = Callable[[], AbstractContextManager[Queue]]
ACME = Scope.named("acme")


@pytest.fixture
def filled(opened: Opened, path: Path) -> Path:
    """A queue with two jobs, one of them leased; its directory."""
    with opened() as queue:
        queue.enqueue(ACME, "x")
        queue.enqueue(ACME, "x")
        queue.lease_next(ACME, worker_id="w")
    return path


def test_a_queue_is_snapshotted_and_restored(telha: Telha, filled: Path, tmp_path: Path) -> None:
    ran = telha("snapshot", filled, tmp_path / "s")
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout.startswith(f"{tmp_path / 's'}: ")
    ran = telha("restore", tmp_path / "s", tmp_path / "r")
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout.startswith(f"{tmp_path / 'r'}: 2 jobs, 1 leases ended; leases start at generation ")
    assert json.loads(telha("stats", "--path", tmp_path / "r", "--json").stdout)["total"]["pending"] == 2
    assert telha("fsck", tmp_path / "r").exit_code == 0


def test_programs_are_told_the_facts(telha: Telha, filled: Path, tmp_path: Path) -> None:
    told = json.loads(telha("snapshot", filled, tmp_path / "s", "--json").stdout)
    assert sorted(told) == ["directory", "seen_us", "size_bytes"]
    told = json.loads(telha("restore", "--json", tmp_path / "s", tmp_path / "r").stdout)
    assert told.pop("generation_floor") > 10**15
    assert told == {"directory": str(tmp_path / "r"), "jobs": 2, "leases_ended": 1, "corrupt": 0}


def test_what_cannot_be_is_refused_with_a_line(telha: Telha, filled: Path, tmp_path: Path) -> None:
    for words, said in (
        (("snapshot", tmp_path / "none", tmp_path / "s"), "no queue"),
        (("snapshot", filled, tmp_path), "exists already"),
        (("snapshot", filled, filled / "s"), "inside"),
        (("restore", filled, tmp_path / "r"), "not a snapshot"),
        (("restore", tmp_path / "none", tmp_path / "r"), "not a snapshot"),
    ):
        ran = telha(*words)
        assert ran.exit_code == 4
        assert said in ran.stderr
    assert sorted(found.name for found in tmp_path.iterdir()) == ["queue"]
