"""T7: places where no queue can be: each is refused with a typed error, and nothing is made or changed there.

Every case runs in a process of its own, some without the rights of root: root may write where others may not.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from telha_queue import Queue, QueueConfig, Scope
from telha_queue.errors import JobError
from tests.torture import children, mounts
from tests.torture.protocol import Harness, Request, Result, total

NOBODY = 65534
PATH_ERROR, STORE_ERROR = "InvalidPath", "StorageError"


def _file(place: Path) -> Path:
    place.write_text("not a queue")
    return place


def _foreign(place: Path) -> Path:
    place.mkdir()
    (place / "somebody's").write_text("data")
    return place


def _link(place: Path) -> Path:
    place.with_name("elsewhere").mkdir()
    place.symlink_to(place.with_name("elsewhere"))
    return place


def _dangling(place: Path) -> Path:
    place.symlink_to(place.with_name("nowhere"))
    return place


def _below_a_file(place: Path) -> Path:
    return _file(place) / "queue"


def _closed_parent(place: Path) -> Path:
    return _closed(place) / "queue"


def _unwritable(place: Path) -> Path:
    place.mkdir(mode=0o755)
    return place


def _closed(place: Path) -> Path:
    place.mkdir(mode=0o700)
    return place


def _made(place: Path) -> Path:
    with Queue.open(place, QueueConfig(durability="os")) as queue:
        queue.enqueue(Scope.named("acme"), "x")
    return place


CASES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a file": (_file, PATH_ERROR),
    "below a file": (_below_a_file, PATH_ERROR),
    "a folder of somebody": (_foreign, PATH_ERROR),
    "a link to a folder": (_link, PATH_ERROR),
    "a link to nowhere": (_dangling, PATH_ERROR),
    "no parent": (lambda place: place / "a" / "b", PATH_ERROR),
    "a name of 300 characters": (lambda place: place.with_name("n" * 300), PATH_ERROR),
    "a path of 5,000 characters": (lambda place: f"{place}{'/n' * 2500}", PATH_ERROR),
    "a NUL": (lambda place: f"{place}\0tail", PATH_ERROR),
    "no text": (lambda place: "", PATH_ERROR),
    "a device": (lambda place: "/dev/null", PATH_ERROR),
    "a folder of the kernel": (lambda place: "/proc/self/telha", PATH_ERROR),
    "not root: a parent that is closed": (_closed_parent, PATH_ERROR),
    "not root: a folder that is not writable": (_unwritable, PATH_ERROR),
    "not root: a queue of somebody else": (_made, PATH_ERROR),
    "read-only: a new folder": (lambda place: place, STORE_ERROR),
    "read-only: an empty folder": (_unwritable, STORE_ERROR),
    "read-only: an empty folder that is closed to others": (_closed, STORE_ERROR),
    "read-only: a queue": (_made, STORE_ERROR),
}
"""By name: what makes the place and says its path, and the error that is right."""


def run(request: Request) -> Result:
    """Every case, however many are wanted: there are no more."""
    request.folder.chmod(0o755)  # so that others reach the places that are closed to them
    may_mount, is_root = mounts.are_permitted(), os.geteuid() == 0
    results = []
    for number, (name, (make, expected)) in enumerate(CASES.items()):
        folder = request.folder / str(number)
        if (name.startswith("read-only") and not may_mount) or (name.startswith("not root") and not is_root):
            results.append(Result(0, counted={"cases left out for want of root": 1}))
        elif name.startswith("read-only"):
            with mounts.tmpfs(folder, 2**24):
                path = make(folder / "place")
                mounts.forbid_writing(folder)
                results.append(_refused(name, path, folder, expected, request.folder))
        else:
            folder.mkdir()
            path = make(folder / "place")
            results.append(_refused(name, path, folder, expected, request.folder))
    return total(results)


def _refused(name: str, path: object, folder: Path, expected: str, errors: Path) -> Result:
    before = _everything(folder)
    words = [os.fsencode(str(path)).hex(), NOBODY if name.startswith("not root") else 0]
    child = children.ended("paths", words, errors / "errors")
    wrong = []
    if child.code != 0 or child.hung or child.lines != [expected]:
        wrong.append(f"answered {child.lines}, ended with {child.code}: {child.errors[-300:]}")
    if _everything(folder) != before:
        wrong.append(f"something was changed: {sorted(_everything(folder) ^ before)}")
    faults = tuple(f"{name}: {text}" for text in wrong)
    return Result(1, aborts=child.aborted, hangs=child.hung, faults=faults)


def _everything(folder: Path) -> set[tuple[str, int, bytes]]:
    found = sorted(folder.rglob("*"))
    # What a queue's lock says, the owner's process id, may change.
    return {
        (str(path), path.lstat().st_mode, path.read_bytes() if path.is_file() and path.name != "telha.lock" else b"")
        for path in found
    }


def main(path_hex: str, user: str) -> None:
    """The process: open the path as that user, and say which error came."""
    if int(user):
        Queue.open  # noqa: B018  # loaded while this process may still read it
        from telha_queue.engines import rocks  # noqa: F401

        os.setgid(int(user))
        os.setuid(int(user))
    try:
        Queue.open(os.fsdecode(bytes.fromhex(path_hex)), QueueConfig(durability="os")).close()
    except JobError as error:
        sys.stdout.write(f"{type(error).__name__}\n")
    else:
        sys.stdout.write("opened\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

HARNESS = Harness(
    name="paths",
    tests="T7",
    about="places where no queue can be: files, links, foreign folders, no rights, read-only file systems, hostile "
    "names; a typed error, and nothing is made or changed.",
    unit="places",
    ci=len(CASES),
    nightly=len(CASES),
    run=run,
)
