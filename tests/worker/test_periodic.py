"""Work that recurs: exactly one job a tick, whatever number of workers, and what becomes of ticks that were missed."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice

import pytest

from telha_queue import JobState, Scope
from telha_queue.errors import ConfigError
from telha_queue.testing import ManualClock
from telha_queue.worker import JSON, Job, periodic, task
from telha_queue.worker.inline import run_due
from telha_queue.worker.periodic import Cron, Every

ACME = Scope.named("acme")
MINUTE_US = 60_000_000


def us(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * 1_000_000


def told(schedule, after: str, n: int = 4) -> list[str]:
    ticks = islice(schedule.after(us(after)), n)
    return [datetime.fromtimestamp(tick / 1e6, UTC).isoformat()[:16] for tick in ticks]


def every_five(misfire: str = "one"):
    ran = []

    @periodic("*/5 * * * *", misfire=misfire)
    @task("tidy")
    def tidy(job: Job) -> None:
        ran.append(int(job.headers["telha-tick"]))

    return tidy, ran


def test_each_tick_is_one_job_however_many_workers_there_are(queue, clock, work, until):
    clock.set_us(us("2026-06-01T12:02:00+00:00"))
    tidy, ran = every_five()
    for _ in range(3):
        work(tidy)
    for tick in range(1, 11):
        until(lambda tick=tick: queue.counts()[JobState.PENDING] == 1)
        clock.advance(secs=300)
        until(lambda tick=tick: queue.counts()[JobState.COMPLETED] == tick)
    assert ran == [us("2026-06-01T12:05:00+00:00") + n * 5 * MINUTE_US for n in range(10)]


@pytest.mark.parametrize(
    ("misfire", "first_run"),
    [("one", [0]), ("all", [0, 1, 2, 3]), ("none", [])],
)
def test_ticks_that_nobody_was_there_for(queue, clock, misfire, first_run):
    start = us("2026-06-01T12:00:00+00:00")
    clock.set_us(start)
    tidy, ran = every_five(misfire)
    run_due(queue, [tidy])
    assert ran == []
    clock.set_us(start + 21 * MINUTE_US)  # ticks of 12:05, 12:10, 12:15 and 12:20 have passed
    run_due(queue, [tidy])
    assert ran == [start + (5 + 5 * n) * MINUTE_US for n in first_run]
    clock.set_us(start + 26 * MINUTE_US)
    run_due(queue, [tidy])
    assert ran[len(first_run) :] == [start + 25 * MINUTE_US]


def test_a_tick_that_comes_a_minute_late_is_missed(queue, clock):
    start = us("2026-06-01T12:00:00+00:00")
    clock.set_us(start)
    tidy, ran = every_five("none")
    run_due(queue, [tidy])
    clock.set_us(start + 7 * MINUTE_US)
    run_due(queue, [tidy])
    assert ran == []


def test_a_tick_survives_a_restart(queue, clock, reopen):
    clock.set_us(us("2026-06-01T12:02:00+00:00"))
    tidy, ran = every_five()
    run_due(queue, [tidy])
    queue = reopen(queue)
    clock.advance(secs=180)
    run_due(queue, [tidy])
    assert len(ran) == 1


def test_a_tick_of_a_schedule_that_was_changed_does_not_run(queue, clock):
    clock.set_us(us("2026-06-01T12:02:00+00:00"))
    tidy, ran = every_five()
    run_due(queue, [tidy])
    hourly = periodic("0 * * * *")(task("tidy")(lambda job: ran.append(job.headers["telha-schedule"])))
    clock.set_us(us("2026-06-01T13:00:00+00:00"))
    run_due(queue, [hourly])  # the old tick of 12:05, which brings about the one of 14:00
    clock.set_us(us("2026-06-01T14:00:00+00:00"))
    run_due(queue, [hourly])
    assert ran == ["0 * * * * UTC"]


def test_a_tick_that_fails_is_retried_like_any_job_and_the_next_comes_nevertheless(queue, clock):
    ran = []

    @periodic(every_secs=60)
    @task("x", max_attempts=2)
    def x(job: Job) -> None:
        ran.append((job.headers["telha-tick"], job.attempt))
        raise ValueError

    run_due(queue, [x])
    clock.advance(secs=60)
    run_due(queue, [x])
    clock.advance(secs=60)
    run_due(queue, [x])
    first, second, third = sorted(ran)
    assert first[0] == second[0] != third[0]
    assert (first[1], second[1], third[1]) == (1, 2, 1)


def test_a_job_enqueued_by_hand_runs_at_once_and_is_no_tick(queue, clock):
    seen = []

    @periodic(every_secs=3600)
    @task("x")
    def x(job: Job) -> None:
        seen.append(dict(job.headers))

    x.enqueue(queue, Scope.SYSTEM)
    run_due(queue, [x])
    assert seen == [{}]


def test_cron_across_changes_of_the_clocks():
    berlin = Cron("30 2 * * *", "Europe/Berlin")
    assert told(berlin, "2026-03-28T00:00:00+00:00", 3) == ["2026-03-28T01:30", "2026-03-29T01:00", "2026-03-30T00:30"]
    assert told(berlin, "2026-10-24T00:00:00+00:00", 3) == ["2026-10-24T00:30", "2026-10-25T00:30", "2026-10-26T01:30"]
    often = Cron("*/30 * * * *", "Europe/Berlin")
    assert told(often, "2026-10-25T00:00:00+00:00") == [
        "2026-10-25T00:30", "2026-10-25T01:00", "2026-10-25T01:30", "2026-10-25T02:00",
    ]  # fmt: skip


def test_intervals_are_the_same_for_everybody():
    assert list(islice(Every(60).after(59 * 1_000_000), 2)) == [60_000_000, 120_000_000]
    assert next(Every(60).after(60_000_000)) == 120_000_000


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"cron": "* * *"},
        {"cron": "61 * * * *"},
        {"cron": "* * * * *", "every_secs": 5},
        {"every_secs": 0},
        {"every_secs": float("nan")},
        {"cron": "* * * * *", "zone": "Europe/Atlantis"},
        {"cron": "* * * * *", "misfire": "some"},
    ],
    ids=str,
)
def test_a_schedule_that_is_none_is_refused(how):
    with pytest.raises(ConfigError):
        periodic(**how)


def test_a_task_with_arguments_recurs_with_its_defaults(queue, clock):
    seen = []

    @periodic(every_secs=60)
    @task("x", codec=JSON)
    def x(job: Job, days: int = 30) -> None:
        seen.append(days)

    run_due(queue, [x])
    clock.advance(secs=60)
    run_due(queue, [x])
    assert seen == [30]
    with pytest.raises(ConfigError, match="defaults"):
        periodic(every_secs=60)(task("y", codec=JSON)(lambda job, days: None))


def test_periodic_stands_above_task():
    with pytest.raises(ConfigError, match="above"):
        periodic("* * * * *")(lambda job: None)


def test_a_clock_set_back_repeats_no_tick(queue, clock: ManualClock):
    clock.set_us(us("2026-06-01T12:04:00+00:00"))
    tidy, ran = every_five()
    run_due(queue, [tidy])
    clock.set_us(us("2026-06-01T12:05:00+00:00"))
    run_due(queue, [tidy])
    clock.set_us(us("2026-06-01T11:00:00+00:00"))
    run_due(queue, [tidy])
    clock.set_us(us("2026-06-01T12:10:00+00:00"))
    run_due(queue, [tidy])
    assert ran == [us("2026-06-01T12:05:00+00:00"), us("2026-06-01T12:10:00+00:00")]
