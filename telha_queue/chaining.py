"""What a queue does in one write for several verbs at once: transactions, and chains, which are made of them."""

from __future__ import annotations

from collections.abc import Iterable

from telha_queue import arguments as check
from telha_queue.engine import Committed, JobRecords
from telha_queue.job import JobRecord, JobSpec, Lease
from telha_queue.operating import OperableQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from telha_queue.transaction import Transaction, Work


class ChainingQueue(OperableQueue):
    """The verbs of a `Queue` that gather others."""

    def transaction(self, *, durability: str | None = None) -> Transaction:
        """Gather verbs on jobs, and rows of the program's own, and commit them as one write: see `Transaction`.

        `with queue.transaction() as tx:` commits at the end of the block, with the leases checked then. Raises
        LeaseConflict, JobNotFound or InvalidTransition there when one verb is refused; nothing is done then.
        """
        self._now_us()  # says it when this is a forked child, before anything is imported there
        from telha_queue.transaction import Transaction  # few programs need it

        to_disk = durability is not None and check.stronger(durability)
        return Transaction(lambda work: self._commit(work, to_disk), self._now_us, self._max_payload_bytes)

    def _commit(self, work: Work, to_disk: bool) -> Committed:
        for scope in work.groups:
            if scope.key not in self._named and scope.name is not None:
                self._keep_name(scope.key, scope.name)
        done = self._engine.transact(work.changes, work.engine_groups(), work.puts, self._now_us())
        if to_disk:
            self._take_to_disk()
        return done

    def enqueue_chained(
        self,
        lease: JobRecord | Lease,
        jobs: Iterable[JobSpec],
        *,
        result: bytes | None = None,
        late: str = "refuse",
        durability: str | None = None,
    ) -> JobRecords:
        """Finish a job and store its successors, up to 999, in its scope, in one write; returns the successors.

        They are there if and only if the first is completed. Raises LeaseConflict when the lease is lost.
        """
        return self._chain(lease, result, late, jobs, durability)[1:]

    def _chain(
        self,
        lease: JobRecord | Lease,
        result: bytes | None,
        late: str,
        then: Iterable[JobSpec],
        durability: str | None,
    ) -> JobRecords:
        """The finished job and its successors."""
        with self.transaction(durability=durability) as tx:
            tx.complete(lease, result=result, late=late)
            tx.enqueue_many(lease.scope, then)
        return tx.jobs
