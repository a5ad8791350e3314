"""A worker on every engine: what a handler does decides what becomes of its job."""

from __future__ import annotations

import asyncio
import threading

import pytest

from telha_queue import JobState, Scope
from telha_queue.errors import ConfigError
from telha_queue.worker import JSON, MSGPACK, ErrorRules, Job, Permanent, Released, Retry, Worker, task

ACME = Scope.named("acme")


def test_a_handler_that_returns_completes_its_job(queue, work, until):
    seen = []

    @task("ingest:pdf")
    def ingest(job: Job) -> None:
        seen.append((job.payload, job.attempt, job.kind, job.scope.key))

    work(ingest)
    job = ingest.enqueue(queue, ACME, b"q3.pdf")
    until(lambda: queue.get(ACME, job.job_id).state is JobState.COMPLETED)
    assert seen == [(b"q3.pdf", 1, "ingest:pdf", ACME.key)]


@pytest.mark.parametrize("codec", [JSON, MSGPACK], ids=lambda codec: codec.name)
def test_arguments_travel_by_a_codec(queue, work, until, codec):
    seen = []

    @task("resize", codec=codec, priority=7)
    def resize(job: Job, path: str, *, width: int = 100) -> None:
        seen.append((path, width))

    first = resize.enqueue(queue, ACME, "cat.png", width=300)
    queue.enqueue_many(ACME, [resize.spec("dog.png"), resize.options(priority=9).spec(path="ö.png")])
    work(resize, concurrency=1)
    until(lambda: len(seen) == 3)
    assert seen == [("cat.png", 300), ("dog.png", 100), ("ö.png", 100)]
    assert first.priority == 7
    with pytest.raises(TypeError):
        resize.enqueue(queue, ACME, "cat.png", height=3)


@pytest.mark.parametrize("payload", [b"", b"[1]", b"{", b'{"height": 3}', b'{"path": 1, "path2": 2}', b"\xff"])
def test_a_payload_that_is_no_call_of_the_task_is_dead_at_once(queue, work, until, payload):
    @task("resize", codec=JSON)
    def resize(job: Job, path: str) -> None:
        raise AssertionError("called")

    job = queue.enqueue(ACME, "resize", payload)
    work(resize)
    until(lambda: queue.get(ACME, job.job_id).state is JobState.DEAD)
    dead = queue.get(ACME, job.job_id)
    assert dead.dead_reason == "not_retryable"
    assert dead.events[-1].detail.startswith("BadPayload: ")


class Budget(Exception):
    pass


ENDS = {
    "exit": (SystemExit(3), JobState.PENDING, 1, 10),
    "interrupt": (KeyboardInterrupt(), JobState.PENDING, 1, 10),
    "unknown": (ValueError("bad"), JobState.PENDING, 1, 10),
    "permanent": (Permanent("no such file"), JobState.DEAD, 1, None),
    "retry": (Retry("later", delay_secs=77), JobState.PENDING, 1, 77),
    "retry by backoff": (Retry(), JobState.PENDING, 1, 10),
    "released": (Released(delay_secs=5), JobState.PENDING, 0, 5),
    "permanent by rule": (Budget("spent"), JobState.DEAD, 1, None),
}


@pytest.mark.parametrize(("error", "state", "attempts", "delay_secs"), ENDS.values(), ids=ENDS)
def test_what_a_handler_raises_decides(queue, clock, work, until, error, state, attempts, delay_secs):
    @task("x", max_attempts=3)
    def fail(job: Job) -> None:
        raise error

    job = fail.enqueue(queue, ACME)
    worker = work(fail, rules=ErrorRules(permanent=(Budget,)))
    until(lambda: queue.get(ACME, job.job_id).lease_generation == 1 and worker.counters.kinds["x"].run.count)
    after = queue.get(ACME, job.job_id)
    assert (after.state, after.attempts) == (state, attempts)
    assert after.not_before == (None if delay_secs is None else clock() + delay_secs * 1_000_000)
    if attempts:
        assert after.events[-1].detail.splitlines()[0].startswith(type(error).__name__)
        assert "test_worker.py" in after.events[-1].detail


@pytest.mark.parametrize(
    "error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), ValueError()], ids=repr
)
def test_whatever_a_coroutine_raises_it_leaves_its_place(queue, work, until, error):
    @task("x")
    async def x(job: Job) -> None:
        raise error

    job = x.enqueue(queue, ACME)
    worker = work(x, concurrency=1)
    until(lambda: queue.get(ACME, job.job_id).attempts == 1)
    until(lambda: worker.load()["general"].used == 0)


