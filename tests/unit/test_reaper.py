"""The thread of the reaper: what goes wrong around it neither ends it silently nor leaves anybody waiting."""

from __future__ import annotations

import logging
import threading

import pytest

from telha_queue.errors import StorageError
from telha_queue.job import ReapReport
from telha_queue.reaper import Reaper
from telha_queue.testing import memory_queue

PATIENCE_SECS = 20


class Empty:
    """A queue in which nothing expires."""

    def reap_expired(self, now_us=None):
        return ReapReport(0, 0)


@pytest.fixture
def start():
    """start(...): a reaper that is stopped after the test."""
    reapers = []

    def build(queue, on_pass=None):
        reapers.append(Reaper(queue, 3600, on_pass))
        reapers[-1].start()
        return reapers[-1]

    yield build
    for reaper in reapers:
        reaper.stop()


def no_room(self):
    raise RuntimeError("can't start new thread")


def test_a_queue_whose_reaper_could_not_start_has_none_and_may_try_again(monkeypatch):
    with memory_queue() as queue:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", no_room)
            with pytest.raises(RuntimeError):
                queue.start_reaper()
        assert queue._reaper is None
        assert queue.start_reaper().wait_pass(beyond=0, timeout_secs=PATIENCE_SECS)


def test_nobody_waits_for_a_reaper_that_does_not_run(monkeypatch):
    monkeypatch.setattr(threading.Thread, "start", no_room)
    reaper = Reaper(Empty(), 3600)
    assert not reaper.wait_pass(beyond=0)
    with pytest.raises(RuntimeError):
        reaper.start()
    assert not reaper.wait_pass(beyond=0)
    reaper.stop()


def test_a_callback_that_raises_is_logged_and_the_reaper_goes_on(start, caplog):
    def on_pass(outcome):
        raise ValueError("not mine")

    with caplog.at_level(logging.ERROR, "telha_queue.reaper"):
        reaper = start(Empty(), on_pass)
        assert reaper.wait_pass(beyond=0, timeout_secs=PATIENCE_SECS)
        assert reaper.wait_pass(reaper.run_now(), timeout_secs=PATIENCE_SECS)
    assert "on_pass failed; the reaper goes on" in caplog.messages
    assert "not mine" in caplog.text


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_waiter_is_told_when_the_thread_ends(start):
    leave = threading.Event()

    def on_pass(outcome):
        leave.wait(PATIENCE_SECS)
        raise SystemExit

    reaper = start(Empty(), on_pass)
    leave.set()
    assert not reaper.wait_pass(beyond=0)
    assert not reaper.wait_pass(reaper.run_now())


def test_a_failing_pass_is_told_and_counted(start):
    class Full:
        def reap_expired(self, now_us=None):
            raise StorageError("full")

    told = []
    reaper = start(Full(), told.append)
    assert reaper.wait_pass(beyond=0, timeout_secs=PATIENCE_SECS)
    assert (reaper.passes, str(told[0])) == (1, "full")
