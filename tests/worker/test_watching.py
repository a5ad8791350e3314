"""Seeing a worker: figures, health, status, log lines, traces."""

from __future__ import annotations

import http.client
import json
import logging
import socket
import stat
import threading

import pytest

from telha_queue import JobState, Scope
from telha_queue.worker import Job, Lane, Permanent, task
from telha_queue.worker.logs import JsonFormatter, KeyValueFormatter
from telha_queue.worker.metrics import exposition

ACME = Scope.named("acme")


@task("good")
def good(job: Job) -> None: ...


@task("bad")
def bad(job: Job) -> None:
    raise Permanent("no")


@pytest.fixture
def done(queue, work, until):
    """A worker that has completed three jobs and buried one."""
    queue.enqueue_many(ACME, [good.spec()] * 3 + [bad.spec()])
    worker = work(good, bad, concurrency=4, lanes=[Lane("quick", ["good"], 1)], health="127.0.0.1:0")
    until(lambda: worker.counters.total("completed") == 3 and worker.counters.total("dead") == 1)
    return worker


def ask(address: str, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(address, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def test_prometheus_reads_its_figures(done):
    lines = exposition(done).decode().splitlines()
    for line in (
        'telha_worker_jobs_total{ending="completed",kind="good"} 3.0',
        'telha_worker_jobs_total{ending="dead",kind="bad"} 1.0',
        'telha_worker_run_seconds_count{kind="good"} 3.0',
        'telha_worker_wait_seconds_bucket{kind="good",le="+Inf"} 3.0',
        'telha_worker_permits{lane="quick"} 1.0',
        'telha_worker_permits{lane="general"} 3.0',
        "telha_worker_store_up 1.0",
        "telha_worker_threads_abandoned 0.0",
    ):
        assert line in lines


def test_an_orchestrator_is_told_how_it_is(done, queue):
    address = done._health.address
    assert ask(address, "/healthz") == (200, b"ok\n")
    assert ask(address, "/readyz") == (200, b"ready\n")
    assert ask(address, "/metrics")[1] == exposition(done)
    assert ask(address, "/elsewhere")[0] == 404
    status = json.loads(ask(address, "/status")[1])
    assert status["worker"] == done.worker_id
    assert status["kinds"]["good"]["completed"] == 3
    assert status["lanes"]["quick"] == {"permits": 1, "used": 0, "waiting": 0}
    assert status["running"] == []
    done.stop()
    assert not done.is_ready


def test_a_worker_whose_intake_is_gone_is_not_healthy(queue, work, until):
    worker = work(good, reaper=False)
    queue.close()
    until(lambda: not worker.is_healthy)
    assert not worker.is_ready


def test_it_answers_on_a_unix_socket_that_is_its_owners_alone(queue, work, tmp_path):
    path = tmp_path / "worker.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))  # left by one that was killed
    worker = work(good, health=f"unix:{path}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(str(path))
        asked.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert b" 200 " in asked.recv(1000)
    worker.stop()
    assert not path.exists()


def test_what_is_at_work_is_shown_longest_first(queue, work, until):
    go = threading.Event()

    @task("hold")
    def hold(job: Job) -> None:
        go.wait(20)

    jobs = [hold.enqueue(queue, ACME) for _ in range(3)]
    worker = work(hold, concurrency=3)
    until(lambda: len(worker.status()["running"]) == 3)
    shown = worker.status()["running"]
    assert {one["job"] for one in shown} == {str(job.job_id) for job in jobs}
    assert [one["secs"] for one in shown] == sorted((one["secs"] for one in shown), reverse=True)
    assert {(one["kind"], one["attempt"], one["lane"]) for one in shown} == {("hold", 1, "general")}
    go.set()


@pytest.mark.parametrize("is_async", [False, True])
def test_a_line_that_a_handler_logs_says_which_job_it_is_about(queue, work, until, is_async, caplog):
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append((JsonFormatter().format(record), KeyValueFormatter().format(record)))
    log = logging.getLogger("my program")
    log.addHandler(handler)

    def plain(job: Job) -> None:
        log.warning('read "%s"', "a b\nc")

    async def coroutine(job: Job) -> None:
        plain(job)

    told = task("x")(coroutine if is_async else plain)
    job = told.enqueue(queue, ACME)
    work(told)
    until(lambda: queue.get(ACME, job.job_id).state is JobState.COMPLETED)
    log.warning("afterwards")
    log.removeHandler(handler)
    [(first, pairs), (after, _)] = lines
    facts = json.loads(first)
    assert (facts["job"], facts["kind"], facts["attempt"]) == (str(job.job_id), "x", 1)
    assert facts["text"] == 'read "a b\nc"'
    assert 'text="read \\"a b\\nc\\"" ' in pairs
    assert "job" not in json.loads(after)
