"""`telha jobs list`: filters, pages, tables for people and lines for programs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from telha_queue.cli import render
from telha_queue.job import JobSpec
from telha_queue.queue import Queue
from telha_queue.scope import Scope

Telha = Callable[..., Result]
ACME = Scope.named("acme")


@pytest.fixture
def ids(opened: Callable[..., Queue]) -> list[str]:
    """Seven jobs in the order of the list: two of the system, five of acme."""
    with opened() as queue:
        jobs = queue.enqueue_many(Scope.SYSTEM, [JobSpec("system:gc"), JobSpec("system:sync")])
        jobs += queue.enqueue_many(ACME, [JobSpec("ingest:md") for _ in range(3)])
        jobs += queue.enqueue_many(ACME, [JobSpec("embed", delay_secs=10**8, priority=200) for _ in range(2)])
    return [str(job.job_id) for job in jobs]


def listed(ran: Result) -> list[str]:
    assert ran.exit_code == 0
    return [json.loads(line)["job_id"] for line in ran.stdout.splitlines()]


def test_json_is_one_object_a_line_and_its_scope_can_be_typed_again(telha: Telha, ids: list[str]) -> None:
    ran = telha("jobs", "list", "--json")
    assert listed(ran) == ids
    told = [json.loads(line) for line in ran.stdout.splitlines()]
    assert {(job["scope"], job["scope_name"]) for job in told} == {("system", None), (str(ACME.tenant_id), "acme")}
    assert listed(telha("jobs", "list", "--json", "--scope", ACME.tenant_id)) == ids[2:]


def test_filters_by_scope_and_kind_prefixes(telha: Telha, ids: list[str]) -> None:
    assert listed(telha("jobs", "list", "--json", "--scope", "system")) == ids[:2]
    assert listed(telha("jobs", "list", "--json", "--kind", "ingest:", "--kind", "system:s")) == ids[1:5]


def test_the_command_for_the_next_page_leads_through_all_jobs(telha: Telha, ids: list[str]) -> None:
    command = "telha jobs list --json --limit 3 --kind ingest --kind system --kind embed --state pending"
    seen: list[str] = []
    while command:
        ran = telha(*shlex.split(command)[1:])
        seen += listed(ran)
        command = ran.stderr.strip().removeprefix("more: ")
    assert seen == ids


def test_a_page_that_ends_with_the_last_job_promises_no_more(telha: Telha, ids: list[str]) -> None:
    ran = telha("jobs", "list", "--limit", 7)
    assert ran.stderr == ""


def test_more_jobs_than_one_call_of_the_queue_lists_are_listed(telha: Telha, opened: Callable[..., Queue]) -> None:
    with opened() as queue:
        for _ in range(2):
            queue.enqueue_many(ACME, [JobSpec("x")] * 1000)
    assert len(set(listed(telha("jobs", "list", "--json", "--limit", 5000)))) == 2000


def test_a_pipe_gets_a_job_per_line_with_all_about_it(telha: Telha, ids: list[str]) -> None:
    header, *lines = telha("jobs", "list").stdout.splitlines()
    assert header.split() == ["ID", "STATE", "PRI", "FAILS", "AGE", "KIND", "SCOPE", "NOTE"]
    assert [line.split()[0] for line in lines] == ids
    assert lines[0].split()[1:4] == ["pending", "128", "0"]
    assert lines[0].endswith("system")
    assert lines[2].endswith("acme")


def test_a_terminal_gets_a_heading_per_scope_and_notes_beneath(
    telha: Telha, ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    lines = [line.rstrip() for line in telha("jobs", "list").stdout.splitlines()]
    assert [line for line in lines if line.startswith("scope")] == ["scope system", "scope acme"]
    assert all(len(line) <= 80 for line in lines)
    assert [line[:36] for line in lines if line[:8] in {job_id[:8] for job_id in ids}] == ids


@pytest.mark.parametrize("columns", [20, 40])
def test_no_id_is_cut_or_broken_on_a_narrow_terminal(
    telha: Telha, ids: list[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setattr(render, "on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = telha("jobs", "list").stdout
    assert [job_id for job_id in ids if f"{job_id}  pending  " not in shown] == []
    assert ids[0] in telha("jobs", "show", ids[0]).stdout


def test_no_match_is_said_and_is_no_failure(telha: Telha, ids: list[str]) -> None:
    ran = telha("jobs", "list", "--state", "dead")
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "", "no jobs match\n")
    ran = telha("jobs", "list", "--state", "dead", "--json")
    assert (ran.stdout, ran.stderr) == ("", "no jobs match\n")


def test_a_scope_without_any_job_is_said_to_be_one(telha: Telha, ids: list[str]) -> None:
    for words in (("jobs", "list"), ("stats",)):
        ran = telha(*words, "--scope", "acne")
        assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "", "no jobs in scope acne\n")
        assert telha(*words, "--scope", "acne", "--json").stderr == "no jobs in scope acne\n"
    assert telha("jobs", "list", "--scope", "acme", "--state", "dead").stderr == "no jobs match\n"


def test_the_command_for_the_next_page_is_quoted_for_a_shell(
    telha: Telha, ids: list[str], path: Path, tmp_path: Path
) -> None:
    spaced = tmp_path / "my queue"
    path.rename(spaced)
    for words in [("jobs", "list", "--path", spaced), ("--path", spaced, "jobs", "list")]:
        ran = telha(*words, "--limit", 6)
        assert ran.stderr == f"more: telha jobs list --path '{spaced}' --limit 6 --after {ids[5]}\n"
