"""`telha jobs enqueue`, `show`, `retry` and `reap` on a directory."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from click.testing import Result

from telha_queue.cli.text import microseconds
from telha_queue.job import JobState
from telha_queue.queue import Queue
from telha_queue.scope import Scope
from telha_queue.testing import ManualClock

Telha = Callable[..., Result]
ACME = Scope.named("acme")


def test_an_enqueued_job_is_stored_as_the_options_say(telha: Telha, opened: Callable[..., Queue]) -> None:
    due = datetime.now(UTC) + timedelta(days=1)
    ran = telha(
        *("jobs", "enqueue", "ingest:md", "--create", "--payload", "größe", "--scope", "acme", "--priority", 7),
        *("--idempotency-key", "k1", "--max-attempts", 3, "--not-before", due.isoformat()),
    )
    with opened() as queue:
        job = queue.get(ACME, UUID(ran.stdout.strip()))
    assert (job.kind, job.priority, job.max_attempts, job.idempotency_key) == ("ingest:md", 7, 3, "k1")
    assert job.not_before == microseconds(due)


def test_a_payload_comes_from_an_argument_a_file_or_stdin(telha: Telha, tmp_path: Path) -> None:
    source = tmp_path / "payload"
    source.write_bytes(b"\x00\xff file")
    for words, stdin, payload in [
        (("--payload", "text"), None, b"text"),
        (("--payload-file", source), None, b"\x00\xff file"),
        (("--payload-file", "-"), b"\x00 stdin", b"\x00 stdin"),
    ]:
        job_id = telha("jobs", "enqueue", "x", "--create", *words, stdin=stdin).stdout.strip()
        assert telha("jobs", "show", job_id, "--payload").stdout_bytes == payload


def test_the_same_idempotency_key_gives_the_same_job_and_says_so(telha: Telha) -> None:
    words = "jobs", "enqueue", "x", "--create", "--idempotency-key", "k"
    first, second = telha(*words), telha(*words)
    assert first.stdout == second.stdout
    assert first.stderr == ""
    assert "already" in second.stderr


def test_show_finds_a_job_of_any_scope_by_id_alone(
    telha: Telha, opened: Callable[..., Queue], kill_job: Callable[..., object]
) -> None:
    with opened() as queue:
        job = kill_job(queue, "Traceback (most recent call last):\nValueError: boom")
    ran = telha("jobs", "show", f"work_item:{job.job_id}")
    assert ran.exit_code == 0
    facts, trail = ran.stdout.split("\n\n")
    assert f"scope     acme\ntenant    {ACME.tenant_id}\n" in facts
    assert "state     dead, not retryable" in facts
    assert "attempts  1 lost\n" in facts
    assert "leases    the latest is generation 1" in facts
    assert [line.split()[1:3] for line in trail.splitlines()[2:4]] == [["+1.5", "s"], ["+250", "ms"]]
    assert "2025-06-15T15:06:40.000Z" in trail
    assert trail.endswith("ValueError: boom\n")


def test_nothing_a_job_holds_reaches_the_terminal_as_it_is(
    telha: Telha, opened: Callable[..., Queue], kill_job: Callable[..., object]
) -> None:
    with opened() as queue:
        job = kill_job(queue, "\x1b[2J[red]gone[/red]\x9b1m\u202e")
    for words in (("show", job.job_id), ("list",)):
        shown = telha("jobs", *words).stdout
        assert r"\x1b[2J[red]gone[/red]\x9b1m\u202e" in shown
        assert shown.replace("\n", "").isprintable()


def test_show_json_is_one_object_with_the_whole_trail(
    telha: Telha, opened: Callable[..., Queue], kill_job: Callable[..., object]
) -> None:
    with opened() as queue:
        job = kill_job(queue, "\x1b boom")
    ran = telha("jobs", "show", job.job_id, "--json")
    shown = json.loads(ran.stdout)
    assert "\x1b" not in ran.stdout
    assert shown["last_error"] == "\x1b boom"
    assert [event["transition"] for event in shown["events"]] == ["enqueued", "leased", "dead"]


def test_retry_puts_dead_jobs_back_and_names_those_it_cannot(
    telha: Telha, opened: Callable[..., Queue], kill_job: Callable[..., object]
) -> None:
    with opened() as queue:
        dead = [kill_job(queue).job_id for _ in range(2)]
        live = queue.enqueue(ACME, "embed").job_id
    ran = telha("jobs", "retry", dead[0], live, f"work_item:{dead[1]}")
    assert ran.exit_code == 1
    assert ran.stdout.splitlines() == [f"{job_id} pending" for job_id in dead]
    assert ran.stderr == f"telha: job {live}: cannot retry a job that is pending\n"
    with opened() as queue:
        assert [(queue.find(job_id).state, queue.find(job_id).attempts) for job_id in dead] == [(0, 0)] * 2


def test_reap_takes_expired_leases_back_and_tells_which_jobs_died(
    telha: Telha, opened: Callable[..., Queue], clock: ManualClock
) -> None:
    with opened() as queue:
        again = queue.enqueue(ACME, "embed").job_id
        last = queue.enqueue(ACME, "ingest:md", max_attempts=1).job_id
        queue.lease_many(ACME, 2, worker_id="w1")
    ran = telha("jobs", "reap")
    assert ran.stdout.splitlines()[0] == "1 reclaimed, 1 dead"
    assert f"{last}  ingest:md" in ran.stdout
    assert "scope acme; no worker survived it: 1 attempt, last held by w1" in ran.stdout
    with opened() as queue:
        assert queue.find(again).state == JobState.PENDING
        assert queue.find(last).state == JobState.DEAD
    assert json.loads(telha("jobs", "reap", "--json").stdout) == {
        "reclaimed": 0, "dead": 0, "dead_jobs": [], "corrupt": 0, "expired": 0,
    }  # fmt: skip


@pytest.fixture
def expired(opened: Callable[..., Queue], clock: ManualClock) -> Callable[[], UUID]:
    """expired(): a job of which the lease ended an hour ago, by the clock of the command."""

    def make() -> UUID:
        clock.advance(time.time() - clock() / 1e6 - 3600 - 300)
        with opened() as queue:
            queue.enqueue(ACME, "x")
            lease = queue.lease_next(ACME, worker_id="w", lease_ttl_secs=300)
        assert lease is not None
        return lease.job_id

    return make


@pytest.mark.parametrize(
    ("settings", "said", "waits_secs"),
    [
        ({}, "1 reclaimed, 0 dead", 10),
        ({"LEASE_GRACE_SECS": "7200"}, "0 reclaimed, 0 dead", None),
        ({"LEASE_GRACE_SECS": "1800"}, "1 reclaimed, 0 dead", 10),
        ({"MAX_ATTEMPTS": "1"}, "0 reclaimed, 1 dead", None),
        ({"BACKOFF_BASE_SECS": "500"}, "1 reclaimed, 0 dead", 500),
        ({"BACKOFF_BASE_SECS": "500", "BACKOFF_CAP_SECS": "60"}, "1 reclaimed, 0 dead", 60),
    ],
)
def test_reap_judges_by_the_settings_of_its_own_environment(
    telha: Telha,
    opened: Callable[..., Queue],
    expired: Callable[[], UUID],
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, str],
    said: str,
    waits_secs: int | None,
) -> None:
    job_id = expired()
    for name, value in settings.items():
        monkeypatch.setenv(f"TELHA_JOBS_{name}", value)
    assert telha("jobs", "reap").stdout.splitlines()[0] == said
    with opened() as queue:
        job = queue.find(job_id)
    waits = None if job.not_before is None else (job.not_before - job.events[-1].at) / 1e6
    assert waits == waits_secs


def test_reap_tells_which_settings_it_goes_by(telha: Telha) -> None:
    told = telha("jobs", "reap", "--help").stdout
    for name in ("TELHA_JOBS_LEASE_GRACE_SECS", "TELHA_JOBS_MAX_ATTEMPTS", "TELHA_JOBS_BACKOFF_"):
        assert name in told


@pytest.mark.parametrize("name", ["runnable", "running", "done", "failed"])
def test_the_other_words_for_states_are_understood(telha: Telha, opened: Callable[..., Queue], name: str) -> None:
    with opened() as queue:
        ids = {"runnable": queue.enqueue(ACME, "a").job_id}
        for word, verb in (
            ("running", None),
            ("done", queue.complete),
            ("failed", lambda lease: queue.fail(lease, "no", retryable=False)),
        ):
            ids[word] = queue.enqueue(ACME, "b", priority=1).job_id
            lease = queue.lease_next(ACME, worker_id="w1")
            if verb is not None:
                verb(lease)
    ran = telha("jobs", "list", "--state", name, "--json")
    assert [json.loads(line)["job_id"] for line in ran.stdout.splitlines()] == [str(ids[name])]


def test_cancel_ends_jobs_and_names_those_it_cannot(
    telha: Telha, opened: Callable[..., Queue], kill_job: Callable[..., object]
) -> None:
    with opened() as queue:
        dead = kill_job(queue).job_id
        held, waiting = (queue.enqueue(ACME, "embed", priority=n).job_id for n in (1, 2))
        queue.lease_next(ACME, worker_id="w1")
    ran = telha("jobs", "cancel", waiting, dead, held, "--reason", "not needed")
    assert ran.exit_code == 1
    assert ran.stdout.splitlines() == [f"{job_id} dead" for job_id in (waiting, held)]
    assert ran.stderr == f"telha: job {dead}: cannot cancel a job that is dead\n"
    shown = telha("jobs", "show", held).stdout
    assert "state     dead, cancelled\n" in shown
    assert shown.rstrip().endswith("cancelled  not needed")
    assert "cancelled; not needed" in telha("jobs", "list", "--state", "dead").stdout
    assert json.loads(telha("jobs", "retry", held, "--json").stdout)["state"] == "pending"


def test_reschedule_moves_pending_jobs_in_line(telha: Telha, opened: Callable[..., Queue], clock: ManualClock) -> None:
    clock.advance(time.time() - clock() / 1e6 - 3600)
    with opened() as queue:
        first, gated = queue.enqueue(ACME, "a").job_id, queue.enqueue(ACME, "b", delay_secs=7200).job_id
        held = queue.enqueue(ACME, "c", priority=0).job_id
        queue.lease_next(ACME, "c", worker_id="w1")
    ran = telha("jobs", "reschedule", gated, held, "--priority", 7, "--delay-secs", 0)
    assert (ran.exit_code, ran.stdout) == (1, f"{gated} pending\n")
    assert ran.stderr == f"telha: job {held}: cannot reschedule a job that is leased\n"
    assert telha("jobs", "reschedule", first, "--not-before", "2030-01-01").stdout == f"{first} pending\n"
    assert telha("jobs", "reschedule", first).exit_code == 2
    with opened() as queue:
        assert queue.lease_next(ACME, worker_id="w1").job_id == gated
        assert queue.find(first).not_before == microseconds(datetime(2030, 1, 1, tzinfo=UTC))


def test_a_job_that_expires_says_so_until_it_is_buried(telha: Telha, opened: Callable[..., Queue]) -> None:
    job_id = telha("jobs", "enqueue", "x", "--create", "--expires-secs", 1800).stdout.strip()
    shown = telha("jobs", "show", job_id).stdout
    assert "state     pending, expires in " in shown
    assert "\nexpires   20" in shown
    assert "expires in " in telha("jobs", "list").stdout
    assert json.loads(telha("jobs", "list", "--json").stdout)["expires_at"] > time.time() * 1e6
    with opened() as queue:
        queue.reap_expired(round(time.time() * 1e6) + 1_800_000_000)
        queue.enqueue(ACME, "y", expires_secs=0.000001)
    assert telha("jobs", "reap").stdout == "0 reclaimed, 0 dead, 1 expired\n"
    assert "state     dead, expired\n" in telha("jobs", "show", job_id).stdout
