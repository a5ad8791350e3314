"""The comparison with other queues is honest: its own adapter works, its checks find liars, its servers stop.

The other peers are put through the same checks by `make bench-peers`, which installs them and checks before it
measures.
"""

import os
import signal
import sys
from contextlib import contextmanager

import pytest

from bench.peers.adapters import PEERS, SUBJECT
from bench.peers.measure import Cell, Shape, measure
from bench.peers.protocol import Client, Durability, Peer, PeerFailed, Settings
from bench.peers.rounds import ratios, rotated
from bench.peers.server import accepts, running
from bench.peers.smoke import smoke

SHAPE = Shape(Durability.OS, 1, 1)


@pytest.mark.parametrize("durability", Durability)
def test_our_own_adapter_keeps_the_promises(durability, tmp_path):
    smoke(SUBJECT, durability, tmp_path)


@pytest.mark.parametrize("shape", [SHAPE, Shape(Durability.OS, 50, 1), Shape(Durability.OS, 1, 8)])
def test_a_cell_times_both_halves(shape, tmp_path):
    cell = measure(SUBJECT, shape, tmp_path, jobs=100, limit_s=10)
    assert 0 < cell.enqueue_s < cell.life_s > cell.finish_s > 0


class ListClient(Client):
    """An honest queue in memory, but for the one fault that it is given."""

    def __init__(self, fault):
        self.fault = fault
        self.waiting = []
        self.leased = []

    def enqueue(self, payloads):
        self.waiting += payloads[1:] if self.fault == "loses" and len(payloads) > 1 else payloads

    def lease(self, n):
        taken, self.waiting = self.waiting[:n], self.waiting[n:]
        if self.fault == "garbles":
            taken = [payload[:-1] for payload in taken]
        self.leased += taken
        return [(payload, payload) for payload in taken]

    def complete(self, held):
        for handle, _ in held:
            if self.fault != "keeps":
                self.leased.remove(handle)

    def left(self):
        return len(self.waiting) + (0 if self.fault == "forgets" else len(self.leased))


class ListPeer(Peer):
    name = "list"
    batches = True
    settings = Settings("", "")
    apart = ""

    def __init__(self, fault=None):
        self.fault = fault

    def version(self):
        return "1"

    @contextmanager
    def open(self, directory, durability):
        yield lambda: ListClient(self.fault)


def test_an_honest_peer_passes(tmp_path):
    smoke(ListPeer(), Durability.OS, tmp_path)


@pytest.mark.parametrize("fault", ["loses", "garbles", "keeps", "forgets"])
def test_a_peer_that_does_less_than_a_queue_is_found(fault, tmp_path):
    with pytest.raises(PeerFailed):
        smoke(ListPeer(fault), Durability.OS, tmp_path)


def test_a_measurement_counts_what_is_left(tmp_path):
    with pytest.raises(PeerFailed, match="left"):
        measure(ListPeer("keeps"), SHAPE, tmp_path, jobs=10, limit_s=10)


def test_a_ratio_compares_cells_of_one_round():
    cells = {(SHAPE, "us"): [Cell(1, 1), Cell(10, 10)], (SHAPE, "them"): [Cell(6, 6), Cell(30, 30)]}
    assert ratios(cells, SHAPE, "them", "us") == [3, 6]
    assert ratios(cells, SHAPE, "absent", "us") == []


def test_every_round_has_everybody_and_begins_with_another():
    everybody = [SUBJECT, *PEERS]
    orders = [list(rotated(everybody, number)) for number in range(3)]
    assert all(sorted(order, key=id) == sorted(everybody, key=id) for order in orders)
    assert len({order[0].name for order in orders}) == 3


SERVER = """
import os, socket
listening = socket.socket(socket.AF_UNIX)
listening.bind("socket")
print(os.getpid(), flush=True)  # before anybody can connect, so that who connects finds it in the log
listening.listen()
while True:
    listening.accept()
"""


def interrupt(command, address, log):
    with running(command, lambda: accepts(address), log, stop=signal.SIGTERM):
        os.kill(int(log.read_text()), 0)  # it is there
        raise KeyboardInterrupt


def test_a_server_is_stopped_when_its_block_raises(tmp_path):
    address, log = tmp_path / "socket", tmp_path / "log"
    with pytest.raises(KeyboardInterrupt):
        interrupt([sys.executable, "-c", SERVER], address, log)
    assert not accepts(address)
    with pytest.raises(ProcessLookupError):
        os.kill(int(log.read_text()), 0)


def test_a_server_that_does_not_start_says_why(tmp_path):
    with (
        pytest.raises(PeerFailed, match="no such thing"),
        running([sys.executable, "-c", "raise SystemExit('no such thing')"], lambda: False, tmp_path / "log"),
    ):
        pytest.fail("it did start")
