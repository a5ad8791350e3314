"""Work that recurs: when its ticks are, and the jobs that stand for them. Knows tasks and a queue; no threads.

Each tick is one job, enqueued before it is due under an idempotency key that names the tick, so any number of workers
make one job of it. The job of a tick enqueues that of the next when it begins, and every worker sees to it now and then
that there is one: the schedule is in the queue and survives every restart.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, Protocol, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from telha_queue.errors import ConfigError
from telha_queue.scope import Scope
from telha_queue.worker.extras import wanted
from telha_queue.worker.task import BytesTask, Task

if TYPE_CHECKING:
    from telha_queue.job import JobRecord
    from telha_queue.queue import Queue
    from telha_queue.worker.task import AnyTask

T = TypeVar("T")

MISFIRES = ("one", "all", "none")
LATE_US = 60_000_000
"""A tick that begins later than this, or than the next one, counts as missed."""
MAX_MISSED = 1000
"""Ticks that are made up for with misfire "all", the newest ones ..."""
MAX_MISSED_US = 31 * 86_400 * 1_000_000
"""... of the last month."""
TICK_HEADER, SCHEDULE_HEADER = "telha-tick", "telha-schedule"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Schedule(Protocol):
    """When something is to happen."""

    text: str
    """Two schedules are one if their texts are equal."""

    def after(self, at_us: int) -> Iterator[int]:
        """The ticks later than that time, in order, without end. Microseconds since the epoch."""


class Cron:
    """Five fields of cron, in a time zone: minute, hour, day, month, weekday.

    Across a change of the clocks it does what Debian's cron does: what falls into the hour that is skipped runs right
    after it, what falls into the hour that comes twice runs once, and what recurs within the hour goes on all the time.
    """

    def __init__(self, expression: str, zone: str = "UTC") -> None:
        self._cronsim = wanted("cronsim", "worker")
        try:
            self._zone = ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ConfigError(f"no such time zone: {zone!r}") from None
        self._expression = expression
        self.text = f"{expression} {zone}"
        try:
            self._cronsim.CronSim(expression, datetime.now(UTC))
        except self._cronsim.CronSimError as error:
            raise ConfigError(f"not a cron expression: {expression!r}: {error}") from None

    def after(self, at_us: int) -> Iterator[int]:
        start = (_EPOCH + timedelta(microseconds=at_us)).astimezone(self._zone)
        for tick in self._cronsim.CronSim(self._expression, start):
            if (tick_us := _us_of(tick)) > at_us:
                yield tick_us


class Every:
    """At equal distances, counted from the epoch: every worker has the same ticks."""

    def __init__(self, secs: float) -> None:
        if not 1 <= secs <= 366 * 86_400:
            raise ConfigError(f"an interval is from a second to a year, not {secs!r}")
        self._us = round(secs * 1_000_000)
        self.text = f"every {secs} s"

    def after(self, at_us: int) -> Iterator[int]:
        tick_us = at_us - at_us % self._us
        while True:
            tick_us += self._us
            yield tick_us


class Recurrence:
    """The schedule of one task: what `@periodic` leaves with it."""

    __slots__ = ("misfire", "schedule", "scope")

    def __init__(self, schedule: Schedule, misfire: str, scope: Scope | None) -> None:
        if misfire not in MISFIRES:
            raise ConfigError(f"misfire is one of {', '.join(MISFIRES)}, not {misfire!r}")
        self.schedule = schedule
        self.misfire = misfire
        self.scope = scope


def periodic(
    cron: str | None = None,
    *,
    every_secs: float | None = None,
    zone: str = "UTC",
    misfire: str = "one",
    scope: Scope | None = None,
) -> Callable[[T], T]:
    """Have a task run at every tick of a cron expression, or every so many seconds; stands above `@task`.

    Exactly one job is made for each tick, however many workers have the task. `misfire` says what becomes of ticks
    that passed while no worker was there: "one" runs once for all of them, "all" once for each of the last 1,000,
    "none" for none. Jobs are enqueued in `scope`, else in the worker's, else in the system's. Raises ConfigError.
    """
    if (cron is None) == (every_secs is None):
        raise ConfigError("@periodic takes a cron expression or every_secs: @periodic('*/5 * * * *')")
    schedule = Cron(cron, zone) if cron is not None else Every(every_secs)  # type: ignore[arg-type]
    recurrence = Recurrence(schedule, misfire, scope)

    def decorate(task: T) -> T:
        if not isinstance(task, (BytesTask, Task)):
            raise ConfigError("@periodic stands above @task")
        try:
            task.spec()
        except TypeError as error:
            raise ConfigError(f"{task!r} recurs, so its parameters have defaults: {error}") from None
        task.recurrence = recurrence
        return task

    return decorate


class Ticks:
    """The recurring tasks of one worker, on its queue. Safe to use from many threads."""

    def __init__(self, queue: Queue, tasks: list[AnyTask], scope: Scope | None) -> None:
        self._queue = queue
        self._scope = scope
        self._recurring = {task.kind: (task, task.recurrence) for task in tasks if task.recurrence is not None}

    def __bool__(self) -> bool:
        return bool(self._recurring)

    def see_to_it(self) -> None:
        """Have a job for the next tick of each task, if there is none."""
        for task, recurrence in self._recurring.values():
            self._enqueue(task, recurrence, next(recurrence.schedule.after(self._queue.now_us())))

    def begin(self, record: JobRecord) -> bool:
        """The job of a tick is about to run: have one for the next; False if this one is not to run.

        A job of a recurring task that somebody enqueued by hand is no tick and runs.
        """
        if record.kind not in self._recurring or TICK_HEADER not in record.headers:
            return True
        task, recurrence = self._recurring[record.kind]
        schedule = recurrence.schedule
        if record.headers.get(SCHEDULE_HEADER) != schedule.text:
            return False  # of a schedule that was changed since
        now_us, tick_us = self._queue.now_us(), int(record.headers[TICK_HEADER])
        since_us = max(tick_us, now_us - MAX_MISSED_US)
        missed = takewhile(lambda at_us: at_us <= now_us, schedule.after(since_us))
        is_late = now_us - tick_us > LATE_US
        if recurrence.misfire == "all":
            for at_us in deque(missed, maxlen=MAX_MISSED):
                self._enqueue(task, recurrence, at_us)
        else:
            is_late = is_late or next(missed, None) is not None
        self._enqueue(task, recurrence, next(schedule.after(now_us)))
        return not (is_late and recurrence.misfire == "none")

    def _enqueue(self, task: AnyTask, recurrence: Recurrence, tick_us: int) -> None:
        text = recurrence.schedule.text
        task.options(
            not_before=tick_us,
            idempotency_key=f"tick {tick_us} of {task.kind} {text}"[:250],
            headers={TICK_HEADER: str(tick_us), SCHEDULE_HEADER: text},
        ).enqueue(self._queue, recurrence.scope or self._scope or Scope.SYSTEM)


def _us_of(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)
