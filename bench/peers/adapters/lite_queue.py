"""litequeue: put, pop and done on one SQLite connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path

from bench.peers.protocol import Client, Durability, Held, Peer, Settings

SYNCHRONOUS = {Durability.SYNC: "FULL", Durability.OS: "OFF"}


class LiteQueue(Peer):
    name = "litequeue"
    batches = True
    settings = Settings(
        sync="WAL, `synchronous=FULL` (set by the harness; the library sets NORMAL)",
        os="WAL, `synchronous=OFF` (set by the harness)",
    )
    batch_means = "`put` and `done` 50 at a time within `transaction()`; `pop` has no form for many"
    apart = (
        "no lease deadline, no fencing token; finished jobs stay in the table. Each `pop` sorts all waiting jobs, so "
        "its figures grow with the backlog, which is larger where `put` is faster"
    )

    def version(self) -> str:
        import sqlite3

        return f"{version('litequeue')}, SQLite {sqlite3.sqlite_version}"

    @contextmanager
    def open(self, directory: Path, durability: Durability) -> Iterator[Callable[[], Client]]:
        import litequeue

        with closing(litequeue.LiteQueue(directory / "litequeue.db")) as queue:
            queue.conn.execute(f"PRAGMA synchronous = {SYNCHRONOUS[durability]}")
            yield lambda: LiteQueueClient(queue)


class LiteQueueClient(Client):
    def __init__(self, queue) -> None:
        self.queue = queue

    def enqueue(self, payloads: Sequence[bytes]) -> None:
        with self._together(len(payloads)):
            for payload in payloads:
                self.queue.put(payload)

    def lease(self, n: int) -> Sequence[Held]:
        held: list[Held] = []
        while len(held) < n and (message := self.queue.pop()) is not None:
            held.append((message.message_id, message.data))
        return held

    def complete(self, held: Sequence[Held]) -> None:
        with self._together(len(held)):
            for message_id, _ in held:
                self.queue.done(message_id)

    def left(self) -> int:
        return self.queue.qsize()

    def _together(self, n: int):
        return self.queue.transaction() if n > 1 else nullcontext()
