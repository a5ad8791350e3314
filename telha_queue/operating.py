"""What is asked of a job by whoever runs the program: by its id, whoever holds it. See docs/jobs.md."""

from __future__ import annotations

from uuid import UUID

from telha_queue import arguments as check
from telha_queue._seam import scope_key
from telha_queue.errors import InvalidArgument
from telha_queue.job import JobRecord
from telha_queue.reading import ReadableQueue
from telha_queue.scope import Scope
from telha_queue.times import gate_us


class OperableQueue(ReadableQueue):
    """The verbs of a `Queue` that change a job and need no lease."""

    def retry(self, scope: Scope, job_id: UUID) -> JobRecord:
        """Put a dead job back to Pending, its attempts at 0. Raises InvalidTransition for any other state.

        One that has expired since expires no more.
        """
        return self._engine.retry(scope_key(scope), check.uuid_bytes(job_id), self._now_us())

    def cancel(self, scope: Scope, job_id: UUID, reason: str = "") -> JobRecord:
        """End a pending or leased job at once: it is dead, its `dead_reason` "cancelled". `retry` puts it back.

        Of a leased job the lease ends too: whatever its holder calls next raises LeaseConflict, and a worker's handler
        learns of it by its `job.lost`. Raises InvalidTransition for a job that is completed or dead. `reason` is kept
        in the trail, cut to 4 KiB.
        """
        why = check.error_text(reason, "reason") or None
        return self._engine.cancel(scope_key(scope), check.uuid_bytes(job_id), why, self._now_us())

    def reschedule(
        self,
        scope: Scope,
        job_id: UUID,
        *,
        priority: int | None = None,
        not_before: int | None = None,
        delay_secs: float | None = None,
    ) -> JobRecord:
        """Give a pending job another priority, or another time before which it is not leased, or both.

        A `delay_secs` of 0 makes it due now. The job then stands as if it had been enqueued with that priority, by its
        old `created_at`. Raises InvalidTransition for a job that is not pending.
        """
        now_us = self._now_us()
        gate = gate_us(not_before, delay_secs, now_us)
        if gate is None and priority is None:
            raise InvalidArgument("give priority, not_before or delay_secs: nothing would change")
        told = []
        if priority is not None:
            told.append(f"priority {check.whole('priority', priority, 0, 255)}")
        if gate is not None:
            told.append(f"due in {_seconds(gate - now_us)}" if gate > now_us else "due now")
            gate = gate if gate > now_us else 0
        return self._engine.reschedule(
            scope_key(scope), check.uuid_bytes(job_id), priority, gate, ", ".join(told), now_us
        )


def _seconds(us: int) -> str:
    return f"{us / 1_000_000:.3f}".rstrip("0").rstrip(".") + " s"
