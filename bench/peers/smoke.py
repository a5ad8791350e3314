"""Does an adapter keep what every queue promises? A fast peer that loses jobs would win any comparison."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from bench.peers.measure import payloads
from bench.peers.protocol import Client, Durability, Peer, expect

JOBS = 50


def smoke(peer: Peer, durability: Durability, directory: Path) -> None:
    """Raise PeerFailed unless every payload comes back once and acknowledged jobs are gone."""
    with peer.open(directory, durability) as connect:
        client = connect()
        try:
            for batch in (1, 7, JOBS) if peer.batches else (1,):
                life_cycle(client, batch, peer)
        finally:
            client.close()


def life_cycle(client: Client, batch: int, peer: Peer) -> None:
    expect(client.left() == 0, f"{client.left()} jobs in an empty queue")
    sent = payloads(JOBS)
    for start in range(0, JOBS, batch):
        client.enqueue(sent[start : start + batch])
    expect(client.left() == JOBS, f"{JOBS} jobs went in, {client.left()} are there")
    seen = []
    while held := client.lease(batch):
        expect(len(held) <= batch, f"asked for {batch} jobs, got {len(held)}")
        seen += held
    expect(Counter(bytes(payload) for _, payload in seen) == Counter(sent), "the payloads are not those that went in")
    if peer.acknowledges:
        expect(client.left() == JOBS, f"leased jobs are gone before they are acknowledged: {client.left()} left")
    for start in range(0, len(seen), batch):
        client.complete(seen[start : start + batch])
    expect(client.left() == 0, f"all are acknowledged, {client.left()} are left")
    expect(not client.lease(batch), "an acknowledged job came back")
