"""Reading our own documents: whole pages, their tables, what is quoted in a cell."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUFFIXES = (".py", ".pyi", ".pyx", ".pxd", ".pxi", ".hpp", ".cc", ".md", ".sh", ".toml")


def page(name: str) -> str:
    return (ROOT / name).read_text()


def table(text: str, first: str) -> list[dict[str, str]]:
    """The rows of the table whose first column has this heading."""
    [found] = re.findall(rf"^(\| {first} \|.*\n)\|---.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    names, *cells = ([cell.strip() for cell in line[1:-1].split("|")] for line in "".join(found).splitlines())
    return [dict(zip(names, row, strict=True)) for row in cells]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)
