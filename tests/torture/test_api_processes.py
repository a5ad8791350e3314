"""Every scene of forks and endings once; and a process that ends in the wrong way is found."""

from __future__ import annotations

from tests.torture import api_child, api_processes, runner


def test_processes_made_beside_a_queue_do_no_harm():
    runner.check(api_processes.FORKS)


def test_a_process_ends_as_if_its_queue_had_been_closed():
    runner.check(api_processes.ENDINGS)


def test_a_program_that_crashes_hangs_or_fails_is_found():
    for program, code, words in (
        ("import os; os.abort()", 0, "ended with -6"),
        ("import signal; signal.pause()", 0, "ended with None"),
        ("raise RuntimeError('over')", 0, "over"),
    ):
        ended = api_processes.Ended()
        told_code, _, told = api_child.program(["-c", program], 2 if "pause" in program else 60)
        ended.judge("it", told_code, code, told)
        assert words in ended.result().faults[0]
