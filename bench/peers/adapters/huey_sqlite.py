"""Huey on SQLite, at the level of its storage: enqueue and dequeue, without its task registry and serializer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from bench.peers.protocol import Client, Durability, Held, Peer, Settings


class HueySqlite(Peer):
    name = "Huey on SQLite"
    acknowledges = False
    settings = Settings(
        sync="`SqliteHuey(fsync=True)`: WAL, `synchronous=FULL`",
        os="`SqliteHuey(fsync=False)`: WAL, `synchronous=OFF`",
    )
    apart = (
        "no leases and no acknowledgement: `dequeue` deletes the job, and a worker that dies has lost it, so it makes "
        "two writes where the others make three. The bar does not apply to it"
    )

    def version(self) -> str:
        import sqlite3

        return f"{version('huey')}, SQLite {sqlite3.sqlite_version}"

    @contextmanager
    def open(self, directory: Path, durability: Durability) -> Iterator[Callable[[], Client]]:
        from huey import SqliteHuey

        huey = SqliteHuey("jobs", filename=str(directory / "huey.db"), fsync=durability is Durability.SYNC)
        try:
            yield lambda: HueyClient(huey.storage)
        finally:
            huey.storage.close()


class HueyClient(Client):
    def __init__(self, storage) -> None:
        self.storage = storage

    def enqueue(self, payloads: Sequence[bytes]) -> None:
        for payload in payloads:
            self.storage.enqueue(payload)

    def lease(self, n: int) -> Sequence[Held]:
        held: list[Held] = []
        while len(held) < n and (payload := self.storage.dequeue()) is not None:
            held.append((None, payload))
        return held

    def complete(self, held: Sequence[Held]) -> None:
        """Do nothing: the job went when it was taken."""

    def left(self) -> int:
        return self.storage.queue_size()
