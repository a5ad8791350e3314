"""The invariants of docs/format.md, the kinds of finding and the compiled check name the same things."""

from __future__ import annotations

import re
from pathlib import Path

from telha_queue.upkeep import FindingKind

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "format.md").read_text()
[SECTION] = re.findall(r"^## Invariants\n(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
ITEMS = re.findall(r"^(\d+)\. (.*?)(?=^\d+\. |^\n)", SECTION, re.MULTILINE | re.DOTALL)
KINDS = [kind.value for kind in FindingKind]


def named(text: str) -> list[str]:
    return re.findall(r"`([a-z]+_[a-z]+)`(?!-)", text)


def test_each_kind_stands_behind_one_invariant_in_order_and_each_invariant_has_one() -> None:
    assert [int(number) for number, _ in ITEMS] == list(range(1, len(ITEMS) + 1))
    found = [[name for name in named(text) if name in KINDS] for _, text in ITEMS]
    assert [name for names in found for name in names] == KINDS
    assert all(found)


def test_the_compiled_check_has_the_same_kinds_in_the_same_order() -> None:
    header = (ROOT / "ext" / "findings.hpp").read_text()
    [body] = re.findall(r"enum class Found : int \{(.*?)\};", header, re.DOTALL)
    *names, last = re.findall(r"\bk(\w+)", body)
    assert last == "Count"
    assert [re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() for name in names] == KINDS


def test_each_kind_is_found_somewhere_in_the_code() -> None:
    sources = "".join((ROOT / "ext" / name).read_text() for name in ("fsck.pxd", "one_job.pxd", "orphans.pxd"))
    sources += (ROOT / "telha_queue" / "engines" / "scope_names.py").read_text()
    assert [kind for kind in KINDS if not re.search(rf"\b{kind.upper()}\b", sources)] == []


def test_those_in_bold_are_those_that_are_repaired() -> None:
    bold = set(re.findall(r"\*\*`(\w+)`\*\*", SECTION))
    sources = "".join((ROOT / "ext" / name).read_text() for name in ("orphans.pxd", "one_job.pxd"))
    removed = set(re.findall(r"_note\(audit, (\w+),", sources))
    noted = set(re.findall(r"findings\.mend\(([A-Z_]+)\)", sources))
    rebuilt = {"ID_MISSING", "ID_WRONG", "KEY_MISSING", "KEY_WRONG", "EXPIRY_MISSING", "NAME_WRONG"}
    assert bold == {name.lower() for name in removed | noted | rebuilt}
