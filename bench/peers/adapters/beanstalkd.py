"""beanstalkd with its binlog, spoken to directly: a client library would only add to its cost."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.peers.protocol import LEASE_SECS, Client, Durability, Held, Peer, Settings, expect
from bench.peers.server import accepts, ask_version, find_program, running

FLAGS = {Durability.SYNC: ["-f0"], Durability.OS: ["-F"]}


class Beanstalkd(Peer):
    name = "beanstalkd"
    batches = True
    is_server = True
    settings = Settings(sync="`-b DIR -f0`", os="`-b DIR -F`")
    batch_means = "50 commands in one send (pipelining); each is executed and logged by itself"
    apart = (
        "a lease is not logged: after a restart every job that was held is ready again, so it makes two log writes "
        "where the others make three; no fencing token; a deleted job is gone; the whole queue is in memory"
    )

    def version(self) -> str:
        return ask_version([find_program("beanstalkd"), "-v"])

    @contextmanager
    def open(self, directory: Path, durability: Durability) -> Iterator[Callable[[], Client]]:
        binlog = directory / "binlog"
        binlog.mkdir()
        address = directory / "socket"
        command = [find_program("beanstalkd"), "-b", str(binlog), *FLAGS[durability], "-l", f"unix:{address}"]
        with running(command, lambda: accepts(address), directory / "log"):
            yield lambda: BeanstalkClient(address)


class BeanstalkClient(Client):
    def __init__(self, address: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(address))
        self.replies = self.socket.makefile("rb")

    def enqueue(self, payloads: Sequence[bytes]) -> None:
        self.socket.sendall(
            b"".join(b"put 128 0 %d %d\r\n%b\r\n" % (LEASE_SECS, len(payload), payload) for payload in payloads)
        )
        for _ in payloads:
            reply = self.replies.readline()
            expect(reply.startswith(b"INSERTED "), f"put: {reply!r}")

    def lease(self, n: int) -> Sequence[Held]:
        self.socket.sendall(b"reserve-with-timeout 0\r\n" * n)
        held: list[Held] = []
        for _ in range(n):
            word, *facts = self.replies.readline().split()
            if word == b"RESERVED":
                job_id, length = facts
                held.append((job_id, self.replies.read(int(length) + 2)[:-2]))
            else:
                expect(word == b"TIMED_OUT", f"reserve: {word!r}")
        return held

    def complete(self, held: Sequence[Held]) -> None:
        self.socket.sendall(b"".join(b"delete %b\r\n" % job_id for job_id, _ in held))
        for _ in held:
            reply = self.replies.readline()
            expect(reply == b"DELETED\r\n", f"delete: {reply!r}")

    def left(self) -> int:
        self.socket.sendall(b"stats-tube default\r\n")
        _, length = self.replies.readline().split()
        told = self.replies.read(int(length) + 2)
        return sum(int(number) for number in re.findall(rb"current-jobs-(?:ready|reserved): (\d+)", told))

    def close(self) -> None:
        self.replies.close()
        self.socket.close()
