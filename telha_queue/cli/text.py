"""Words for people: times, spans, and text from jobs made safe for a terminal. Knows no job and no output."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_US = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


def printable(text: str) -> str:
    r"""Text on one line with whatever a terminal might obey, control characters above all, written as \x1b."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def clipped(text: str, limit: int) -> str:
    """Text cut to so many characters, the cut shown."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def size(size_bytes: int) -> str:
    """A number of bytes: 300 bytes, 12.5 kB, 1.2 MB."""
    if size_bytes < 1000:
        return "1 byte" if size_bytes == 1 else f"{size_bytes} bytes"
    value = size_bytes / 1000
    for unit in ("kB", "MB", "GB"):
        if value < 999.95:
            return f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def instant(at_us: int) -> str:
    """A time in UTC, to the millisecond: 2026-11-30T22:19:04.125Z."""
    if at_us > _LAST_US:
        return f"{at_us} µs"  # beyond the year 9999
    moment = _EPOCH + timedelta(microseconds=at_us)
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def microseconds(moment: datetime) -> int:
    """A time as microseconds since the epoch; one without a zone is UTC."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def span(us: int) -> str:
    """A span of time in at most two units: 0.4 ms, 250 ms, 1.2 s, 3 min 4 s, 5 h 10 min, 12 d 4 h."""
    if us < 0:
        return f"-{span(-us)}"
    if us < 9_950:
        return f"{us / 1000:.1f} ms"
    if us < 999_500:
        return f"{us / 1000:.0f} ms"
    if us < 59_950_000:
        return f"{us / 1_000_000:.1f}".removesuffix(".0") + " s"
    secs = round(us / 1_000_000)
    if secs < 3600:
        return _two_units(secs, "min", 60, "s", 1)
    if secs < 86400:
        return _two_units(secs, "h", 3600, "min", 60)
    return _two_units(secs, "d", 86400, "h", 3600)


def _two_units(secs: int, large: str, large_secs: int, small: str, small_secs: int) -> str:
    whole, rest = divmod(secs, large_secs)
    return f"{whole} {large} {rest // small_secs} {small}" if rest >= small_secs else f"{whole} {large}"


def age(us: int) -> str:
    """A span for a narrow column: 12s, 3m, 5h, 12d."""
    secs = max(us, 0) // 1_000_000
    for unit, unit_secs in (("d", 86400), ("h", 3600), ("m", 60)):
        if secs >= unit_secs:
            return f"{secs // unit_secs}{unit}"
    return f"{secs}s"
