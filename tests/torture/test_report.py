"""A run of harnesses: each by itself, all of them told of; and the page is held to the test plan."""

from __future__ import annotations

import json
import signal

import pytest

from tests.torture import __main__ as command
from tests.torture import alone, clock_backoff, report, suite
from tests.torture.harnesses import HARNESSES
from tests.torture.plan import NOT_HELD, PLAN
from tests.torture.protocol import Result


@pytest.fixture(autouse=True)
def kept(monkeypatch, tmp_path):
    """A file of results for this test alone."""
    monkeypatch.setattr(report, "KEPT", tmp_path / "kept" / "results.json")
    return report.KEPT


def line_of(page, harness):
    [found] = [line for line in page.splitlines() if f"| {harness} |" in line and line.startswith("| T")]
    return found


def test_a_run_keeps_every_result_and_writes_the_page_around_what_else_stands_there(monkeypatch, tmp_path, kept):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nas it was\n{report.END}\nafter\n")
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    words = f"torture --scale ci --seed 3 --count 5 --only backoff,clock --jobs 2 --report {page}"
    monkeypatch.setattr("sys.argv", words.split())
    assert command.main() == 0
    assert {name: row["cycles"] for name, row in json.loads(kept.read_text()).items()} == {"backoff": 5, "clock": 5}
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "as it was" not in text
    assert "| 5 settings of " in line_of(text, "backoff")
    assert "scale ci" in line_of(text, "backoff")
    assert line_of(text, "clock").endswith("| passed |")
    assert line_of(text, "kill").endswith("| not run |")


def test_what_a_scale_has_no_room_for_is_skipped(tmp_path):
    result = alone.run(suite.AGAIN, alone.Order("ci", 1, None, tmp_path, None))
    assert result.skipped == "not at scale ci"


def test_a_harness_that_dies_is_a_failed_row(tmp_path):
    order = alone.Order("ci", 1, None, tmp_path, None)
    result = alone.run(clock_backoff.HARNESS._replace(name="nobody knows it"), order)
    assert not result.passed
    assert "KeyError" in result.faults[0]


def told(harness, **fields):
    report.keep(harness, Result(**{"cycles": harness.nightly, **fields}), "nightly", 7)
    return report.told([harness], report.read())


def test_a_row_says_what_failed_and_what_was_skipped():
    harness = clock_backoff.HARNESS
    text = told(harness, lost=2, faults=("a job\nis gone",))
    assert line_of(text, "backoff").endswith("| **failed**, 1 faults |")
    assert "of these lost: **2**" in text
    assert "a job is gone" in text
    text = told(harness, skipped="no compiler")
    assert line_of(text, "backoff").endswith("| skipped: no compiler |")
    assert "harnesses that passed: 0 of 1; skipped: backoff" in text


def test_a_known_gap_is_no_pass():
    text = told(clock_backoff.HARNESS, counted={"known gap: it snows": 3})
    assert line_of(text, "backoff").endswith("| passed but for 3 times a known gap |")


def test_a_figure_below_the_plans_is_told_with_its_reason():
    harness = clock_backoff.HARNESS._replace(planned=10**6, lowered="there are no more")
    assert " of 1,000,000: there are no more |" in line_of(told(harness), "backoff")
    assert "no more" not in line_of(told(clock_backoff.HARNESS), "backoff")


def test_every_number_of_the_plan_is_held_by_a_harness_or_said_not_to_be():
    held = {number for harness in HARNESSES for number in harness.tests.split(", ")}
    assert held | set(NOT_HELD) == set(PLAN)
    assert not held & set(NOT_HELD)


def test_a_figure_that_is_lowered_has_its_reason():
    assert all(harness.lowered for harness in HARNESSES if harness.planned > harness.nightly)
    assert len({harness.name for harness in HARNESSES}) == len(HARNESSES)


def test_harnesses_that_ran_on_other_code_are_named():
    first, second = HARNESSES[:2]
    for harness in (first, second):
        report.keep(harness, Result(cycles=harness.nightly), "nightly", 7)
    text = report.told(HARNESSES, report.read())
    assert f"- code: `{report.code()}`\n" in text
    kept = report.read()
    kept[second.name]["code"] = "0123456789ab"
    text = report.told(HARNESSES, kept)
    assert f"- code: `{report.code()}` ({first.name}); `0123456789ab` ({second.name})\n" in text
