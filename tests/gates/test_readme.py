"""What the documents say is so: the example runs as printed, tables agree with the code, names and links exist."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import product
from math import prod
from pathlib import Path

import pytest

from telha_queue.backoff import Policy, backoff_us
from telha_queue.command import Command, Refusal, Verb
from telha_queue.config import DURABILITIES, QueueConfig
from telha_queue.errors import ConfigError, JobError
from telha_queue.job import Cause, JobState
from telha_queue.record import RecordFields
from telha_queue.transitions import step
from tests.gates.pages import ROOT, SUFFIXES, page, quoted, table

PAGES = sorted(path for folder in (".", "docs", "ext", "demo") for path in (ROOT / folder).glob("*.md"))
START_US = 1_750_000_000_000_000


def number(cell: str) -> float:
    return float(cell.replace(",", ""))


# README and what all pages have in common


EXAMPLES, OUTPUTS = (re.findall(rf"```{word}\n(.*?)```", page("README.md"), re.DOTALL) for word in ("python", "text"))


@pytest.mark.parametrize("n", range(len(EXAMPLES)))
def test_an_example_of_the_readme_prints_what_it_says(tmp_path: Path, n: int) -> None:
    printed = [*OUTPUTS, "ingesting reports/q3.pdf\n"][n]
    for _ in range(2):  # whoever tries it once tries it again
        command = [sys.executable, "-W", "error", "-c", EXAMPLES[n]]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
        assert (ran.returncode, ran.stderr, ran.stdout) == (0, "", printed)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_names_of_files_lead_somewhere(path: Path) -> None:
    text = path.read_text()
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert [link for link in links if not (path.parent / link).exists()] == []
    names = [name for name in quoted(text) if name.endswith(SUFFIXES) and re.fullmatch(r"\w[\w./-]*", name)]
    places = [path.parent, ROOT, ROOT / "telha_queue" / "engines", *(ROOT / "tests").iterdir()]
    assert [name for name in names if not any((place / name).exists() for place in places)] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_targets_settings_and_errors_exist(path: Path) -> None:
    text = path.read_text()
    targets = set(re.findall(r"^([a-z]+):", page("Makefile"), re.MULTILINE))
    named = {word for command in quoted(text) for word in re.findall(r"\bmake ([a-z]+)\b", command)}
    named |= set(re.findall(r"^    (?:\$ )?make ([a-z]+)\b", text, re.MULTILINE))
    assert named <= targets
    variables = {name.lower() for name in re.findall(r"\bTELHA_JOBS_([A-Z_]+[A-Z])\b", text)}
    assert variables <= set(QueueConfig._fields)
    errors = import_module("telha_queue.errors")
    raised = re.findall(r"`(Store\w+|Storage\w+|Lease\w+t|Invalid\w+|Corrupt\w+)`", text)
    assert [name for name in sorted(raised) if not hasattr(errors, name)] == []


# Operating


def test_the_table_of_settings_is_the_configuration() -> None:
    rows = table(page("docs/operating.md"), "setting")
    named = [quoted(row["setting"])[0] for row in rows]
    assert sorted([*named, "durability", "backoff_base_secs_by_kind"]) == sorted(QueueConfig._fields)
    for name, row in zip(named, rows, strict=True):
        low, high = number(row["from"]), number(row["to"])
        assert getattr(QueueConfig(), name) == number(row["default"]), name
        as_number = int if low.is_integer() else float  # a whole number will do for every setting but from 0.001 on
        for accepted in (low, high):
            QueueConfig(**{name: as_number(accepted)})
        for refused in (as_number(low) - (1 if low.is_integer() else 0.0001), as_number(high) + 1):
            with pytest.raises(ConfigError):
                QueueConfig(**{name: refused})


def test_the_durability_modes_are_those_there_are() -> None:
    for text, first in ((page("README.md"), "mode"), (page("docs/operating.md"), "`durability`")):
        assert tuple(quoted(row[first])[0] for row in table(text, first)) == DURABILITIES


@pytest.mark.parametrize("row", table(page("docs/operating.md"), "what"), ids=lambda row: row["constant"].strip("`"))
def test_a_limit_is_its_constant(row: dict[str, str]) -> None:
    [constant] = quoted(row["constant"])
    if ": " in constant:
        path, name = constant.split(": ")
        [product] = re.findall(rf"^    {name} = ([\d_]+)$| {name} = ([\d *]+);$", page(path), re.MULTILINE)
        value = prod(map(int, "".join(product).split("*")))
    else:
        module, _, name = constant.rpartition(".")
        value = getattr(import_module(module), name)
    assert number(row["limit"]) == float(value)


def test_the_write_buffers_are_those_of_the_code() -> None:
    [told] = re.findall(r"That is (\d+) MiB", page("docs/operating.md"))
    seldom, often = map(int, re.findall(r"settings\.memtable_bytes / (\d+)", page("ext/database.hpp")))
    whole = QueueConfig().memtable_bytes
    assert int(told) << 20 == 2 * (whole + 3 * whole // often + 3 * whole // seldom)


def test_every_error_has_its_row() -> None:
    errors = import_module("telha_queue.errors")
    named = {name for row in table(page("docs/operating.md"), "error") for name in quoted(row["error"])}
    kinds = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, JobError)}
    assert named == kinds - {"JobError", "UnsupportedByEngine"}


# The state machine


def lives(policy: Policy) -> Iterator[tuple[RecordFields, Command, RecordFields | Refusal]]:
    """Every step that any job can take: from each kind of record that can come to be, under each kind of command."""
    fresh = RecordFields(bytes(16), "x", b"", 128, 1, JobState.PENDING, max_attempts=2)
    changes: tuple[dict[str, int], ...] = ({}, {"not_before": START_US + 1}, {"expires_at": START_US + 10**12})
    pending, seen = [fresh._replace(**change) for change in changes], set()
    while pending:
        record = pending.pop()
        likeness = record._replace(events=(), lease_generation=0, lease_deadline=record.lease_deadline and 1)
        if likeness in seen:
            continue
        seen.add(likeness)
        gates = (record.not_before or 0, (record.lease_deadline or 0) + policy.lease_grace_us, START_US)
        for verb in Verb:
            for holder in {record.worker_id or record.reaped_worker_id or "w", "nobody"}:
                for choice, cause in product((False, True), Cause):
                    command = Command(
                        verb, holder, record.lease_generation + (verb == Verb.LEASE), 60, "text", b"page 7",
                        retryable=choice, accept_late=choice, delay_us=int(choice), cause=cause,
                        not_before=0 if choice else START_US + 1, priority=7 if choice else None, durable=choice,
                        progress=1, result=b"four" if choice else None, result_bytes=4 if choice else None,
                    )  # fmt: skip
                    for now_us in (START_US, max(gates) + 1, max(*gates, record.expires_at or 0) + 1):
                        after = step(record, command, now_us, policy)
                        yield record, command, after
                        if isinstance(after, RecordFields):
                            # Relative times keep the number of likenesses small.
                            gate = None if after.not_before is None else START_US + 1
                            pending.append(after._replace(not_before=gate))


STEPS = list(lives(Policy()))
OF_ITS_OWN = (Verb.LEASE, Verb.REAP, Verb.RESTORE, Verb.EXPIRE)
"""Verbs that the queue applies to jobs that it chooses itself: they pass over what they are refused."""


def test_the_table_of_transitions_is_complete_and_true() -> None:
    rows = table(page("docs/state_machine.md"), "state")
    told = {(row["state"], row["verb"], row["new state"], row["event"]) for row in rows}
    assert len(told) == len(rows)
    done = {
        (before_name, command.verb.name.lower(), JobState(after.state).name.title(), after.events[-1].transition)
        for before, command, after in STEPS
        if isinstance(after, RecordFields)
        for before_name in [JobState(before.state).name.title()]
    }
    assert told == done


def test_the_diagram_has_the_arrows_of_the_table() -> None:
    text = page("docs/state_machine.md")
    rows = table(text, "state")
    drawn = re.findall(r"^    (\w+) --> (\w+): (.+)$", text, re.MULTILINE)
    arrows = {(start, end, verb) for start, end, verbs in drawn for verb in verbs.replace(", late", "").split(", ")}
    assert arrows == {(row["state"], row["new state"], row["verb"]) for row in rows}


def test_refusals_are_those_of_the_table() -> None:
    named = {Refusal.LEASE_CONFLICT: "LeaseConflict", Refusal.INVALID_TRANSITION: "InvalidTransition"}
    rows = table(page("docs/state_machine.md"), "verb")
    told = {(verb, quoted(row["error"])[0]) for row in rows[:2] for verb in row["verb"].split(", ")}
    refused = {
        (command.verb.name.lower(), named[after])
        for _, command, after in STEPS
        if isinstance(after, Refusal) and after in named and command.verb not in OF_ITS_OWN
    }
    assert told == refused


def test_fields_are_set_and_cleared_by_the_verbs_of_the_table() -> None:
    rows = table(page("docs/state_machine.md"), "field")
    unset = {"priority": None} | RecordFields._field_defaults
    for field, told_of_it in [(field, row) for row in rows for field in quoted(row["field"])]:
        changes = [
            (command.verb.name.lower(), getattr(after, field) == unset[field])
            for before, command, after in STEPS
            if isinstance(after, RecordFields) and getattr(before, field) != getattr(after, field)
        ]
        for column, cleared in (("set by", False), ("cleared by", True)):
            told = set(filter(None, told_of_it[column].split(", ")))
            assert {verb for verb, is_clear in changes if is_clear == cleared} == told, f"{field} {column}"
    told_of = {field for row in rows for field in quoted(row["field"])}
    moved = {
        field
        for before, _, after in STEPS
        if isinstance(after, RecordFields)
        for field in RecordFields._fields
        if getattr(before, field) != getattr(after, field)
    }
    assert moved == told_of | {"state", "events"}


def test_the_backoff_schedule_is_that_of_the_defaults() -> None:
    [row] = table(page("docs/state_machine.md"), "attempts lost")
    told = {int(attempts): int(secs) for attempts, secs in row.items() if attempts.isdigit()}
    assert told == {attempts: backoff_us(Policy(), attempts) // 1_000_000 for attempts in range(1, 8)}
