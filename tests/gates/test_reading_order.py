"""ext/README.md: the compiled core in reading order, and which of its files know Python."""

from __future__ import annotations

import re

from tests.gates.pages import ROOT, SUFFIXES, page, quoted, table


def test_the_reading_order_names_every_file_after_those_it_uses() -> None:
    rows = [quoted(row["file"]) for row in table(page("ext/README.md"), "file")]
    named = [name for row in rows for name in row]
    sources = {path.name for path in (ROOT / "ext").iterdir() if path.suffix in SUFFIXES} - {"README.md"}
    assert sorted(named) == sorted(sources)
    for at, name in enumerate(named):
        text = page(f"ext/{name}")
        used = set(re.findall(r'^#include "(\w+\.hpp)"|^cdef extern from "(\w+\.hpp)"', text, re.MULTILINE))
        names = {header for pair in used for header in pair if header}
        names |= {f"{module}.pxd" for module in re.findall(r"^from (\w+) cimport", text, re.MULTILINE)}
        assert names & sources <= {*named[:at], *next(row for row in rows if name in row)}, name


def test_only_the_files_named_know_python_objects() -> None:
    [told] = re.findall(r"Only (.+?) know Python", page("ext/README.md").replace("\n", " "))
    knowing = {path.name for path in (ROOT / "ext").glob("*.pyx")}
    for path in (ROOT / "ext").glob("*.pxd"):
        functions = re.findall(r"^cdef inline [^:]*?\)([^()]*):$", path.read_text(), re.MULTILINE)
        if any("nogil" not in clauses for clauses in functions):
            knowing.add(path.name)
    assert set(quoted(told)) == knowing
