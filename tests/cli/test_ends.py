"""`telha jobs result` and `telha jobs wait`, and what `telha jobs show` says of results, progress and checkpoints."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from subprocess import Popen
from uuid import uuid4

import pytest
from click.testing import Result

from telha_queue.job import JobRecord
from telha_queue.queue import Queue
from telha_queue.scope import Scope

ACME = Scope.named("acme")

Telha = Callable[..., Result]
Opened = Callable[[], AbstractContextManager[Queue]]


@pytest.fixture
def leased(opened: Opened) -> JobRecord:
    """A job in somebody's hands, who is gone."""
    with opened() as queue:
        queue.enqueue(ACME, "ingest:md", b"payload")
        lease = queue.lease_next(ACME, worker_id="w")
        assert lease is not None
        return lease


@pytest.mark.parametrize("result", [b"", b"\x00\xff\n", b"r" * 5000])
def test_a_result_comes_out_as_it_went_in(
    opened: Opened, telha: Telha, leased: JobRecord, tmp_path: Path, result: bytes
) -> None:
    with opened() as queue:
        queue.complete(leased, result=result)
    assert telha("jobs", "result", leased.job_id).stdout_bytes == result
    ran = telha("jobs", "result", leased.job_id, "--output", tmp_path / "out")
    assert (ran.exit_code, ran.stdout_bytes, (tmp_path / "out").read_bytes()) == (0, b"", result)
    told = json.loads(telha("jobs", "result", leased.job_id, "--json").stdout)
    assert told == {
        "job_id": str(leased.job_id),
        "result_bytes": len(result),
        "result_base64": base64.b64encode(result).decode(),
    }


def test_a_job_without_a_result_leaves_no_file(telha: Telha, leased: JobRecord, tmp_path: Path) -> None:
    ran = telha("jobs", "result", leased.job_id, "--output", tmp_path / "out")
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert ran.stderr == f"telha: job {leased.job_id}: has no result, it is leased\n"
    assert not (tmp_path / "out").exists()
    assert telha("jobs", "result", uuid4()).exit_code == 1
    assert telha("jobs", "result", leased.job_id, "--json", "--output", tmp_path / "out").exit_code == 2


def test_the_exit_code_of_a_wait_says_how_the_job_ended(opened: Opened, telha: Telha, leased: JobRecord) -> None:
    ran = telha("jobs", "wait", leased.job_id)
    assert (ran.exit_code, ran.stdout, ran.stderr) == (9, f"{leased.job_id} leased\n", "")
    with opened() as queue:
        queue.fail(leased, "boom", retryable=False)
    ran = telha("jobs", "wait", leased.job_id)
    assert (ran.exit_code, ran.stdout) == (8, f"{leased.job_id} dead: boom\n")
    with opened() as queue:
        queue.retry(ACME, leased.job_id)
        lease = queue.lease_next(ACME, worker_id="w")
        assert lease is not None
        queue.complete(lease)
    ran = telha("jobs", "wait", leased.job_id, "--timeout-secs", 5)
    assert (ran.exit_code, ran.stdout) == (0, f"{leased.job_id} completed\n")
    assert json.loads(telha("jobs", "wait", leased.job_id, "--json").stdout)["state"] == "completed"
    assert telha("jobs", "wait", uuid4()).exit_code == 1


@pytest.mark.parametrize("secs", ["-1", "nan"])
def test_a_wait_of_less_than_nothing_is_refused(telha: Telha, leased: JobRecord, secs: str) -> None:
    assert telha("jobs", "wait", leased.job_id, "--timeout-secs", secs).exit_code == 2


def test_it_waits_for_whoever_has_the_queue_open_and_no_longer_than_it_may(
    opened: Opened, telha_process: Callable[..., Popen[str]], leased: JobRecord
) -> None:
    with opened() as queue:
        waiting = telha_process("jobs", "wait", leased.job_id)
        gives_up = telha_process("jobs", "wait", leased.job_id, "--timeout-secs", 0.5)
        stdout, stderr = gives_up.communicate(timeout=60)
        assert (gives_up.returncode, stdout) == (3, "")
        assert "is in use by process" in stderr
        assert waiting.poll() is None
        queue.complete(leased)
    stdout, _ = waiting.communicate(timeout=60)
    assert (waiting.returncode, stdout) == (0, f"{leased.job_id} completed\n")


def test_show_tells_progress_and_what_is_kept(opened: Opened, telha: Telha, leased: JobRecord) -> None:
    with opened() as queue:
        queue.checkpoint(leased, b"page 7", durable=True)
        queue.progress(leased, 0.405, "page 40 of 99")
    shown = telha("jobs", "show", leased.job_id).stdout
    assert "progress  40.5 %: page 40 of 99\n" in shown
    assert "durable   checkpoint, 6 bytes\n" in shown
    assert "\nresult " not in shown
    told = json.loads(telha("jobs", "show", leased.job_id, "--json").stdout)
    assert (told["progress"], told["progress_text"], told["result_bytes"]) == (0.405, "page 40 of 99", None)
    assert base64.b64decode(told["durable_continuation_base64"]) == b"page 7"
    with opened() as queue:
        queue.complete(leased, result=bytes(5000))
    shown = telha("jobs", "show", leased.job_id).stdout
    assert "result    5.0 kB\n" in shown
    assert "\ndurable " not in shown
