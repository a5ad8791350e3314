"""The queue that one writes in an afternoon over a RocksDB binding: JSON records, and a scan from the head."""

from __future__ import annotations

import json
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from importlib.metadata import version
from pathlib import Path
from uuid import uuid4

from bench.peers.protocol import LEASE_SECS, Client, Durability, Held, Peer, Settings, expect

PENDING, LEASED, DONE = b"p", b"r", b"s"
PRIORITY = 128


class NaiveRocksDB(Peer):
    name = "naive queue on rocksdict"
    batches = True
    settings = Settings(
        sync="log on, `WriteOptions.sync = True`, otherwise the binding's defaults",
        os="log on, `WriteOptions.sync = False`",
    )
    batch_means = "50 jobs in one `WriteBatch`"
    apart = (
        "written for this comparison: key = state, priority, time, id; a lease scans from the head, and a transition "
        "is a delete and a put in one `WriteBatch`. One thread only, and no reaper; its leases slow down as it runs"
    )

    def version(self) -> str:
        return version("rocksdict")

    @contextmanager
    def open(self, directory: Path, durability: Durability) -> Iterator[Callable[[], Client]]:
        from rocksdict import Options, Rdict, WriteBatch, WriteOptions

        options = WriteOptions()
        options.sync = durability is Durability.SYNC
        with closing(Rdict(str(directory / "rocksdb"), Options(raw_mode=True))) as db:
            db.set_write_options(options)
            yield lambda: NaiveClient(db, lambda: WriteBatch(raw_mode=True))


class NaiveClient(Client):
    def __init__(self, db, new_batch: Callable) -> None:
        self.db = db
        self.new_batch = new_batch

    def enqueue(self, payloads: Sequence[bytes]) -> None:
        batch = self.new_batch()
        for payload in payloads:
            job_id = uuid4()
            record = {
                "id": str(job_id),
                "kind": "job",
                "payload": b64encode(payload).decode(),
                "attempts": 0,
                "worker": None,
                "deadline": None,
            }
            key = bytes([PRIORITY]) + time.time_ns().to_bytes(8, "big") + job_id.bytes
            batch.put(PENDING + key, json.dumps(record).encode())
        self.db.write(batch)

    def lease(self, n: int) -> Sequence[Held]:
        held: list[Held] = []
        batch = self.new_batch()
        for key, value in self._head(PENDING, n):
            record = json.loads(value)
            record.update(worker="worker", deadline=time.time() + LEASE_SECS)
            batch.delete(key)
            batch.put(LEASED + key[1:], json.dumps(record).encode())
            held.append(((key[1:], record), b64decode(record["payload"])))
        if held:
            self.db.write(batch)
        return held

    def complete(self, held: Sequence[Held]) -> None:
        batch = self.new_batch()
        for (key, record), _ in held:
            expect(self.db.get(LEASED + key) is not None, "the lease is gone")
            batch.delete(LEASED + key)
            batch.put(DONE + key, json.dumps(record).encode())
        self.db.write(batch)

    def left(self) -> int:
        return sum(1 for state in (PENDING, LEASED) for _ in self._head(state, 1_000_000))

    def _head(self, state: bytes, n: int) -> Iterator[tuple[bytes, bytes]]:
        rows = self.db.iter()
        rows.seek(state)
        while n and rows.valid() and rows.key().startswith(state):
            yield rows.key(), rows.value()
            rows.next()
            n -= 1
