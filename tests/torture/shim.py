"""Compiles shim.c and says how to put a process behind it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("shim.c")


def compiler() -> str | None:
    """A C compiler, if there is one."""
    return next(
        (found for name in (os.environ.get("CC"), "cc", "gcc", "clang") if name and (found := shutil.which(name))), None
    )


class Shim:
    """The shim, compiled into a folder, for processes that work under `root`."""

    def __init__(self, folder: Path, root: Path) -> None:
        self._library = folder / "shim.so"
        self._root = root
        found = compiler()
        if found is None:
            raise FileNotFoundError("no C compiler: the shim cannot be built")
        command = [found, "-shared", "-fPIC", "-O1", "-o", str(self._library), str(SOURCE), "-ldl"]
        subprocess.run(command, check=True, timeout=120)

    def environment(
        self, *, trace: Path | None = None, at: int = 0, action: str = "", times: int = 1
    ) -> dict[str, str]:
        """What a process needs in its environment; `at`, `action` and `times` as shim.c says."""
        chosen = {"LD_PRELOAD": str(self._library), "TELHA_SHIM_ROOT": str(self._root)}
        if trace is not None:
            chosen["TELHA_SHIM_TRACE"] = str(trace)
        if action:
            chosen["TELHA_SHIM_AT"] = f"{at} {action} {times}"
        return chosen
