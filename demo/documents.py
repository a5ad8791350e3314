"""The real files that the demo ingests: which there are, and their text piece by piece. Knows nothing of queues."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

MAX_FILES = 2000
MAX_BYTES = 32 * 1024 * 1024
"""Of files as they are on disk, compressed or not, in all: what two cores parse well within a minute."""
MAX_FILE_BYTES = 1024 * 1024
PIECE_BYTES = 512 * 1024

FORMATS = {".html": "html", ".htm": "html", ".xhtml": "html", ".md": "markdown", ".rst": "rst"}
MARKUP = {"html": re.compile(r"<[^>]*>"), "markdown": re.compile(r"\]\([^)\s]*\)")}
SNIFF_BYTES = 1024


class Document(NamedTuple):
    """One file worth ingesting. `folder` is the entry of the top folder that it lies in, or is."""

    path: Path
    format: str
    folder: str


def find_documents(top: Path, besides: Path) -> list[Document]:
    """The text files below a folder, in order, within the limits above; hidden ones and `besides` left out."""
    found: list[Document] = []
    left_bytes = MAX_BYTES
    for path in _files(top, besides):
        size_bytes = path.stat().st_size
        if size_bytes > min(MAX_FILE_BYTES, left_bytes) or not _is_text(path):
            continue
        found.append(Document(path, _format(path), path.relative_to(top).parts[0]))
        left_bytes -= size_bytes
        if len(found) == MAX_FILES:
            break
    return found


def read_pieces(path: Path, format: str) -> Iterator[str]:
    """The text of a file without its markup, in pieces of whole lines; a small file is one piece."""
    markup = MARKUP.get(format)
    with _open(path) as file:
        while lines := file.readlines(PIECE_BYTES):
            text = "".join(lines)
            yield markup.sub(" ", text) if markup else text


def _files(top: Path, besides: Path) -> Iterator[Path]:
    """Plain files, sorted, so that every run sees the same; a link could lead anywhere and is not followed."""
    for folder, subfolders, names in os.walk(top):
        here = Path(folder)
        subfolders[:] = sorted(name for name in subfolders if name[0] != "." and here / name != besides)
        paths = (here / name for name in sorted(names) if name[0] != ".")
        yield from (path for path in paths if path.is_file() and not path.is_symlink())


def _format(path: Path) -> str:
    name = path.with_suffix("") if path.suffix == ".gz" else path
    return FORMATS.get(name.suffix.lower(), "text")


def _is_text(path: Path) -> bool:
    try:
        with _open(path) as file:
            return "\0" not in file.read(SNIFF_BYTES)
    except (OSError, EOFError):  # not ours to read, or not the gzip file it says it is
        return False


def _open(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", errors="replace")
    return path.open(encoding="utf-8", errors="replace")
