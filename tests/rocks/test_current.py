"""CURRENT names a MANIFEST whose entry in the directory is on disk: a power cut cannot keep one and lose the other."""

from __future__ import annotations

import pytest

from tests.torture import trace
from tests.torture.shim import Shim

OPENED_AGAIN = """
with Queue.open(PATH, QUICK) as queue:
    queue.enqueue(ACME, "x")
    queue.reopen()
"""


@pytest.fixture
def calls(ended, tmp_path, path):
    """Every call that reached the file system while a queue was made and opened again."""
    (tmp_path / "shim").mkdir()
    told = tmp_path / "trace"
    ended(OPENED_AGAIN, variables=Shim(tmp_path / "shim", path).environment(trace=told))
    return list(trace.read(told))


def test_the_directory_is_fsynced_between_a_new_manifest_and_the_current_that_names_it(calls, path):
    open_files: dict[int, str] = {}
    unnamed: set[str] = set()
    renames = 0
    for call in calls:
        if call.kind == b"O":
            open_files[call.fd] = call.path
            if "/MANIFEST-" in call.path:
                unnamed.add(call.path)
        elif call.kind == b"S" and open_files[call.fd] == str(path):
            unnamed.clear()
        elif call.kind == b"R" and call.data.decode() == f"{path}/CURRENT":
            assert not unnamed
            renames += 1
    assert renames >= 2
