"""Measure one cell: start a peer on an empty directory, enqueue jobs, then lease and complete them."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier

from bench.peers.protocol import Client, Durability, Peer, expect

PAYLOAD_BYTES = 300
WARM_UP_CALLS = 20
POOL_JOBS = 1000  # distinct payloads, made before the clock runs


@dataclass(frozen=True)
class Shape:
    """A column of the table: how the calls are made."""

    durability: Durability
    batch: int  # jobs in one call
    clients: int

    def fits(self, peer: Peer, *, is_subject: bool) -> bool:
        return (self.batch == 1 or peer.batches) and (self.clients == 1 or peer.is_server or is_subject)


@dataclass(frozen=True)
class Cell:
    """Seconds for one job in the two halves of its life, and together."""

    enqueue_s: float
    finish_s: float

    @property
    def life_s(self) -> float:
        return self.enqueue_s + self.finish_s


def measure(peer: Peer, shape: Shape, directory: Path, jobs: int, limit_s: float) -> Cell:
    """Take the time of up to `jobs` jobs; each half stops after `limit_s`, so that a slow peer costs no more.

    A peer that is cut off has had fewer jobs in its store than the others, which is in its favour.
    """
    with peer.open(directory, shape.durability) as connect, ExitStack() as closing:
        clients = []
        for _ in range(shape.clients):
            clients.append(connect())
            closing.callback(clients[-1].close)
        for client in clients:
            warm_up(client, shape.batch)
        os.sync()  # what earlier cells and the start-up left for the disk is not this cell's to wait for
        gc.collect()
        share = max(1, jobs // shape.clients // shape.batch)
        pool = payloads(POOL_JOBS + shape.batch)
        enqueued, enqueue_s = together(clients, lambda client: enqueue(client, pool, share, shape.batch, limit_s))
        finished, finish_s = together(clients, lambda client: finish(client, shape.batch, limit_s))
        expect(0 < finished <= enqueued, f"{enqueued} jobs went in, {finished} came out")
        left = clients[0].left()
        expect(left == enqueued - finished, f"{enqueued} jobs went in, {finished} came out, {left} are left")
    return Cell(enqueue_s / enqueued, finish_s / finished)


def warm_up(client: Client, batch: int) -> None:
    """Have connections, statements and pages ready before the clock runs."""
    for _ in range(WARM_UP_CALLS):
        client.enqueue(payloads(batch))
        held = client.lease(batch)
        expect(len(held) == batch, f"warm-up: {batch} jobs went in, {len(held)} came out")
        client.complete(held)


def enqueue(client: Client, pool: Sequence[bytes], calls: int, batch: int, limit_s: float) -> int:
    """Make up to `calls` calls; return the number of jobs."""
    deadline = time.perf_counter() + limit_s
    made = 0
    while made < calls and time.perf_counter() < deadline:
        start = made * batch % POOL_JOBS
        client.enqueue(pool[start : start + batch])
        made += 1
    return made * batch


def finish(client: Client, batch: int, limit_s: float) -> int:
    """Lease and complete until nothing is left; return the number of jobs."""
    deadline = time.perf_counter() + limit_s
    finished = 0
    while time.perf_counter() < deadline:
        held = client.lease(batch)
        if not held:
            break
        client.complete(held)
        finished += len(held)
    return finished


def together(clients: Sequence[Client], work: Callable[[Client], int]) -> tuple[int, float]:
    """Let every client do the work in a thread of its own; return jobs in all and seconds from start to last end."""
    if len(clients) == 1:
        started = time.perf_counter()
        return work(clients[0]), time.perf_counter() - started
    start = Barrier(len(clients) + 1)

    def run(client: Client) -> int:
        start.wait()
        return work(client)

    with ThreadPoolExecutor(len(clients)) as pool:
        running = [pool.submit(run, client) for client in clients]
        start.wait()
        started = time.perf_counter()
        jobs = sum(future.result() for future in running)
        return jobs, time.perf_counter() - started


def payloads(n: int) -> list[bytes]:
    """Make distinct payloads that do not compress."""
    return [os.urandom(PAYLOAD_BYTES) for _ in range(n)]
