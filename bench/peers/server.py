"""Start a peer's server on a unix socket and stop it again, whatever happens in between."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.peers.protocol import PeerFailed, expect

START_SECS = 20
STOP_SECS = 10
UNPACKED = Path(__file__).resolve().parents[2] / "build" / "peers"  # where servers.sh puts what it does not install


@contextmanager
def running(
    command: Sequence[str],
    is_ready: Callable[[], bool],
    log: Path,
    *,
    user: str | None = None,
    stop: int = signal.SIGTERM,
) -> Iterator[None]:
    """Run a server until the block ends, which begins when the server is ready.

    A session of its own keeps Ctrl-C in a terminal from it, so that it is stopped in order: client first.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(
            as_user(user, command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=log.parent,
            start_new_session=True,
        )
    try:
        wait_until_ready(process, Path(command[0]).name, is_ready, log)
        yield
    finally:
        end(process, stop)


def as_user(user: str | None, command: Sequence[str]) -> list[str]:
    """Prefix a command with what makes it die with this process, as that user if one is given.

    The death signal is for the case in which nobody is left to stop the server: a killed harness.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        expect(user is None, "setpriv is missing; it is needed to run the server as another user")
        return list(command)
    identity = []
    if user:
        entry = pwd.getpwnam(user)
        identity = [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]
    return [setpriv, *identity, "--pdeathsig", "KILL", *command]


def wait_until_ready(process: subprocess.Popen[bytes], name: str, is_ready: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + START_SECS
    while not is_ready():
        if process.poll() is not None or time.monotonic() > deadline:
            tail = log.read_text(errors="replace").strip().splitlines()[-3:]
            raise PeerFailed(f"{name} did not start: {' / '.join(tail)}")
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.01)


def accepts(address: Path) -> bool:
    """Tell whether somebody listens on this socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(address)) == 0


def end(process: subprocess.Popen[bytes], stop: int) -> None:
    """Ask once, then insist. Only ever the process that was started here."""
    with suppress(ProcessLookupError):
        process.send_signal(stop)
    try:
        process.wait(STOP_SECS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def find_program(*names: str) -> str:
    """Find a server program: the first of its names that is installed or that servers.sh unpacked."""
    folders = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:{UNPACKED}/usr/bin:{UNPACKED}/usr/sbin"
    for name in names:
        found = shutil.which(name, path=folders)
        if found:
            return found
    raise PeerFailed(f"no program `{names[0]}` (`make bench-peers` gets it; see bench/peers/servers.sh)")


def ask_version(command: Sequence[str]) -> str:
    """Run `program --version`, whatever its spelling, and pick the number out of the answer."""
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=START_SECS, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise PeerFailed(f"`{Path(command[0]).name}` does not run here: {type(error).__name__}") from error
    number = re.search(r"\d+\.\d[\w.]*", told)
    return number.group() if number else told.strip()


def stop_on_sigterm() -> None:
    """Make SIGTERM unwind like Ctrl-C, so that servers stop and temporary directories go."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
