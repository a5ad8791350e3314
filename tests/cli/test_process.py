"""The command as a process: what only a real terminal, a real pipe and a real signal can show."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from telha_queue import __version__
from telha_queue.job import JobSpec
from telha_queue.queue import Queue
from telha_queue.scope import Scope

Start = Callable[..., "subprocess.Popen[str]"]
COMMAND = [sys.executable, "-m", "telha_queue.cli"]
ACME = Scope.tenant(UUID(int=5), UUID(int=7))
HOSTILE = "\x1b[2J[red]boom"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def job_id(opened: Callable[..., Queue], kill_job: Callable[..., object]) -> UUID:
    """A dead job with a hostile error and a kind too long for its column."""
    with opened() as queue:
        dead = kill_job(queue, HOSTILE, kind="ingest:" + "markdown" * 10, scope=ACME)
        return dead.job_id  # type: ignore[attr-defined, no-any-return]


def on_terminal(start: Start, *words: object, **environ: str) -> str:
    """Run the command with a terminal of 80 columns as its output; returns what it wrote there."""
    master, slave = pty.openpty()
    env = {**os.environ, "COLUMNS": "80", "TERM": "xterm-256color", **environ}
    process = start(*words, stdout=slave, env=env)
    os.close(slave)
    shown = b""
    try:
        while chunk := os.read(master, 65536):
            shown += chunk
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(master)
    assert process.wait(20) == 0, process.communicate()
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("command", ["list", "show", "stats"])
def test_a_terminal_of_80_columns_gets_colour_whole_ids_and_no_escape_of_a_jobs(
    telha_process: Start, job_id: UUID, command: str
) -> None:
    words = {"list": ("jobs", "list"), "show": ("jobs", "show", job_id), "stats": ("stats",)}[command]
    shown = on_terminal(telha_process, *words)
    plain = COLOUR.sub("", shown)
    assert plain != shown
    assert "\x1b" not in plain
    assert all(len(line) <= 80 for line in plain.splitlines())
    assert str(ACME.tenant_id) in plain
    assert str(ACME.space_id) in plain
    if command != "stats":
        assert str(job_id) in plain
        assert r"\x1b[2J[red]boom" in plain


def test_no_color_means_no_escape_at_all(telha_process: Start, job_id: UUID) -> None:
    assert "\x1b" not in on_terminal(telha_process, "jobs", "show", job_id, NO_COLOR="1")


def test_a_pipe_gets_neither_colour_nor_rich(telha_process: Start, job_id: UUID) -> None:
    out, _ = telha_process("jobs", "list", env={**os.environ, "FORCE_COLOR": "1"}).communicate(timeout=20)
    assert "\x1b" not in out


@pytest.mark.parametrize("words", [("--version",), ("jobs", "list", "--json"), ("jobs", "list"), ("stats", "--json")])
def test_rich_is_imported_for_a_terminal_only(path: Path, job_id: UUID, words: tuple[str, ...]) -> None:
    program = "import atexit, sys; atexit.register(lambda: print('rich' in sys.modules, file=sys.stderr))"
    program += "; from telha_queue.cli import main; main()"
    ran = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=True, timeout=20
    )
    assert ran.stderr == "False\n"
    assert ran.stdout


@pytest.mark.usefixtures("job_id")
@pytest.mark.parametrize("missing", ["click", "rich"])
def test_without_its_extra_one_line_names_it(missing: str) -> None:
    program = f"import sys; sys.modules[{missing!r}] = None; sys.stdout.isatty = lambda: True"
    program += "; from telha_queue.cli import main; main()"
    command = [sys.executable, "-c", program, "stats"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    assert ran.returncode == 2
    assert ran.stderr == "telha needs its extra: pip install 'telha-queue[cli]'\n"


def test_version_is_printed(telha_process: Start) -> None:
    assert telha_process("--version").communicate(timeout=20) == (f"telha {__version__}\n", "")


def test_text_that_the_terminals_encoding_lacks_is_no_error(telha_process: Start) -> None:
    env = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    process = telha_process("jobs", "enqueue", "任務", "--create", "--json", env=env)
    assert process.wait(20) == 0
    process = telha_process("jobs", "list", env=env)
    assert r"\u4efb\u52d9" in process.communicate(timeout=20)[0]


def test_a_reader_that_goes_away_ends_the_command_quietly(telha_process: Start, opened: Callable[..., Queue]) -> None:
    with opened() as queue:
        queue.enqueue_many(ACME, [JobSpec("x")] * 1000)
    read, write = os.pipe()
    os.close(read)
    process = telha_process("jobs", "list", "--json", "--limit", 1000, stdout=write)
    os.close(write)
    _, complaint = process.communicate(timeout=20)
    assert (process.returncode, complaint) == (141, "")


def test_a_full_disk_under_the_output_is_one_line(telha_process: Start, job_id: UUID) -> None:
    with Path("/dev/full").open("w") as full:
        process = telha_process("jobs", "list", stdout=full)
        _, complaint = process.communicate(timeout=20)
    assert (process.returncode, complaint) == (1, "telha: [Errno 28] No space left on device\n")


@pytest.mark.parametrize(
    ("closed", "code", "complaint"),
    [("<&-", 0, "no jobs match\n"), (">&-", 1, "telha: standard output is closed\n"), ("2>&-", 0, "")],
)
def test_a_standard_stream_that_is_closed_is_no_traceback(job_id: UUID, closed: str, code: int, complaint: str) -> None:
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND, "jobs", "list", "--state", "pending"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    assert (ran.returncode, ran.stdout, ran.stderr) == (code, "", complaint)


def test_ctrl_c_while_the_payload_is_read_ends_with_130_and_no_queue(
    telha_process: Start, path: Path, tmp_path: Path
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    process = telha_process("jobs", "enqueue", "x", "--create", "--payload-file", fifo)
    complaint = ""
    with fifo.open("wb"):  # returns when the command has opened the other end
        for _ in range(100):  # Python misses a signal that comes just before a read; a person presses the key again
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                _, complaint = process.communicate(timeout=0.2)
                break
    assert process.returncode == 130
    assert "Traceback" not in complaint
    assert not path.exists()
