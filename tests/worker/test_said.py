"""What a handler leaves with its job: result, progress, durable checkpoints; in threads, on the loop, in processes."""

from __future__ import annotations

import logging
import threading

import pytest
import worker_tasks

from telha_queue import JobState, Scope
from telha_queue.errors import ConfigError, InvalidArgument, LeaseConflict, StorageError
from telha_queue.worker import JSON, MSGPACK, Retry, task
from telha_queue.worker.inline import run_due
from telha_queue.worker.said import Said

ACME = Scope.named("acme")
PATIENCE_SECS = 20


def ended(queue, job):
    return queue.wait(ACME, job.job_id, PATIENCE_SECS)


def made(function, is_async, kind="x", **how):
    """A task of a function that takes the job, as a thread or the loop runs it."""
    if not is_async:
        return task(kind, **how)(function)

    async def run(job):
        return function(job)

    return task(kind, **how)(run)


HOW = pytest.mark.parametrize("is_async", [False, True], ids=["thread", "loop"])


@HOW
def test_what_it_returns_is_kept_if_its_task_says_so_and_not_else(queue, work, is_async):
    keeps = made(lambda job: b"5 words", is_async, "keeps", keeps_result=True)
    drops = made(lambda job: b"5 words", is_async, "drops")
    nothing = made(lambda job: None, is_async, "nothing", keeps_result=True)
    work(keeps, drops, nothing)
    jobs = [one.enqueue(queue, ACME) for one in (keeps, drops, nothing)]
    assert [ended(queue, job).result for job in jobs] == [b"5 words", None, None]


@pytest.mark.parametrize("codec", [JSON, MSGPACK], ids=lambda codec: codec.name)
@pytest.mark.parametrize("value", [None, 5, ["a", 1.5], {"words": 5}, "x" * 9000])
def test_a_codec_carries_it_there_and_back(queue, codec, value):
    @task("count", codec=codec, keeps_result=True)
    def count(job, text: str):
        return value

    job = count.enqueue(queue, ACME, text="five words")
    with pytest.raises(InvalidArgument):
        count.result_of(job)
    [done] = run_due(queue, [count])
    assert (done.state, count.result_of(done)) == (JobState.COMPLETED, value)


@HOW
def test_a_result_that_cannot_be_kept_is_the_end_of_the_job(make_queue, work, is_async):
    small = make_queue(max_payload_bytes=1000)
    wrong = made(lambda job: "text", is_async, "wrong", keeps_result=True)
    large = made(lambda job: bytes(1001), is_async, "large", keeps_result=True)
    work(wrong, large, queue=small)
    dead = [small.wait(ACME, one.enqueue(small, ACME).job_id, PATIENCE_SECS) for one in (wrong, large)]
    assert [(job.state, job.dead_reason, job.attempts) for job in dead] == [(JobState.DEAD, "not_retryable", 1)] * 2
    assert "a task without a codec returns bytes or None, not str" in dead[0].last_error
    assert dead[1].last_error == "the result is 1001 bytes; the limit is 1000 bytes"


def test_a_codec_that_knows_no_results_is_refused(queue):
    class Plain:
        name = "plain"

        def encode(self, arguments):
            return b""

        def decode(self, payload):
            return {}

    assert task("x", codec=Plain())(lambda job: None).keeps_result is False
    with pytest.raises(ConfigError, match="plain"):
        task("x", codec=Plain(), keeps_result=True)(lambda job: None)


@HOW
def test_the_next_attempt_goes_on_from_a_durable_checkpoint(queue, work, is_async):
    seen = []

    def run(job):
        seen.append((job.attempt, job.durable_continuation, job.record.continuation))
        if job.attempt == 1:
            job.checkpoint(b"chapter 2", durable=True)
            job.checkpoint(b"page 41")
            raise Retry("again", delay_secs=0)

    resumed = made(run, is_async)
    work(resumed)
    job = ended(queue, resumed.enqueue(queue, ACME))
    assert seen == [(1, None, None), (2, b"chapter 2", None)]
    assert job.durable_continuation is None


