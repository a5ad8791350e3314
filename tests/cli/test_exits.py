"""Every documented exit code, each with one line on stderr and no traceback."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE, Popen
from uuid import uuid4

import pytest
from click.testing import Result

from telha_queue.cli import exits
from telha_queue.errors import CorruptionError, StorageError, StorageFull, UnsupportedByEngine
from telha_queue.queue import Queue

Telha = Callable[..., Result]
OWNER = """
import sys
from telha_queue.queue import Queue
with Queue.open(sys.argv[1]):
    print("open", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def empty(opened: Callable[..., Queue]) -> None:
    """A queue without jobs at the path."""
    with opened():
        pass


def ends(ran: Result, code: int, *words: str) -> None:
    assert ran.exit_code == code
    assert ran.stdout == ""
    assert ran.stderr.startswith("telha: ")
    assert ran.stderr.count("\n") == 1
    for word in words:
        assert word in ran.stderr


@pytest.mark.usefixtures("empty")
def test_1_the_queue_refused(telha: Telha) -> None:
    unknown = uuid4()
    ends(telha("jobs", "show", unknown), 1, str(unknown))
    ends(telha("jobs", "retry", unknown), 1, str(unknown))
    ends(telha("jobs", "list", "--after", unknown), 1, str(unknown))


@pytest.mark.usefixtures("empty")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("jobs", "show", "work_item:12"), "not a job id"),
        (("jobs", "show", "a\x1b[31m"), r"a\x1b[31m"),
        (("jobs", "list", "--scope", "01936f2e-7c1a-7abc-8def-0123456789"), "looks like a UUID"),
        (("jobs", "list", "--scope", "00000000-0000-0000-0000-000000000000"), "system"),
        (("jobs", "list", "--scope", ""), "scope"),
        (("jobs", "enqueue", "x", "--priority", "256"), "--priority is from 0 to 255, not 256"),
        (("jobs", "enqueue", "x", "--priority", "high"), "--priority is a whole number, from 0 to 255, not 'high'"),
        (("jobs", "enqueue", "x", "--max-attempts", "0"), "--max-attempts is from 1 to 4294967295, not 0"),
        (("jobs", "list", "--limit", "0"), "--limit is 1 or more, not 0"),
        (("jobs", "enqueue", "x", "--not-before", "soon"), "not a time"),
        (("jobs", "enqueue", "x", "--not-before", "2040-01-01", "--delay", "3"), "not both"),
        (("jobs", "enqueue", "x", "--delay", "nan"), "delay_secs"),
        (("jobs", "enqueue", "x", "--payload", "a", "--payload-file", "-"), "not both"),
        (("jobs", "enqueue", "a\nb"), "kind"),
        (("jobs", "show", str(uuid4()), "--json", "--payload"), "not both"),
    ],
)
def test_2_the_command_line_is_wrong(telha: Telha, words: tuple[str, ...], said: str) -> None:
    ends(telha(*words), 2, said)


@pytest.mark.usefixtures("empty")
def test_2_a_setting_in_the_environment_is_wrong(telha: Telha, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELHA_JOBS_LEASE_TTL_SECS", "0")
    ends(telha("stats"), 2, "lease_ttl_secs")


def test_2_no_path_is_given(telha: Telha, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TELHA_QUEUE_PATH")
    ends(telha("jobs", "list"), 2, "--path", "TELHA_QUEUE_PATH")


@pytest.mark.usefixtures("empty")
def test_path_and_json_may_stand_in_front_of_the_command(
    telha: Telha, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TELHA_QUEUE_PATH", str(path / "nowhere"))
    for words in [("--path", path, "--json", "stats"), ("--json", "info", "--path", path)]:
        assert telha(*words).stdout.startswith("{")
    for words in [("--path", path, "jobs", "reap"), ("--path", "x", "jobs", "--path", path, "reap")]:
        assert telha(*words).stdout == "0 reclaimed, 0 dead\n"
    ends(telha("--path", path, "jobs", "reap", "--path", path / "nowhere"), 4)


def test_2_options_unknown_to_click(telha: Telha, path: Path) -> None:
    assert telha("jobs", "list", "--nope").exit_code == 2
    assert telha("jobs", "list", "--state", "nope").exit_code == 2
    assert telha("nope").exit_code == 2
    assert telha("jobs", "enqueue", "x", "--create", "--payload-file", path / "none").exit_code == 2
    assert not path.exists()


@pytest.mark.usefixtures("empty")
def test_3_another_process_owns_the_directory(telha: Telha, path: Path) -> None:
    with Popen([sys.executable, "-c", OWNER, path], stdin=PIPE, stdout=PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "open\n"
        ends(telha("stats"), 3, str(path), f"process {owner.pid}", "stop that one first, or do it in that program")
        owner.communicate("")
    assert telha("stats").exit_code == 0


def test_4_there_is_no_queue_and_none_is_made(telha: Telha, path: Path) -> None:
    for words in (("jobs", "list"), ("stats",), ("info",), ("jobs", "enqueue", "x"), ("jobs", "reap")):
        ends(telha(*words), 4, str(path))
    assert not path.exists()
    path.mkdir()
    ends(telha("jobs", "list"), 4, str(path))
    assert list(path.iterdir()) == []


def test_4_the_line_says_how_a_queue_is_made_or_where_the_path_is_from(telha: Telha, path: Path) -> None:
    made = "; give --create to make one\n"
    from_variable, given = "; the path is from TELHA_QUEUE_PATH\n", "; the path is from the command line\n"
    for words, end in (
        (("jobs", "enqueue", "x"), made),
        (("jobs", "enqueue", "x", "--path", path), made),
        (("stats",), from_variable),
        (("fsck",), from_variable),
        (("fsck", path / "other"), given),
        (("stats", "--path", path), given),
        (("--path", path, "stats"), given),
        (("snapshot", path, path / "s"), given),
    ):
        ran = telha(*words)
        ends(ran, 4, "there is no queue here")
        assert ran.stderr.endswith(end), words
    path.mkdir()
    (path / "file").touch()
    assert telha("jobs", "enqueue", "x").stderr.endswith(from_variable)  # where --create would not help


def test_4_the_path_is_a_file(telha: Telha, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    ends(telha("jobs", "enqueue", "x", "--create", "--path", tmp_path / "file"), 4)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (CorruptionError("29 records are gone"), 5, "29 records are gone"),
        (StorageFull("disk full", outcome="unknown"), 5, "may or may not have been done"),
        (StorageError("bad\nluck\x1b"), 5, r"bad\nluck\x1b"),
        (UnsupportedByEngine("no"), 1, "no"),
        (OSError("odd"), 1, "odd"),
    ],
)
def test_other_errors_end_with_their_code(
    telha: Telha, path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, said: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Queue, "open", fail)
    ends(telha("stats"), code, said)


def test_130_after_ctrl_c(telha: Telha, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Queue, "open", interrupt)
    assert telha("stats").exit_code == exits.INTERRUPTED == 130
