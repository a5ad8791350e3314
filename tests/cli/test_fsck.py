"""`telha fsck`: says what is wrong, repairs when asked to, and ends with a code that a script can go by."""

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
def lost(opened: Opened) -> str:
    """A queue with two jobs; the name of a scope is wrong. Returns the row in hex."""
    with opened() as queue:
        queue.enqueue(ACME, "x")
        queue.enqueue(Scope.SYSTEM, "x")
        queue._engine.name_scope(ACME.key, "globex")
    return (b"scope:" + ACME.key).hex()


def test_a_sound_queue_is_clean(telha: Telha, opened: Opened, path: Path) -> None:
    with opened() as queue:
        queue.enqueue(ACME, "x")
    for words in (("fsck",), ("fsck", path), ("fsck", "--repair")):
        ran = telha(*words)
        assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "1 jobs checked: clean\n", "")
    told = json.loads(telha("fsck", "--json").stdout)
    assert told == {"clean": True, "jobs": 1, "partial": False, "found": {}, "repaired": {}, "findings": []}


def test_what_is_wrong_is_told_and_ends_with_1_until_it_is_repaired(telha: Telha, lost: str) -> None:
    for _ in range(2):
        ran = telha("fsck")
        assert ran.exit_code == 1
        assert ran.stdout == (
            "KIND        FOUND  REPAIRED\n"
            "name_wrong      1         0\n"
            "\n"
            "KIND        JOB OR ROW\n"
            f"name_wrong  row {lost}\n"
            f"    scope {ACME.tenant_id}\n"
            "2 jobs checked: 0 repaired, 1 left\n"
        )
    ran = telha("fsck", "--repair")
    assert ran.exit_code == 0
    assert ran.stdout.endswith("2 jobs checked: 1 repaired, 0 left\n")
    assert telha("fsck").exit_code == 0


def test_a_program_is_told_the_same(telha: Telha, lost: str) -> None:
    ran = telha("fsck", "--repair", "--json")
    assert ran.exit_code == 0
    told = json.loads(ran.stdout)
    assert told["found"] == told["repaired"] == {"name_wrong": 1}
    assert told["findings"] == [
        {
            "kind": "name_wrong",
            "job_id": None,
            "scope": str(ACME.tenant_id),
            "scope_name": None,
            "row": lost,
            "detail": "",
        }
    ]


def test_there_must_be_a_queue(telha: Telha, tmp_path: Path) -> None:
    assert telha("fsck", tmp_path / "none").exit_code == 4
    assert not (tmp_path / "none").exists()
