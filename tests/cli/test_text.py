from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from telha_queue.cli import text


@pytest.mark.parametrize(
    ("us", "said"),
    [
        (0, "0.0 ms"),
        (400, "0.4 ms"),
        (250_000, "250 ms"),
        (999_499, "999 ms"),
        (999_500, "1 s"),
        (1_200_000, "1.2 s"),
        (59_949_999, "59.9 s"),
        (59_950_000, "1 min"),
        (184_000_000, "3 min 4 s"),
        (3_599_600_000, "1 h"),
        (18_600_000_000, "5 h 10 min"),
        (3_600_000_000 * 24, "1 d"),
        (3_600_000_000 * 100, "4 d 4 h"),
        (-1_200_000, "-1.2 s"),
    ],
)
def test_a_span_is_said_in_at_most_two_units(us: int, said: str) -> None:
    assert text.span(us) == said


@pytest.mark.parametrize(("secs", "said"), [(-5, "0s"), (59, "59s"), (60, "1m"), (7199, "1h"), (10**6, "11d")])
def test_an_age_fits_a_narrow_column(secs: int, said: str) -> None:
    assert text.age(secs * 1_000_000) == said


@pytest.mark.parametrize(
    ("size_bytes", "said"),
    [(0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (12_500, "12.5 kB"), (999_960, "1.0 MB"), (10**13, "10.0 TB")],
)
def test_a_size_is_said_in_the_unit_that_fits(size_bytes: int, said: str) -> None:
    assert text.size(size_bytes) == said


def test_an_instant_is_utc_with_milliseconds() -> None:
    assert text.instant(1_750_000_000_123_999) == "2025-06-15T15:06:40.123Z"


def test_an_instant_beyond_the_calendar_is_still_said() -> None:
    assert text.instant(2**63 - 1) == f"{2**63 - 1} µs"


def test_a_time_without_a_zone_is_utc_and_no_microsecond_is_lost() -> None:
    bare = datetime(2025, 6, 15, 15, 6, 40, 123_457)
    there = datetime(2025, 6, 15, 17, 6, 40, 123_457, tzinfo=timezone(timedelta(hours=2)))
    assert text.microseconds(bare) == text.microseconds(there) == 1_750_000_000_123_457


@pytest.mark.parametrize("hostile", ["\x1b[31m", "\r", "\n", "\x9b", "\u202e", "\u2028", "\x00", "\x7f", "\ud800"])
def test_what_a_terminal_might_obey_is_written_out(hostile: str) -> None:
    shown = text.printable(f"a{hostile}b")
    assert shown.isprintable()
    assert shown.startswith("a\\")
    assert shown.endswith("b")


def test_plain_text_of_any_language_stays_as_it_is() -> None:
    assert text.printable("größe: 任務 [red]") == "größe: 任務 [red]"
