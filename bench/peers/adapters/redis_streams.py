"""Redis streams: a consumer group leases with XREADGROUP and acknowledges with XACK."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from itertools import count
from pathlib import Path

from bench.peers.protocol import Client, Durability, Held, Peer, Settings, expect
from bench.peers.server import accepts, ask_version, find_program, running

STREAM, GROUP, FIELD = b"jobs", b"workers", b"p"
# No snapshot and no rewrite of the log while it is measured; memory is bounded, and a full one is an error.
FIXED = ["--port", "0", "--appendonly", "yes", "--auto-aof-rewrite-percentage", "0", "--maxmemory", "512mb"]
FIXED += ["--maxmemory-policy", "noeviction"]
APPENDFSYNC = {Durability.SYNC: "always", Durability.OS: "no"}


class RedisStreams(Peer):
    name = "Redis streams"
    batches = True
    is_server = True
    settings = Settings(
        sync="`appendonly yes`, `appendfsync always`",
        os="`appendonly yes`, `appendfsync no`",
    )
    batch_means = "50 `XADD` in one pipeline, `XREADGROUP COUNT 50`, one `XACK` of 50 ids"
    apart = "no priorities, no fencing token; acknowledged entries stay in the stream; the whole queue is in memory"

    def version(self) -> str:
        return f"{ask_version([find_program('redis-server'), '--version'])}, redis-py {version('redis')} with hiredis"

    @contextmanager
    def open(self, directory: Path, durability: Durability) -> Iterator[Callable[[], Client]]:
        import redis

        address = directory / "socket"
        command = [find_program("redis-server"), "--dir", str(directory), "--unixsocket", str(address), *FIXED]
        command += ["--save", "", "--appendfsync", APPENDFSYNC[durability]]
        with running(command, lambda: accepts(address), directory / "log"):
            names = count()

            def connect() -> Client:
                return RedisClient(redis.Redis(unix_socket_path=str(address)), b"worker-%d" % next(names))

            with redis.Redis(unix_socket_path=str(address)) as first:
                first.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
            yield connect


class RedisClient(Client):
    def __init__(self, redis, name: bytes) -> None:
        self.redis = redis
        self.name = name

    def enqueue(self, payloads: Sequence[bytes]) -> None:
        if len(payloads) == 1:
            self.redis.xadd(STREAM, {FIELD: payloads[0]})
            return
        pipeline = self.redis.pipeline(transaction=False)
        for payload in payloads:
            pipeline.xadd(STREAM, {FIELD: payload})
        pipeline.execute()

    def lease(self, n: int) -> Sequence[Held]:
        answer = self.redis.xreadgroup(GROUP, self.name, {STREAM: ">"}, count=n)
        if not answer:
            return []
        entries = answer[0][1]
        return [(entry_id, fields[FIELD]) for entry_id, fields in entries]

    def complete(self, held: Sequence[Held]) -> None:
        acknowledged = self.redis.xack(STREAM, GROUP, *[entry_id for entry_id, _ in held])
        expect(acknowledged == len(held), f"XACK of {len(held)} acknowledged {acknowledged}")

    def left(self) -> int:
        (group,) = self.redis.xinfo_groups(STREAM)
        return group["pending"] + group["lag"]

    def close(self) -> None:
        self.redis.close()
