"""Every error the queue raises, in one tree.

Errors are named for what is true, carry the facts as attributes, and say them with units in their message. No caller
ever needs to match on text. This module imports nothing of ours but is imported by everything, the compiled core too.
"""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
    from uuid import UUID

_SHOWN_CHARACTERS = 80
_SHOWN_BITS = 256


class JobError(Exception):
    """Root of every error raised by telha_queue. Each can be copied and pickled, so that it may leave its process."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Not by calling the class, as exceptions do: its parameters are facts, and `args` is the message made of them.
        return _made_again, (type(self), self.args), self.__dict__


class ConfigError(JobError, ValueError):
    """A setting is missing, malformed or outside its range. Raised when the configuration is built, never later."""


class InvalidArgument(JobError, ValueError):
    """An argument is outside its documented range. Nothing was changed."""


class InvalidType(InvalidArgument, TypeError):
    """An argument has the wrong type. Nothing was changed."""


class InvalidScope(InvalidArgument):
    """A scope is malformed, or names the system scope where a tenant was expected."""


class InvalidPath(InvalidArgument):
    """A path cannot be used: empty, not a directory, a symbolic link, closed to us, or full of someone else's files."""


class PayloadTooLarge(InvalidArgument):
    """A payload, continuation or batch is over its limit."""

    def __init__(self, what: str, *, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(f"{what} is {size_bytes} bytes; the limit is {limit_bytes} bytes")
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes


class JobNotFound(JobError, LookupError):
    """No job of that id exists in that scope.

    A job of another scope is reported in exactly the same way, so that ids cannot be probed across tenants.
    """

    def __init__(self, job_id: UUID) -> None:
        super().__init__(f"no job {job_id} here")
        self.job_id = job_id


class LeaseConflict(JobError):
    """The job is no longer held under the lease you presented; nothing was changed.

    Somebody else holds it, or it was reaped, released or finished. Drop the result: whoever holds the job now, or
    leases it next, will finish it.

    Attributes: `held` and `presented` are lease generations; `state` is the job's state as an int.
    """

    def __init__(self, job_id: UUID, *, held: int, presented: int, state: int) -> None:
        if held < presented:  # a store that was restored knows no lease that the original gave out since
            reason = f"lease generation {presented} was not given out by this queue"
        elif held != presented:
            reason = f"lease generation {presented} was superseded by {held}"
        elif state == _LEASED:
            reason = f"lease generation {presented} belongs to another worker"
        else:
            reason = f"lease generation {presented} has ended: the job is {_state_name(state)}"
        super().__init__(f"job {job_id}: {reason}")
        self.job_id = job_id
        self.held = held
        self.presented = presented
        self.state = state


class InvalidTransition(JobError):
    """The job's state does not allow the verb; nothing was changed."""

    def __init__(self, job_id: UUID, *, verb: str, state: int) -> None:
        super().__init__(f"job {job_id}: cannot {verb} a job that is {_state_name(state)}")
        self.job_id = job_id
        self.verb = verb
        self.state = state


class NotEnded(JobError):
    """The job was neither completed nor dead when the time to wait for it was over; nothing was changed.

    `state` is the one in which it was last seen, as an int.
    """

    def __init__(self, job_id: UUID, *, state: int, waited_secs: float) -> None:
        super().__init__(f"job {job_id}: is {_state_name(state)} after a wait of {waited_secs:g} s")
        self.job_id = job_id
        self.state = state
        self.waited_secs = waited_secs


class UnsupportedByEngine(JobError):
    """The engine behind this queue does not offer the capability."""


class StorageError(JobError):
    """The store failed.

    `outcome` is "none" when nothing can have been written, and "unknown" when a write was under way: it may or may
    not be there after the store is reopened. Repeat it with the same idempotency key, or look before you repeat.
    """

    def __init__(self, message: str, *, outcome: str = "none") -> None:
        super().__init__(message)
        self.outcome = outcome


class StoreClosed(StorageError):
    """The queue was closed, by you or at interpreter exit."""

    def __init__(self, message: str = "this queue is closed") -> None:
        super().__init__(message)


class StoreForked(StoreClosed):
    """This process was forked from one that had a queue open. Open queues after fork, or start workers with spawn."""

    def __init__(
        self,
        message: str = "this process was forked from one that had a queue open; a queue belongs to one process: "
        "run workers as threads of it, or open another queue in a process started with spawn",
    ) -> None:
        super().__init__(message)


class StoreLocked(StorageError):
    """Another owner has the directory open. `pid` is the owner's process id, or None when it is not known."""

    def __init__(self, path: str, pid: int | None) -> None:
        owner = f"process {pid}" if pid else "another process"
        super().__init__(f"{path} is in use by {owner}; one process owns a queue directory at a time")
        self.path = path
        self.pid = pid


class StorageFull(StorageError):
    """The disk is full. Reads still work; reopen the queue once there is space."""


def path_error(path: str, number: int | None) -> InvalidPath | StorageError:
    """The error for a path that the operating system refused with an errno, whatever was to be done there.

    InvalidPath if it is the path that cannot be, as it is and for this process; StorageError if it could, on a disk
    that works: a read-only file system and a failing one above all.
    """
    text = f"{path}: {os.strerror(number) if number else 'unknown error'}"
    if number in _FULL:
        return StorageFull(text)
    return InvalidPath(text) if number in _NO_PATH else StorageError(text)


_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_PATH = (
    *(errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY),
    *(errno.ELOOP, errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL, errno.ENXIO, errno.ENODEV, errno.EMLINK),
)


class CorruptionError(StorageError):
    """Stored data is damaged."""


class CorruptRecord(CorruptionError):
    """One row does not decode. It is left untouched, is never leased, and stops nothing else."""


class UnsupportedVersion(CorruptRecord):
    """One row, or the whole store, was written by a newer release in a format this one cannot read."""


STATE_NAMES = ("pending", "leased", "completed", "failed", "dead")
_LEASED = 1


def shown(value: object) -> str:
    """A value for a message: cut short, and never the cause of another error (Python refuses to print huge ints)."""
    if isinstance(value, int) and int.bit_length(value) > _SHOWN_BITS:
        return f"an int of {int.bit_length(value)} bits"
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  # whatever it is that cannot be shown, the message is about something else
        return f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 3]}..."


def _state_name(state: int) -> str:
    return STATE_NAMES[state] if 0 <= state < len(STATE_NAMES) else str(state)


def _made_again(kind: type[JobError], args: tuple[Any, ...]) -> JobError:
    return kind.__new__(kind, *args)  # which keeps `args` as it is given them
