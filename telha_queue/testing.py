"""For the tests of programs that use a queue: a queue in memory, a clock moved by hand, and assertions.

    clock = ManualClock()
    queue = memory_queue(clock=clock)
    my_program.submit(queue, "report.pdf")
    assert_enqueued(queue, kinds="ingest:pdf", count=1)
    drain(queue, my_program.handle)
    clock.advance(secs=10)

After the last line the backoff of a job that failed is over, and no test has slept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from telha_queue.clock import MAX_TIME_US, Clock
from telha_queue.config import QueueConfig
from telha_queue.engines.memory import MemoryEngine
from telha_queue.errors import InvalidType
from telha_queue.job import JobRecord, JobState
from telha_queue.scope import Scope
from telha_queue.worker.inline import WorkerLost, run_due

TYPE_CHECKING = False
if TYPE_CHECKING:
    from telha_queue.queue import Queue
    from telha_queue.reading import KindArgument

__all__ = [
    "ManualClock",
    "START_US",
    "WorkerLost",
    "assert_enqueued",
    "drain",
    "memory_queue",
    "run_due",
]

START_US = 1_750_000_000_000_000
"""Where a manual clock starts: June 2025, a time that looks like one."""
_PAGE_JOBS = 1000


class ManualClock:
    """A clock that moves only when it is told to. Give it to `memory_queue` or `Queue.open` and call `advance`.

    Moving it wakes whoever waits in a queue built on it, so that a job whose gate has opened is leased at once. It may
    be set back; the queue then stays at the latest time it has seen, as it does for a wall clock. Safe to use from
    many threads.
    """

    def __init__(self, start_us: int = START_US) -> None:
        self._lock = threading.Lock()
        self._now_us = _checked(start_us)
        self._callbacks: list[Callable[[], object]] = []

    def __call__(self) -> int:
        """The time, in microseconds since the Unix epoch."""
        return self._now_us

    def advance(self, secs: float) -> int:
        """Move on by so many seconds; returns the new time."""
        return self.advance_us(round(secs * 1_000_000))

    def advance_us(self, us: int) -> int:
        """Move on by so many microseconds; returns the new time."""
        with self._lock:
            self._now_us = _checked(self._now_us + us)
        return self._tell()

    def set_us(self, at_us: int) -> int:
        """Set to a time, earlier or later; returns it."""
        with self._lock:
            self._now_us = _checked(at_us)
        return self._tell()

    def subscribe(self, callback: Callable[[], object]) -> None:
        """Call back, without arguments, whenever the clock was moved. Queues do this by themselves."""
        with self._lock:
            self._callbacks.append(callback)

    def _tell(self) -> int:
        with self._lock:
            now_us, callbacks = self._now_us, tuple(self._callbacks)
        for callback in callbacks:  # outside the lock: a callback may well read the clock
            callback()
        return now_us


def memory_queue(config: QueueConfig | None = None, clock: Clock | None = None) -> Queue:
    """A queue that keeps its jobs in memory and behaves like one on disk in every other way.

    Without a config the defaults apply, whatever the environment says. Without a clock it runs on the wall clock.
    """
    from telha_queue.queue import Queue

    settings = QueueConfig() if config is None else config
    return Queue(MemoryEngine(settings), settings, clock)


def assert_enqueued(
    queue: Queue,
    *,
    kinds: KindArgument = None,
    scope: Scope | None = None,
    payload: bytes | None = None,
    state: JobState | None = None,
    count: int | None = None,
) -> list[JobRecord]:
    """Assert that the queue holds such jobs, exactly `count` of them or at least one; return them.

    What is not given is not looked at. `kinds` is a filter as in `lease_next`: a plain string is a prefix,
    `Exact("embed")` the whole kind. `count=0` asserts that there is none.
    """
    __tracebackhide__ = True
    if payload is not None and not isinstance(payload, bytes):
        raise InvalidType(f"a payload is bytes, not {type(payload).__name__}; of a task it is task.spec(...).payload")
    found = [job for job in _jobs(queue, scope, state, kinds) if payload is None or job.payload == payload]
    if len(found) == count or (count is None and found):
        return found
    wanted = "at least one job" if count is None else f"{count} job{'' if count == 1 else 's'}"
    facts = {"kinds": kinds, "scope": scope, "payload": payload, "state": state}
    asked = ", ".join(f"{name}={value!s:.80}" for name, value in facts.items() if value is not None) or "any"
    raise AssertionError(f"expected {wanted} with {asked}, found {len(found)}; {_inventory(queue)}")


def drain(
    queue: Queue,
    handler: Callable[[JobRecord], object],
    *,
    scope: Scope | None = None,
    kinds: KindArgument = None,
    worker_id: str = "drain",
) -> list[JobRecord]:
    """Run every job that is due through a handler in this thread, jobs that it enqueues included.

    A job is completed when the handler returns and fails when it raises an Exception. Returns the jobs as they then
    are, in the order in which they ran. A failed job waits for its backoff: advance the clock and drain again.
    """
    done: list[JobRecord] = []
    while True:
        if scope is None:
            lease = queue.lease_next_any(kinds, worker_id=worker_id)
        else:
            lease = queue.lease_next(scope, kinds, worker_id=worker_id)
        if lease is None:
            return done
        try:
            handler(lease)
        except Exception as error:  # noqa: BLE001  # whatever a handler raises is what is tested
            done.append(queue.fail(lease, f"{type(error).__name__}: {error}"))
        else:
            done.append(queue.complete(lease))


def _jobs(queue: Queue, scope: Scope | None, state: JobState | None, kinds: KindArgument) -> Iterator[JobRecord]:
    after: JobRecord | None = None
    while True:
        page = queue.list(scope, state=state, kinds=kinds, limit=_PAGE_JOBS, after=after)
        yield from page
        if len(page) < _PAGE_JOBS:
            return
        after = page[-1]


def _inventory(queue: Queue) -> str:
    kinds: dict[str, int] = {}
    for job in _jobs(queue, None, None, None):
        kinds[job.kind] = kinds.get(job.kind, 0) + 1
    return "the queue holds " + (", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items())) or "no jobs")


def _checked(at_us: int) -> int:
    if type(at_us) is not int or not 0 <= at_us <= MAX_TIME_US:
        raise ValueError(f"a time is an int from 0 to {MAX_TIME_US}, not {at_us!r}")
    return at_us
