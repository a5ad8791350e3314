"""Classes of the core that need neither RocksDB nor Python, run under sanitizers beside plain models of themselves."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
EXT = HERE.parent.parent / "ext"
FLAGS = ["-std=c++20", "-O1", "-g", "-pthread", "-Wall", "-Wextra", f"-I{EXT}", "-I/usr/include"]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """program(sanitizer, source): the path of a program of this folder, built with it."""
    folder = tmp_path_factory.mktemp("native")

    def build(sanitizer, source="checks.cc"):
        path = folder / f"{source}-{sanitizer.replace(',', '-')}"
        if not path.exists():
            command = ["c++", *FLAGS, f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", str(HERE / source)]
            subprocess.run([*command, "-o", str(path)], check=True, timeout=120)
        return path

    return build


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("what", ["job_table", "window"])
def test_it_does_what_its_model_does(program, what, seed):
    run(program("address,undefined"), what, seed)


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_turns_are_taken_one_at_a_time(program, threads):
    run(program("thread"), "turns", threads)


@pytest.mark.parametrize("scene", [("holds", 1), ("holds", 6), ("closes", 200), ("bounds", 1), ("bounds", 2)])
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_a_keeper_tells_of_each_hold_once_and_ends_in_order(program, sanitizer, scene):
    run(program(sanitizer, "keeper.cc"), *scene)
