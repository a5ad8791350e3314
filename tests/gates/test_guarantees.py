"""Every promise of docs/guarantees.md names tests, and every fault of docs/torture.md does; and they exist.

Tests that hold what other queues failed at say so in a comment behind their name: `# D4`.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "guarantees.md").read_text()
TORTURE = (ROOT / "docs" / "torture.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE + TORTURE)))
FAULTS = re.findall(r"^\| (.+) \| (.+) \|$", TORTURE.partition("## Faults that the harnesses found")[2], re.MULTILINE)
TAGS = {
    int(number)
    for file in (ROOT / "tests").rglob("test_*.py")
    for comment in re.findall(r"^(?:def test_.*|\)):  # (.*)", file.read_text(), re.MULTILINE)
    for number in re.findall(r"\bD(\d+)\b", comment)
}
PROMISES = re.findall(r"^\| (P\d+) \|(.*)\|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_a_test_that_holds_a_promise_exists(path: str, name: str) -> None:
    module = ast.parse((ROOT / path).read_text())
    assert name in {node.name for node in ast.walk(module) if isinstance(node, ast.FunctionDef)}


def test_there_are_sixteen_promises_and_each_is_held_by_a_test() -> None:
    assert [number for number, _ in PROMISES] == [f"P{number}" for number in range(1, 17)]
    assert all(re.search(r"`tests/[\w/]+\.py::\w+`", rest) for _, rest in PROMISES)


def test_every_fault_that_was_found_is_held_by_a_test() -> None:
    _heads, *faults = FAULTS
    assert len(faults) > 10
    assert all(re.fullmatch(r"`tests/[\w/]+\.py::\w+`", held_by) for _, held_by in faults)


def test_every_name_of_a_test_is_understood() -> None:
    pages = PAGE + TORTURE
    assert pages.count("::test_") == len(re.findall(r"`tests/[\w/]+\.py::\w+`", pages))


def test_each_failure_of_other_queues_that_is_known_here_has_a_test() -> None:
    assert sorted(TAGS) == list(range(1, 17))
