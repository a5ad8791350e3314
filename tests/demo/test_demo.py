"""The demo on a small folder, as its own process: what it says, how it ends and what it leaves behind."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from telha_queue import Exact, JobState, Queue, Scope

DEMO = Path(__file__).resolve().parents[2] / "demo" / "ingest.py"
FILES = 6
"""What the demo should find in `folder`, and its own poisoned file."""
JOBS = 2 * FILES + 1
PATIENCE_SECS = 60
CTRL_C_SECS = 5
"""It takes a tenth of a second; the rest is for machines that are busy."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A little of everything: plain, compressed, HTML, large, and what is no text at all."""
    top = tmp_path / "documents"
    (top / "a").mkdir(parents=True)
    (top / "b").mkdir()
    (top / "a" / "plain.txt").write_text("One small file, of no consequence.\n")
    (top / "a" / "packed.md.gz").write_bytes(gzip.compress(b"# Packed\nbut [legible](https://example.org)\n"))
    (top / "a" / "empty").touch()
    (top / "b" / "large.txt").write_text("Twelve words to a line make a large file of many lines.\n" * 18_000)
    (top / "b" / "page.html").write_text("<html><body><p>marked up</p></body></html>")
    (top / "b" / "picture.png").write_bytes(b"\x89PNG\r\n\0\0\0")
    return top


def start(*arguments: Path | str) -> subprocess.Popen[str]:
    """Start the demo; `env` sees to it that Ctrl-C works even when the tests run in the background."""
    command = ["env", "--default-signal=INT", sys.executable, DEMO, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(*arguments: Path | str) -> tuple[int, str, str]:
    """Run the demo to its end; returns its exit code, output and errors."""
    with start(*arguments) as process:
        out, err = process.communicate(timeout=PATIENCE_SECS)
    return process.returncode, out, err


def test_every_file_is_ingested_whatever_goes_wrong_on_the_way(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "queue"
    Queue.open(path).close()  # what a run leaves that ended before its first job
    code, out, err = run(folder, "--queue", path)
    assert (code, err) == (0, "")
    assert f"\n{JOBS} jobs in " in out
    assert "Dead after 3 attempts: ingest:text" in out
    assert "crashed-worker died with 3 leases; 3 were taken back" in out
    assert "LeaseConflict: job " in out
    assert "retried" in out.partition("The life of job")[2]
    assert f"jobs list --path {os.path.relpath(path)}" in out
    with Queue.open(path, create=False) as queue:
        assert queue.counts()[JobState.COMPLETED] == sum(queue.counts().values()) == JOBS
        assert queue.counts(Scope.named("library"))[JobState.COMPLETED] == 6
        assert queue.counts(Scope.named("archive"))[JobState.COMPLETED] == 6
        assert len(queue.list(kinds=Exact("embed"))) == FILES
        (large,) = [job for job in queue.list(kinds="ingest:") if job.payload.endswith(b"large.txt")]
        assert "checkpoint" in [event.transition for event in large.events]


def test_ctrl_c_leaves_a_queue_that_can_be_read_and_the_next_run_replaces(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "queue"
    with start(folder, "--queue", path) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Ingesting")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=CTRL_C_SECS)
    assert (process.returncode, err) == (130, "")
    assert "Interrupted: " in out
    with Queue.open(path, create=False) as queue:
        left = sum(queue.counts().values())
    assert left <= JOBS
    code, out, err = run(folder, "--queue", path)
    assert (code, err) == (0, "")
    assert f"\n{JOBS} jobs in " in out


def test_a_queue_that_is_not_the_demos_is_left_alone(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "queue"
    with Queue.open(path) as queue:
        job = queue.enqueue(Scope.named("library"), "ingest:text", b"precious")
    code, out, err = run(folder, "--queue", path)
    assert (code, out) == (1, "")
    assert err == f"demo: {path} holds a queue that is not the demo's; name another directory with --queue\n"
    with Queue.open(path, create=False) as queue:
        assert queue.find(job.job_id).payload == b"precious"


def test_a_queue_in_use_is_left_alone(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "queue"
    with Queue.open(path):
        code, out, err = run(folder, "--queue", path)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert str(os.getpid()) in err


def test_a_directory_of_other_files_is_left_alone(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "queue"
    path.mkdir()
    (path / "precious").touch()
    code, out, err = run(folder, "--queue", path)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert [entry.name for entry in path.iterdir()] == ["precious"]


@pytest.mark.parametrize("name", ["missing", "empty", "documents/a/plain.txt"])
def test_a_path_without_files_is_one_clear_line(folder: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    code, out, err = run(tmp_path / name, "--queue", tmp_path / "queue")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("demo: ")
    assert str(tmp_path / name) in err
    assert not (tmp_path / "queue").exists()
