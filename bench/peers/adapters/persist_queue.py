"""persist-queue's SQLiteAckQueue: put, get and ack, each its own transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from importlib.metadata import version
from pathlib import Path

from bench.peers.protocol import Client, Durability, Held, Peer, Settings, expect

SYNCHRONOUS = {Durability.SYNC: "FULL", Durability.OS: "OFF"}
CLEAR_EVERY = 1000  # its `get` walks the acknowledged rows in front, so a program that runs for long must clear them


class PersistQueue(Peer):
    name = "persist-queue"
    settings = Settings(
        sync="WAL, `synchronous=FULL` (SQLite's default)",
        os="WAL, `synchronous=OFF` (set by the harness on the library's private connection)",
    )
    apart = (
        "no priorities, no lease deadline, no fencing token: a second process that opens the file takes back every "
        f"lease. Acknowledged rows are cleared every {CLEAR_EVERY:,} jobs, as its documentation asks"
    )

    def version(self) -> str:
        import sqlite3

        return f"{version('persist-queue')}, SQLite {sqlite3.sqlite_version}"

    @contextmanager
    def open(self, directory: Path, durability: Durability) -> Iterator[Callable[[], Client]]:
        from persistqueue import SQLiteAckQueue

        with closing(SQLiteAckQueue(str(directory / "persist-queue"), multithreading=True)) as queue:
            queue._putter.execute(f"PRAGMA synchronous = {SYNCHRONOUS[durability]}")
            yield lambda: PersistQueueClient(queue)


class PersistQueueClient(Client):
    def __init__(self, queue) -> None:
        self.queue = queue
        self.acknowledged = 0

    def enqueue(self, payloads: Sequence[bytes]) -> None:
        for payload in payloads:
            self.queue.put(payload)

    def lease(self, n: int) -> Sequence[Held]:
        from persistqueue import Empty

        held: list[Held] = []
        while len(held) < n:
            try:
                item = self.queue.get(block=False, raw=True)
            except Empty:
                break
            held.append((item["pqid"], item["data"]))
        return held

    def complete(self, held: Sequence[Held]) -> None:
        for row_id, _ in held:
            expect(self.queue.ack(id=row_id) == row_id, f"ack of {row_id} was refused")
            self.acknowledged += 1
            if self.acknowledged % CLEAR_EVERY == 0:
                self.queue.clear_acked_data(max_delete=CLEAR_EVERY, keep_latest=0)

    def left(self) -> int:
        return self.queue.active_size()
