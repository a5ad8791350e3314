"""The examples of these pages run as they stand, and print what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = {name: (ROOT / "docs" / f"{name}.md").read_text() for name in ("workers", "jobs", "results", "transactions")}
EXAMPLE = re.compile(r"## ([^\n]+)\n(?:(?!\n## ).)*?```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)
EXAMPLES = [
    pytest.param(*found[1:], id=f"{name}: {found[0]}")
    for name, page in PAGES.items()
    for found in EXAMPLE.findall(page)
]


def test_every_example_was_found():
    assert len(EXAMPLES) == sum(page.count("```python") for page in PAGES.values())


@pytest.mark.parametrize(("program", "output"), EXAMPLES)
def test_an_example_does_what_the_page_says(tmp_path, program, output):
    script = tmp_path / "example.py"
    script.write_text(program)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
    ended = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    if output:
        assert ended.stdout == output
