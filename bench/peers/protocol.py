"""What the comparison asks of a peer: three verbs, the durability classes it offers, and what sets it apart."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

LEASE_SECS = 300  # nobody's lease may expire while it is measured
Held = tuple[Any, bytes]  # what `complete` wants back, and the payload


class Durability(StrEnum):
    """When a call counts as done. The words are those of `QueueConfig.durability`."""

    SYNC = "sync"
    OS = "os"


class Settings(NamedTuple):
    """What a peer is told in each class, for the page."""

    sync: str
    os: str


class PeerFailed(Exception):
    """A peer did not do what a queue must; its figures would mean nothing."""


class Client(ABC):
    """One user of a peer: a connection, or the shared object that an embedded queue is. Used by one thread.

    A call with one job uses the peer's verb for one job; with more, its verb for many.
    """

    @abstractmethod
    def enqueue(self, payloads: Sequence[bytes]) -> None: ...

    @abstractmethod
    def lease(self, n: int) -> Sequence[Held]:
        """Take up to `n` jobs, payloads read; an empty sequence when there are none."""

    @abstractmethod
    def complete(self, held: Sequence[Held]) -> None:
        """Acknowledge. Raises PeerFailed when the peer says that the lease is lost."""

    @abstractmethod
    def left(self) -> int:
        """Count the jobs that are neither acknowledged nor lost: waiting and leased."""

    def close(self) -> None:  # noqa: B027  most have nothing to do
        """Disconnect. An embedded queue is closed by its `Peer.open`."""


class Peer(ABC):
    """One row of the table."""

    name: ClassVar[str]
    acknowledges: ClassVar[bool] = True  # has leases and acknowledgement, so the bar applies to it
    batches: ClassVar[bool] = False
    is_server: ClassVar[bool] = False  # another process, reached over a unix socket; also measured with many clients
    settings: ClassVar[Settings]
    batch_means: ClassVar[str] = "none"
    apart: ClassVar[str]  # what the ratio does not show

    @abstractmethod
    def version(self) -> str:
        """Name the version, or raise PeerFailed with the reason why the peer cannot run here."""

    @abstractmethod
    def open(self, directory: Path, durability: Durability) -> AbstractContextManager[Callable[[], Client]]:
        """Start on an empty directory; yield what makes a client; stop on the way out, whatever happens."""


def expect(is_true: bool, what: str) -> None:
    """Raise PeerFailed unless the claim holds."""
    if not is_true:
        raise PeerFailed(what)
