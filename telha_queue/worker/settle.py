"""Writes outcomes to the queue: as many in one write as there are when the last write is over.

An outcome that the store cannot take now is tried again until it can, or the lease is lost: the handler has done its
work, and that is not to be done again because a disk was full for a minute.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from telha_queue.errors import CorruptionError, JobError, JobNotFound, LeaseConflict, StorageError, StoreClosed
from telha_queue.job import Failure, JobRecord, JobState
from telha_queue.worker.claim import Claim
from telha_queue.worker.roster import MAX_BATCH
from telha_queue.worker.verdict import Done, Failed, GivenBack, Outcome

if TYPE_CHECKING:
    from telha_queue.keeper import LeaseKeeper
    from telha_queue.queue import Queue

log = logging.getLogger("telha_queue.worker")

_FIRST_PAUSE_SECS = 0.05
_LAST_PAUSE_SECS = 1.0
_GATHER_SECS = 0.002
"""For how long outcomes of short jobs are gathered before they are written in one go."""


class Settled:
    """A claim, its outcome, and what the queue made of it: the job, or the error by which it was refused."""

    __slots__ = ("claim", "outcome", "result", "run_ns")

    def __init__(self, claim: Claim, outcome: Outcome) -> None:
        self.claim = claim
        self.outcome = outcome
        self.result: JobRecord | JobError | None = None
        self.run_ns = time.monotonic_ns() - claim.started_ns if claim.started_ns else 0


Write = Callable[[Sequence[Settled]], Sequence[JobRecord | JobError]]


class Settler:
    """A thread that writes outcomes. `put` is safe to use from many threads."""

    def __init__(
        self,
        queue: Queue,
        keeper: LeaseKeeper,
        late: str,
        gathers: bool,
        on_settled: Callable[[Sequence[Settled]], None],
    ) -> None:
        self._queue = queue
        self._late = late
        self._gathers = gathers
        self._keeper = keeper
        self._on_settled = on_settled
        self._due: SimpleQueue[Settled | None] = SimpleQueue()
        self._gives_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="telha-settler", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    def put(self, claim: Claim, outcome: Outcome) -> None:
        """Have it written soon. The claim has been decided."""
        self._due.put(Settled(claim, outcome))

    def stop(self, until: float, is_hurried: Callable[[], bool]) -> None:
        """Write what there is and end; what the store has not taken by then (monotonic) is given up."""
        self._due.put(None)
        while self._thread.is_alive() and time.monotonic() < until and not is_hurried():
            self._thread.join(_FIRST_PAUSE_SECS)
        self._gives_up.set()
        self._thread.join(2 * _LAST_PAUSE_SECS)

    def _run(self) -> None:
        is_last = False
        while not is_last:
            batch: list[Settled] = []
            first = self._due.get()
            if self._gathers:
                time.sleep(_GATHER_SECS)
            try:
                while first is not None:
                    batch.append(first)
                    if len(batch) == MAX_BATCH:
                        break
                    first = self._due.get_nowait()
                else:
                    is_last = True
            except Empty:
                pass
            if batch:
                self._settle(batch)

    def _settle(self, batch: list[Settled]) -> None:
        due = [one for one in batch if not one.claim.job.is_completed]
        done = [one for one in due if isinstance(one.outcome, Done) and one.outcome.result is None]
        failed = [one for one in due if isinstance(one.outcome, Failed)]
        if done:
            self._write(done, lambda due: self._queue.complete_many([one.claim.record for one in due], late=self._late))
        if failed:
            self._write(failed, lambda due: self._queue.fail_many([_failure(one) for one in due]))
        for one in batch:
            if one.claim.job.is_completed:
                one.outcome = Done()  # whatever came of the handler after that
                one.result = self._as_written(one)
            elif isinstance(one.outcome, GivenBack):
                self._write([one], self._give_back)
            elif isinstance(one.outcome, Done) and one.outcome.result is not None:
                self._write([one], self._complete)
        self._keeper.end([one.claim.held for one in batch])
        self._on_settled(batch)

    def _give_back(self, due: Sequence[Settled]) -> list[JobRecord | JobError]:
        [one] = due
        assert isinstance(one.outcome, GivenBack)
        return [self._queue.release(one.claim.record, delay_secs=one.outcome.delay_secs)]

    def _complete(self, due: Sequence[Settled]) -> list[JobRecord | JobError]:
        [one] = due
        assert isinstance(one.outcome, Done)
        try:
            return [self._queue.complete(one.claim.record, result=one.outcome.result, late=self._late)]
        except (LeaseConflict, JobNotFound) as refusal:  # as the verbs on many tell it
            return [refusal]

    def _write(self, due: Sequence[Settled], write: Write) -> None:
        """Write outcomes; again and again while the store fails, and one by one if one of them spoils the others'."""
        pause_secs, is_repeat = 0.0, False
        while due:
            try:
                results = write(due)
            except (CorruptionError, StoreClosed) as error:
                self._spoilt(due, write, error)
                return
            except (StorageError, MemoryError) as error:
                if self._gives_up.is_set():
                    self._spoilt(due[:1], write, error)
                    due = due[1:]
                    continue
                if not pause_secs:
                    log.error("%d outcomes cannot be written now, and will be: %s", len(due), error)
                pause_secs = min(max(2 * pause_secs, _FIRST_PAUSE_SECS), _LAST_PAUSE_SECS)
                is_repeat = is_repeat or getattr(error, "outcome", "none") == "unknown"
                self._gives_up.wait(pause_secs)
                due = self._still_held(due)
            except Exception as error:  # noqa: BLE001  # whatever it is, it is one job's, and must not stop the others'
                self._spoilt(due, write, error)
                return
            else:
                for one, result in zip(due, results, strict=True):
                    one.result = self._as_written(one) if is_repeat and isinstance(result, LeaseConflict) else result
                return

    def _spoilt(self, due: Sequence[Settled], write: Write, error: Exception) -> None:
        if len(due) > 1:
            for one in due:
                self._write([one], write)
            return
        due[0].result = error if isinstance(error, JobError) else StorageError(f"{type(error).__name__}: {error}")

    def _still_held(self, due: Sequence[Settled]) -> list[Settled]:
        """Those whose lease is not known to be lost; the others have their result."""
        held = []
        for one in due:
            if one.claim.held.over == "lost":
                one.result = self._as_written(one)
            else:
                held.append(one)
        return held

    def _as_written(self, one: Settled) -> JobRecord | JobError:
        """What a refusal means after a write whose outcome was unknown: it may have been made after all."""
        record = one.claim.record
        try:
            now = self._queue.get(record.scope, record.job_id)
        except JobError as error:
            return error
        last = now.events[-1].transition
        made = last == "completed" if isinstance(one.outcome, Done) else last in ("failed", "dead", "released")
        if made and now.lease_generation == record.lease_generation and now.state is not JobState.LEASED:
            return now
        return LeaseConflict(
            record.job_id, held=now.lease_generation, presented=record.lease_generation, state=now.state
        )


def why_lost(queue: Queue, record: JobRecord) -> str:
    """What became of a lease that was refused: "cancelled" with its job, or else "lost". Reads the job's row."""
    try:
        now = queue.get(record.scope, record.job_id)
    except JobError:
        return "lost"
    is_cancelled = now.dead_reason == "cancelled" and now.lease_generation == record.lease_generation
    return "cancelled" if is_cancelled else "lost"


def _failure(one: Settled) -> Failure:
    outcome = one.outcome
    assert isinstance(outcome, Failed)
    return Failure(one.claim.record, outcome.error, outcome.retryable, outcome.delay_secs, outcome.cause)
