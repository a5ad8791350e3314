"""What a queue tells of its jobs, and what keeps the whole of it well. Changes no job."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from telha_queue import arguments as check
from telha_queue._seam import scope_key
from telha_queue.blocking import MAX_TICKET, ended_within, ready_ticket, wait_ready
from telha_queue.engine import JobRecords
from telha_queue.job import JobRecord, JobState
from telha_queue.lifecycle import OpenQueue
from telha_queue.scope import Scope, scope_as_stored

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os

    from telha_queue.data import Data
    from telha_queue.upkeep import FsckReport, SnapshotReport

MAX_LIST = 1000

KindArgument = str | Iterable[str] | None
Scopes = list[Scope]  # the verb `list` hides the class inside a queue


class ReadableQueue(OpenQueue):
    """The verbs of a `Queue` that change no job."""

    def get(self, scope: Scope, job_id: UUID) -> JobRecord:
        """The job of that id in that scope; JobNotFound for an unknown id and for one of another scope alike."""
        return self._engine.get(scope_key(scope), check.uuid_bytes(job_id))

    def find(self, job_id: UUID) -> JobRecord:
        """The job of that id in whatever scope. For operators: a tenant's request goes through `get`."""
        return self._engine.find(check.uuid_bytes(job_id))

    def find_leased_any(self, job_id: UUID) -> JobRecord | None:
        """The job of that id in whatever scope if it is leased now, else None."""
        record = self._engine.find(check.uuid_bytes(job_id))
        return record if record.state == JobState.LEASED else None

    def list(
        self,
        scope: Scope | None = None,
        *,
        state: JobState | None = None,
        kinds: KindArgument = None,
        limit: int = 100,
        after: JobRecord | None = None,
    ) -> JobRecords:
        """Up to `limit` (1 to 1,000) jobs in the order scope, state, priority, created_at.

        Pass the last record of one page as `after` to get the next. A job that changes state between two pages may
        be seen twice or not at all.
        """
        return self._engine.list(
            None if scope is None else scope_key(scope),
            check.state(state),
            check.kind_filter(kinds),
            check.whole("limit", limit, 1, MAX_LIST),
            check.page_key(after),
        )

    def data(self, family: str) -> Data:
        """A family of the program's own rows, to be read; `transaction` writes them. See `Data`."""
        from telha_queue.data import Data  # few programs need it

        return Data(family, self._engine)

    def counts(self, scope: Scope | None = None) -> dict[JobState, int]:
        """Exact number of jobs in each state, in one scope or in all, at one moment. Reads every key: not for loops."""
        return self._engine.counts(None if scope is None else scope_key(scope))

    def scopes(self) -> Scopes:
        """The scopes that have jobs, the system first; each with its name, if a job was enqueued to it by name."""
        return [scope_as_stored(key, name) for key, name in self._engine.scopes()]

    def ready_ticket(self, scope: Scope | None) -> int:
        """A number to take before a look at what is ready, for `wait_ready`; a scope of None is any scope."""
        return ready_ticket(None if scope is None else scope_key(scope), self._engine, self._now_us)

    def wait_ready(self, scope: Scope | None, kinds: KindArgument, ticket: int, wait_secs: float) -> None:
        """Sleep until a job of the scope and kinds may have become ready since the ticket was taken.

        Returns at once when that has happened already, so that nothing is missed by whoever takes a ticket, looks,
        and waits, in a loop; at the latest when a gate opens, `wake` is called, or the time is over; and now and then
        for nothing. Raises StoreClosed when the queue is closed meanwhile. Ctrl-C ends the wait within 50 ms.
        """
        key = None if scope is None else scope_key(scope)
        wanted, wait_us = check.kind_filter(kinds), check.span_us("wait_secs", wait_secs)
        wait_ready(key, wanted, check.whole("ticket", ticket, 0, MAX_TICKET), wait_us, self._engine, self._now_us)

    def wait(self, scope: Scope, job_id: UUID, timeout_secs: float) -> JobRecord:
        """Sleep until the job is completed or dead, and return it: a dead one too, so look at its `state`.

        Raises NotEnded, with the state in which it was last seen, when the time is over; a timeout of 0 looks once.
        JobNotFound for an unknown id and for one of another scope; StoreClosed when the queue is closed meanwhile.
        Ctrl-C ends the wait within 50 ms. A dead job that is retried before this has seen it is waited for again.
        """
        key, id_bytes = scope_key(scope), check.uuid_bytes(job_id)
        return ended_within(check.span_us("timeout_secs", timeout_secs), key, id_bytes, self._engine)

    def now_us(self) -> int:
        """The time by this queue's clock, in microseconds: never earlier than it was."""
        return self._now_us()

    def wake(self) -> None:
        """Make everybody who waits in this queue look again. Does nothing when it is closed."""
        self._engine.wake()

    def fsck(self, *, repair: bool = False) -> FsckReport:
        """Check every row against those that belong to it, as of one moment; reads all of the store.

        With `repair`, side rows are rebuilt from jobs, and rows that provably belong to no job are removed. No job's
        row is changed or removed, whatever its state. Others may go on using the queue meanwhile. When it is opened
        again, the check begins anew, at most 8 times; then StorageError.
        """
        return self._engine.fsck(check.flag("repair", repair))

    def snapshot(self, directory: str | os.PathLike[str]) -> SnapshotReport:
        """Make a directory that holds the whole queue as of one moment, while others go on using it.

        It is there, fsynced, when the call returns, and not at all when it raises: InvalidPath for a path at which
        something is, or inside of the queue; StorageError. `telha_queue.restore` makes a queue of it, if it is whole.
        """
        return self._engine.snapshot(directory)
