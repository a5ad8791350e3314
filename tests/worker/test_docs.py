"""The examples of docs/workers.md and docs/results.md run as they stand, and print what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [(ROOT / "docs" / name).read_text() for name in ("workers.md", "results.md")]
EXAMPLE = re.compile(r"## ([^\n]+)\n(?:(?!\n## ).)*?```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)
EXAMPLES = [example for page in PAGES for example in EXAMPLE.findall(page)]


def test_every_example_was_found():
    assert len(EXAMPLES) == sum(page.count("```python") for page in PAGES)


@pytest.mark.parametrize(("title", "program", "output"), EXAMPLES, ids=[title for title, _, _ in EXAMPLES])
def test_an_example_does_what_the_page_says(tmp_path, title, program, output):
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
