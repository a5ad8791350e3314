"""Small file systems in memory, for disks that fill up or may not be written. Mounting needs root."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def tmpfs(folder: Path, size_bytes: int) -> Iterator[Path]:
    """Mount one at a new folder, and take it away at the end."""
    folder.mkdir(parents=True)
    _run("mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "telha-torture", str(folder))
    try:
        yield folder
    finally:
        # Lazily, if something still holds it: a mount must not outlive the harness.
        if subprocess.run(["umount", str(folder)], capture_output=True, check=False).returncode != 0:
            _run("umount", "-l", str(folder))
        folder.rmdir()


def forbid_writing(folder: Path) -> None:
    """Make a mounted file system read-only, for everybody."""
    _run("mount", "-o", "remount,ro", str(folder))


@cache
def are_permitted() -> bool:
    """Whether this process may mount."""
    with TemporaryDirectory() as folder:
        try:
            with tmpfs(Path(folder) / "probe", 2**16):
                return True
        except (OSError, subprocess.CalledProcessError):
            return False


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=30)
