"""How scopes are shown: by name where the store knows one, and never by a name that would mislead."""

from __future__ import annotations

import json
from collections.abc import Callable
from uuid import UUID

import pytest
from click.testing import Result

from telha_queue.cli import arguments, render, scopes
from telha_queue.queue import Queue
from telha_queue.scope import Scope

Telha = Callable[..., Result]
ACME = Scope.named("acme")
SPACE = Scope.tenant(UUID(int=7), UUID(int=8))


@pytest.mark.parametrize("scope", [Scope.SYSTEM, ACME, Scope.named("a b/c"), Scope(ACME.key), SPACE], ids=str)
def test_what_is_shown_leads_back_when_it_is_typed(scope: Scope) -> None:
    assert scopes.label(scope) == str(scope)
    assert arguments.scope(scopes.label(scope)) == scope


@pytest.mark.parametrize("name", ["system", str(ACME.tenant_id), f"{ACME.tenant_id}/x", "0" * 30])
def test_a_name_that_would_be_taken_for_another_scope_is_shown_as_the_key(name: str) -> None:
    scope = Scope.named(name)
    assert scopes.label(scope) == str(scope.tenant_id)
    assert scopes.facts(scope) == [("scope", str(scope.tenant_id))]
    assert scopes.as_json(scope) == {"scope": str(scope.tenant_id), "scope_name": name}


def test_details_tell_the_key_as_well() -> None:
    assert scopes.facts(ACME) == [("scope", "acme"), ("tenant", str(ACME.tenant_id))]
    assert scopes.facts(Scope.SYSTEM) == [("scope", "system")]
    assert [label for label, _ in scopes.facts(SPACE)] == ["tenant", "space"]


def test_a_leased_job_is_shown_with_the_name_of_its_scope(
    telha: Telha, opened: Callable[..., Queue], monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened() as queue:
        queue.enqueue(ACME, "x")
        lease = queue.lease_next(ACME, worker_id="w")
    assert lease is not None
    row = telha("jobs", "list", "--state", "leased").stdout.splitlines()[1]
    assert "  acme  " in row
    assert "scope     acme\n" in telha("jobs", "show", lease.job_id).stdout
    monkeypatch.setattr(render, "on_terminal", lambda: True)
    assert "scope acme" in telha("jobs", "list").stdout


def test_every_object_about_a_job_has_the_key_and_the_name(
    telha: Telha, opened: Callable[..., Queue], kill_job: Callable[..., object]
) -> None:
    with opened() as queue:
        job = kill_job(queue)
        queue.enqueue(ACME, "y", max_attempts=1)
        queue.lease_next(ACME, worker_id="w")
    for words in (
        ("list",),
        ("show", job.job_id),  # type: ignore[attr-defined]
        ("retry", job.job_id),  # type: ignore[attr-defined]
        ("enqueue", "x", "--scope", ACME.tenant_id),
    ):
        told = json.loads(telha("jobs", *words, "--json").stdout.splitlines()[0])
        assert (told["scope"], told["scope_name"]) == (str(ACME.tenant_id), "acme"), words
    (dead,) = json.loads(telha("jobs", "reap", "--json").stdout)["dead_jobs"]
    assert (dead["scope"], dead["scope_name"]) == (str(ACME.tenant_id), "acme")