def test_a_process_leaves_all_of_it_too(queue, work):
    work(worker_tasks.resumes)
    job = ended(queue, worker_tasks.resumes.enqueue(queue, ACME, word="next"))
    assert (job.state, job.attempts) == (JobState.COMPLETED, 1)
    assert worker_tasks.resumes.result_of(job) == {"word": "next", "from": "\0 half"}
    assert (job.progress, job.progress_text) == (1.0, "all of it")


@HOW
def test_of_what_it_says_in_a_row_the_first_is_written_at_once_and_the_last_before_its_end(
    queue, work, is_async, monkeypatch
):
    monkeypatch.setattr("telha_queue.worker.said.PAUSE_SECS", 3600)
    between = []

    def run(job):
        for step in range(100):
            job.progress(step / 100, f"step {step}")
        between.append(queue.find(job.job_id))
        job.progress(1, "done")

    talks = made(run, is_async)
    work(talks)
    job = ended(queue, talks.enqueue(queue, ACME))
    assert [(seen.progress, seen.progress_text) for seen in between] == [(0.0, "step 0")]
    assert (job.progress, job.progress_text) == (1.0, "done")
    assert [event.count for event in job.events if event.transition == "extended"] == [2]


def test_a_handler_that_says_what_is_no_progress_learns_of_it(queue):
    refused = []

    @task("x")
    def run(job):
        for bad in ({"fraction": 2}, {"fraction": "half"}, {"text": "alone"}, {"fraction": 0, "text": "x" * 4097}):
            with pytest.raises(InvalidArgument):
                job.progress(**bad)
            refused.append(bad)
        job.progress()

    run.enqueue(queue, ACME)
    [job] = run_due(queue, [run])
    assert (len(refused), job.state, job.progress) == (4, JobState.COMPLETED, None)


class Broken:
    """A queue that takes no progress while it has an error."""

    def __init__(self, queue, error):
        self.queue, self.error = queue, error
        self.tries = 0

    def progress(self, *what):
        self.tries += 1
        if self.error is not None:
            raise self.error
        return self.queue.progress(*what)


@pytest.fixture
def lease(queue):
    queue.enqueue(ACME, "x")
    return queue.lease_next(ACME, worker_id="w")


def test_after_a_second_the_next_word_is_written_again(queue, lease, monkeypatch):
    monkeypatch.setattr("telha_queue.worker.said.PAUSE_SECS", 0)
    said = Said(queue, lease)
    for fraction in (0.25, 0.5):
        said.say(fraction, None)
        assert queue.find(lease.job_id).progress == fraction


def test_what_the_store_could_not_take_is_written_at_the_end(queue, lease, caplog, monkeypatch):
    monkeypatch.setattr("telha_queue.worker.said.PAUSE_SECS", 3600)
    broken = Broken(queue, StorageError("no disk"))
    said = Said(broken, lease)
    with caplog.at_level(logging.WARNING, "telha_queue.worker"):
        said.say(0.5, "half")
        said.say(0.6, None)
    assert (broken.tries, len(caplog.records)) == (1, 1)  # at most once a second, in vain too
    broken.error = None
    said.end()
    said.end()
    assert (broken.tries, queue.find(lease.job_id).progress) == (2, 0.6)


def test_what_was_said_under_a_lost_lease_is_dropped_without_a_word(queue, lease, caplog):
    broken = Broken(queue, LeaseConflict(lease.job_id, held=2, presented=1, state=1))
    said = Said(broken, lease)
    said.say(0.5, None)
    said.end()
    assert (broken.tries, caplog.records) == (1, [])


def test_many_threads_may_speak_for_one_job(queue, lease):
    said = Said(queue, lease)
    threads = [threading.Thread(target=said.say, args=(n / 10, f"{n}")) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    said.end()
    job = queue.find(lease.job_id)
    assert round(10 * job.progress) == int(job.progress_text)
