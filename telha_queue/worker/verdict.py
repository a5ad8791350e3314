"""What becomes of a job by what its handler raised. Knows exceptions and settings; no queue and no threads.

Permanent          dead at once
Retry(delay_secs)  tried again after that delay, as long as it has attempts
Released           given back unspent
anything else      looked up in a table of types, then of texts, and else as `unknown` says
"""

from __future__ import annotations

import os
import traceback
from dataclasses import dataclass, replace
from types import TracebackType
from typing import NamedTuple

from telha_queue.config import MAX_SECS
from telha_queue.errors import ConfigError, LeaseConflict, StorageError

MAX_ERROR_CHARACTERS = 3500
"""Of the text that is kept with a job: its trail takes 4 KiB."""
_FIRST_LINE_CHARACTERS = 1000
_PACKAGE = os.path.dirname(__file__)


class Permanent(Exception):
    """Raise it in a handler: no attempt can succeed, and the job is dead at once (`not_retryable`)."""


class Retry(Exception):
    """Raise it in a handler: try again, after a delay of its own or after the backoff. It spends an attempt."""

    def __init__(self, message: str = "", *, delay_secs: float | None = None) -> None:
        super().__init__(message or "asked for another attempt")
        self.delay_secs = None if delay_secs is None else _delay(delay_secs)


class Released(Exception):
    """Raise it in a handler: give the job back as if it had not been leased, due after a delay. Spends nothing."""

    def __init__(self, message: str = "", *, delay_secs: float = 0) -> None:
        super().__init__(message or "given back")
        self.delay_secs = _delay(delay_secs)


def _delay(secs: float) -> float:
    """Checked where it is given: later it would spoil the write of many outcomes. Raises ValueError."""
    if isinstance(secs, bool) or not isinstance(secs, (int, float)) or not 0 <= secs <= MAX_SECS:
        raise ValueError(f"delay_secs is a number from 0 to {MAX_SECS}, not {secs!r}")
    return secs


class Done(NamedTuple):
    """The handler returned."""

    result: bytes | None = None
    """What is kept of what it returned, if its task keeps that."""


class Failed(NamedTuple):
    """An attempt was lost. The fields are arguments of `Queue.fail`."""

    error: str
    retryable: bool = True
    delay_secs: float | None = None
    cause: str = "error"


class GivenBack(NamedTuple):
    """Nothing is spent."""

    delay_secs: float = 0


Outcome = Done | Failed | GivenBack

TRANSIENT = (LeaseConflict, StorageError, ConnectionError, TimeoutError, InterruptedError, BlockingIOError)
TRANSIENT_TEXTS = (
    "read or write conflict",
    "transaction can be retried",
    "temporarily unavailable",
    "timeout",
    "timed out",
    "rate limit",
    "too many requests",
    "connection reset",
    "broken pipe",
)


@dataclass(frozen=True, slots=True)
class ErrorRules:
    """Which errors pass. Types count first, the most special one that matches; then texts; then `unknown`.

    `permanent` and `transient` are exception classes, `transient_texts` parts of a message in lower case. Extend the
    table that there is with `rules.extended(...)`. `unknown` is "retry" or "dead". Immutable; safe to share.
    """

    permanent: tuple[type[BaseException], ...] = ()
    transient: tuple[type[BaseException], ...] = TRANSIENT
    transient_texts: tuple[str, ...] = TRANSIENT_TEXTS
    unknown: str = "retry"

    def __post_init__(self) -> None:
        if self.unknown not in ("retry", "dead"):
            raise ConfigError(f"unknown is 'retry' or 'dead', not {self.unknown!r}")
        for kind in (*self.permanent, *self.transient):
            if not (isinstance(kind, type) and issubclass(kind, BaseException)):
                raise ConfigError(f"an error rule names exception classes, not {kind!r}")

    def extended(
        self,
        *,
        permanent: tuple[type[BaseException], ...] = (),
        transient: tuple[type[BaseException], ...] = (),
        transient_texts: tuple[str, ...] = (),
        unknown: str | None = None,
    ) -> ErrorRules:
        """These rules and more."""
        return replace(
            self,
            permanent=self.permanent + permanent,
            transient=self.transient + transient,
            transient_texts=self.transient_texts + tuple(text.lower() for text in transient_texts),
            unknown=self.unknown if unknown is None else unknown,
        )

    def passes(self, error: BaseException) -> bool:
        """Whether another attempt may succeed."""
        for kind in type(error).__mro__:
            if kind in self.permanent:
                return False
            if kind in self.transient:
                return True
        text = _message(error).lower()
        return self.unknown == "retry" or any(part in text for part in self.transient_texts)


def outcome_of(error: BaseException, rules: ErrorRules) -> Outcome:
    """What a handler's exception means for its job."""
    if isinstance(error, Released):
        return GivenBack(error.delay_secs)
    if isinstance(error, Permanent):
        return Failed(described(error), retryable=False)
    if isinstance(error, Retry):
        return Failed(described(error), delay_secs=error.delay_secs)
    return Failed(described(error), retryable=rules.passes(error))


def within(outcome: Outcome, limit_bytes: int) -> Outcome:
    """The outcome, unless its result is too long to be kept: another attempt would come to the same."""
    if isinstance(outcome, Done) and outcome.result is not None and len(outcome.result) > limit_bytes:
        said = f"the result is {len(outcome.result)} bytes; the limit is {limit_bytes} bytes"
        return Failed(said, retryable=False)
    return outcome


def described(error: BaseException) -> str:
    """The error in a line, then the end of its traceback, as much as is kept."""
    message = _message(error)
    name = type(error).__qualname__
    first = f"{name}: {message}" if message else name
    first = first[:_FIRST_LINE_CHARACTERS]
    if error.__traceback__ is None:
        return first
    frames = "".join(traceback.format_tb(_own(error.__traceback__))).rstrip()
    room = MAX_ERROR_CHARACTERS - len(first)
    return f"{first}\n{frames if len(frames) <= room else '...' + frames[3 - room :]}"


def _own(frames: TracebackType) -> TracebackType:
    """A traceback without the frames of this package at its head: they are no news to whoever wrote the handler."""
    while frames.tb_next is not None and frames.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        frames = frames.tb_next
    return frames


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  # whatever its __str__ raises, the attempt failed by `error`
        return "(its text cannot be shown)"
