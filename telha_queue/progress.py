"""How much of a job is done, as whoever works on it says: checked for the store. Knows no job."""

from __future__ import annotations

from telha_queue.arguments import detail
from telha_queue.errors import InvalidArgument, InvalidType, shown

WHOLE = 1_000_000
"""The store keeps millionths."""


def told(fraction: float, text: str | None) -> tuple[int, str | None]:
    """A fraction from 0 to 1, in millionths, and at most 4 KiB of text. Raises InvalidArgument."""
    if type(fraction) is not int and type(fraction) is not float:
        raise InvalidType(f"fraction is a number, not {type(fraction).__name__}")
    if not 0 <= fraction <= 1:  # false for NaN as well
        raise InvalidArgument(f"fraction is from 0 to 1, not {shown(fraction)}")
    return round(fraction * WHOLE), None if text is None else detail(text)
