"""Fixtures of the whole suite: engines to run it on, a clock moved by hand, threads that report back."""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import pytest

from telha_queue.config import QueueConfig
from telha_queue.engine import Engine
from telha_queue.job import JobRecord
from telha_queue.queue import Queue
from telha_queue.testing import ManualClock

T = TypeVar("T")

PATIENCE_SECS = 20
"""How long a test waits for what should happen at once, before it fails."""
QUICK = QueueConfig(durability="os", memtable_bytes=1024 * 1024)
"""Writes are handed to the operating system only, and little is set aside for them."""
TMPFS = Path("/dev/shm")
TMPFS_BYTES = 2**30


def _open_memory(path: Path, config: QueueConfig) -> Engine:
    from telha_queue.engines.memory import MemoryEngine

    return MemoryEngine(config)


def _open_rocks(path: Path, config: QueueConfig) -> Engine:
    from telha_queue.engines.rocks import RocksEngine

    return RocksEngine.open(path, config)


# Whoever runs the tests in the background may have Ctrl-C ignored, and every process started from here inherits that.
signal.signal(signal.SIGINT, signal.default_int_handler)

ENGINES: dict[str, Callable[[Path, QueueConfig], Engine]] = {"memory": _open_memory, "rocks": _open_rocks}
"""Every engine passes tests/engine/; a new one lands by adding its line here."""


class Engines:
    """Opens engines of one make, each in a place of its own, and closes them after the test."""

    def __init__(self, opener: Callable[[Path, QueueConfig], Engine], root: Path) -> None:
        self._opener = opener
        self._root = root
        self._opened: list[tuple[Engine, Path, QueueConfig]] = []

    def open(self, config: QueueConfig | None = None) -> Engine:
        """An empty engine."""
        return self._open(self._root / f"queue{len(self._opened)}", config or QUICK)

    def reopen(self, engine: Engine) -> Engine:
        """Close an engine and open what it left behind. Skips the test if it leaves nothing behind."""
        if not engine.capabilities.durable:
            pytest.skip("nothing survives this engine")
        engine.close()
        path, config = next((path, config) for known, path, config in self._opened if known is engine)
        return self._open(path, config)

    def close(self) -> None:
        """Close them all."""
        for engine, _, _ in self._opened:
            engine.close()

    def _open(self, path: Path, config: QueueConfig) -> Engine:
        engine = self._opener(path, config)
        self._opened.append((engine, path, config))
        return engine


@pytest.fixture
def quick_path(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory, where there is room: opening a store takes a dozen fsyncs, and this suite opens many."""
    has_room = TMPFS.is_dir() and shutil.disk_usage(TMPFS).free > TMPFS_BYTES
    with TemporaryDirectory(prefix="telha-", dir=TMPFS if has_room else tmp_path) as path:
        yield Path(path)


@pytest.fixture(params=ENGINES)
def engines(request: pytest.FixtureRequest, quick_path: Path) -> Iterator[Engines]:
    """Opens engines of the make under test."""
    engines = Engines(ENGINES[request.param], quick_path)
    yield engines
    engines.close()


@pytest.fixture
def engine(engines: Engines) -> Engine:
    """The engine under test, as the seam knows it."""
    return engines.open()


@pytest.fixture
def clock() -> ManualClock:
    """The clock of `queue` and `make_queue`."""
    return ManualClock()


@pytest.fixture
def queue(engine: Engine, clock: ManualClock) -> Queue:
    """An empty queue with default settings on the engine under test."""
    return Queue(engine, QUICK, clock)


@pytest.fixture
def make_queue(engines: Engines, clock: ManualClock) -> Callable[..., Queue]:
    """Builds an empty queue with other settings: make_queue(max_attempts=1)."""

    def build(**settings: Any) -> Queue:
        config = QUICK.replace(**settings)
        return Queue(engines.open(config), config, clock)

    return build


@pytest.fixture
def reopen(engines: Engines, clock: ManualClock) -> Callable[[Queue], Queue]:
    """Closes a queue and opens what it left behind; skips the test on an engine that is not durable."""
    return lambda queue: Queue(engines.reopen(queue._engine), queue.config, clock)


@pytest.fixture
def rows() -> Callable[[Queue], list[tuple[bytes, bytes, bytes]]]:
    """Reads everything that a queue holds: key, value and payload of every job, in key order."""

    def read(queue: Queue) -> list[tuple[bytes, bytes, bytes]]:
        found: list[JobRecord] = []
        while page := queue.list(limit=1000, after=found[-1] if found else None):
            found += page
        return [(job.key, job.value, job.payload) for job in found]

    return read


@pytest.fixture
def refused(rows: Callable[[Queue], object]) -> Callable[..., AbstractContextManager[pytest.ExceptionInfo[Any]]]:
    """with refused(queue, SomeError): the block raises it and changes not one byte of the queue.

    A test that runs through many cases says which one by `case`.
    """

    @contextmanager
    def check(queue: Queue, *errors: type[Exception], case: str = "") -> Iterator[pytest.ExceptionInfo[Any]]:
        before = rows(queue)
        try:
            with pytest.raises(errors) as caught:
                yield caught
            assert rows(queue) == before
        except BaseException as failure:
            failure.add_note(f"case: {case}")
            raise

    return check


@pytest.fixture
def together() -> Callable[..., list[Any]]:
    """together(f, g, ...): run functions at once, a thread each, from a common start; return their results."""

    def run(*functions: Callable[[], T]) -> list[T]:
        start = threading.Barrier(len(functions))

        def started(function: Callable[[], T]) -> T:
            start.wait(PATIENCE_SECS)
            return function()

        with ThreadPoolExecutor(len(functions)) as pool:
            return list(pool.map(started, functions))

    return run