def test_a_function_that_returns_a_coroutine_says_so(queue, work, until):
    async def coroutine() -> None: ...

    x = task("x")(lambda job: coroutine())
    job = x.enqueue(queue, ACME)
    work(x)
    until(lambda: queue.get(ACME, job.job_id).state is JobState.DEAD)
    assert "declare the task itself with async def" in queue.get(ACME, job.job_id).events[-1].detail


def test_a_handler_that_always_asks_for_a_delay_is_dead_at_its_ceiling(queue, clock, work, until):
    @task("x", max_attempts=3)
    def later(job: Job) -> None:
        raise Retry(delay_secs=1)

    job = later.enqueue(queue, ACME)
    work(later)
    for attempt in (1, 2, 3):
        until(lambda attempt=attempt: queue.get(ACME, job.job_id).attempts == attempt)
        clock.advance(secs=1)
    assert queue.get(ACME, job.job_id).dead_reason == "attempts"


def test_coroutines_run_side_by_side_on_one_loop(queue, work, until):
    import anyio

    threads, most, at_work, full = set(), [0], [0], []

    @task("fetch")
    async def fetch(job: Job) -> None:
        threads.add(threading.get_ident())
        full[:] = full or [anyio.Event()]
        at_work[0] += 1
        most[0] = max(most[0], at_work[0])
        if at_work[0] == 8:
            full[0].set()
        await full[0].wait()
        at_work[0] -= 1

    queue.enqueue_many(ACME, [fetch.spec() for _ in range(40)])
    work(fetch, concurrency=8)
    until(lambda: queue.counts()[JobState.COMPLETED] == 40)
    assert len(threads) == 1
    assert most[0] == 8


def test_at_most_as_many_run_as_worker_and_task_allow(queue, work, until):
    lock, at_work, most = threading.Lock(), {"a": 0, "b": 0}, {"a": 0, "b": 0, "all": 0}

    def busy(job: Job) -> None:
        with lock:
            at_work[job.kind] += 1
            most[job.kind] = max(most[job.kind], at_work[job.kind])
            most["all"] = max(most["all"], sum(at_work.values()))
        threading.Event().wait(0.002)
        with lock:
            at_work[job.kind] -= 1

    tasks = [task("a", concurrency=2)(busy), task("b")(busy)]
    queue.enqueue_many(ACME, [tasks[n % 2].spec() for n in range(100)])
    work(*tasks, concurrency=6, prefetch=10)
    until(lambda: queue.counts()[JobState.COMPLETED] == 100)
    assert most["a"] == 2
    assert most["all"] == 6


def test_a_worker_of_one_scope_leaves_the_others_alone(queue, work, until):
    @task("x")
    def x(job: Job) -> None: ...

    others = x.enqueue(queue, Scope.named("other"))
    mine = x.enqueue(queue, ACME)
    worker = work(x, scope=ACME)
    until(lambda: queue.get(ACME, mine.job_id).state is JobState.COMPLETED)
    assert worker.wait_idle()
    assert queue.get(others.scope, others.job_id).state is JobState.PENDING


def test_failures_are_logged_with_their_job_and_what_becomes_of_it(queue, work, until, caplog):
    @task("x", max_attempts=1)
    def x(job: Job) -> None:
        raise ValueError("bad\nworse")

    job = x.enqueue(queue, ACME)
    worker = work(x)
    until(lambda: worker.counters.total("dead") == 1)
    [line] = [line.getMessage() for line in caplog.records if line.levelname == "ERROR"]
    assert line == f"job {job.job_id} (x) is dead, attempts: ValueError: bad"


@pytest.mark.parametrize(
    "settings",
    [
        {"tasks": []},
        {"tasks": [len]},
        {"concurrency": 0},
        {"prefetch": -1},
        {"jitter": -1},
        {"grace_secs": -1},
        {"worker_id": ""},
        {"worker_id": "w" * 129},
        {"lease_ttl_secs": -1},
        {"scope": "acme"},
        {"late": "maybe"},
        {"health": "0.0.0.0:0"},
        {"health": "nowhere"},
    ],
    ids=str,
)
def test_a_worker_that_cannot_be_is_refused(queue, settings):
    @task("x")
    def x(job: Job) -> None: ...

    with pytest.raises(ConfigError):
        Worker(queue, **{"tasks": [x], **settings})


def test_two_tasks_of_one_kind_are_refused(queue):
    @task("x")
    def one(job: Job) -> None: ...

    @task("x")
    def two(job: Job) -> None: ...

    with pytest.raises(ConfigError, match="two tasks"):
        Worker(queue, tasks=[one, two])
