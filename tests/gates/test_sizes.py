"""Files stay small enough to read in one sitting. A file at its cap holds two nouns: give the second its own file."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 120
CAPS = {
    "ext/*.pxd": 300,
    "ext/*.hpp": 300,
    "ext/*.pyx": 400,
    "telha_queue/**/*.py": 350,
    "telha_queue/**/*.pyi": 250,
    "demo/**/*.py": 350,
    "bench/**/*.py": 350,
    "scripts/*": 350,
    "tests/**/*.py": 250,
    "setup.py": 140,
    "README.md": 120,
}


def files() -> list[tuple[Path, int]]:
    found = [(path, cap) for pattern, cap in CAPS.items() for path in sorted(ROOT.glob(pattern)) if path.is_file()]
    return [(path, cap) for path, cap in found if "__pycache__" not in path.parts]


@pytest.mark.parametrize(("path", "cap"), files(), ids=lambda value: str(getattr(value, "name", value)))
def test_file_is_within_its_cap(path, cap):
    lines = path.read_text().splitlines()
    assert len(lines) <= cap, f"{path.relative_to(ROOT)} has {len(lines)} lines; the cap is {cap}"
    if path.suffix != ".md":
        wide = [number for number, line in enumerate(lines, 1) if len(line) > WIDTH]
        assert not wide, f"{path.relative_to(ROOT)}: wider than {WIDTH} columns at lines {wide}"


def test_the_caps_apply_to_something():
    assert {path.suffix for path, _ in files()} >= {".py", ".pyx", ".pxd"}
