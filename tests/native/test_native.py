"""Classes of the core that need neither RocksDB nor Python, run under sanitizers beside plain models of themselves."""

from __future__ import annotations

import subprocess

import pytest

from tests.torture.native import CHECKS, KEEPER, RACES, built


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """program(source, sanitizers): the path of the program."""
    folder = tmp_path_factory.mktemp("native")
    return lambda source, sanitizers: built(source, sanitizers, folder)


def ended(*command):
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


def run(*command):
    done = ended(*command)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("what", ["job_table", "window"])
def test_it_does_what_its_model_does(program, what, seed):
    run(program(CHECKS, "address,undefined"), what, seed)


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_turns_are_taken_one_at_a_time(program, threads):
    run(program(CHECKS, "thread"), "turns", threads)


def test_threads_that_share_what_a_store_holds_get_each_job_once_and_none_is_slept_beside(program):
    run(program(RACES, "thread"), 1, 20)


@pytest.mark.parametrize(
    ("fault", "told"),
    [("forgets-to-wake", "somebody sleeps beside a job"), ("forgets-claims", "a job was handed out to two")],
)
def test_a_fault_that_is_planted_there_is_found(program, fault, told):
    done = ended(program(RACES, "thread"), 1, 200, fault)
    assert done.returncode == 1
    assert told in done.stderr


@pytest.mark.parametrize("scene", [("holds", 1), ("holds", 6), ("closes", 200), ("bounds", 1), ("bounds", 2)])
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_a_keeper_tells_of_each_hold_once_and_ends_in_order(program, sanitizer, scene):
    run(program(KEEPER, sanitizer), *scene)
