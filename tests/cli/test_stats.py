"""`telha stats` and `telha info`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from telha_queue import __version__
from telha_queue.job import JobSpec
from telha_queue.queue import Queue
from telha_queue.scope import Scope

Telha = Callable[..., Result]
ACME = Scope.named("acme")


@pytest.fixture(autouse=True)
def _jobs(opened: Callable[..., Queue]) -> None:
    with opened() as queue:
        queue.enqueue(Scope.SYSTEM, "system:gc", delay_secs=10**8)
        queue.enqueue_many(ACME, [JobSpec("ingest:md")] * 3)
        lease = queue.lease_next(ACME, worker_id="w1")
        assert lease is not None
        queue.complete(lease)


def test_counts_stand_per_scope_and_in_all(telha: Telha) -> None:
    header, *lines = [line.split() for line in telha("stats").stdout.splitlines()]
    assert header == ["PENDING", "LEASED", "COMPLETED", "DEAD", "WAIT", "SCOPE"]
    assert lines[0] == ["1", "0", "0", "0", "system"]
    assert lines[1][:4] == ["2", "0", "1", "0"]
    assert lines[1][5] == "acme"
    assert lines[2] == ["3", "0", "1", "0", "2", "scopes,", "4", "jobs"]


def test_json_tells_how_long_the_head_of_the_line_has_waited(telha: Telha) -> None:
    told = json.loads(telha("stats", "--json").stdout)
    system, acme = told["scopes"]
    assert system["wait_us"] is None
    assert acme["wait_us"] > 0
    assert told["total"] == {"pending": 3, "leased": 0, "completed": 1, "dead": 0}


def test_one_scope_alone_can_be_counted(telha: Telha) -> None:
    for typed in ("acme", ACME.tenant_id):
        told = json.loads(telha("stats", "--scope", typed, "--json").stdout)
        assert [(scope["scope"], scope["scope_name"]) for scope in told["scopes"]] == [(str(ACME.tenant_id), "acme")]
        assert told["total"]["pending"] == 2


def test_info_tells_path_versions_and_settings_with_their_origin(
    telha: Telha, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TELHA_JOBS_LEASE_TTL_SECS", "60")
    lines = telha("info").stdout.splitlines()
    facts = {line.split("  ")[0]: line.split("  ", 1)[1].strip() for line in lines if "  " in line}
    assert facts["path"] == str(path)
    assert facts["telha queue"] == __version__
    assert facts["lease_ttl_secs"] == "60  from TELHA_JOBS_LEASE_TTL_SECS"
    assert facts["max_attempts"] == "5"


def test_info_json_has_the_settings_as_values(telha: Telha, path: Path) -> None:
    told = json.loads(telha("info", "--json").stdout)
    assert told["path"] == str(path)
    assert told["build"]["telha_queue"] == __version__
    assert told["config"]["lease_ttl_secs"] == 300
    assert told["size_bytes"] > 0
