"""Leases jobs for whatever room there is, reserved shares first, and sleeps while there is none of either."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from telha_queue.errors import StorageError, StoreClosed
from telha_queue.worker.claim import Claim

if TYPE_CHECKING:
    from telha_queue.job import Exact
    from telha_queue.queue import Queue
    from telha_queue.scope import Scope
    from telha_queue.worker.lanes import Share
    from telha_queue.worker.periodic import Ticks
    from telha_queue.worker.roster import Roster
    from telha_queue.worker.task import AnyTask
    from telha_queue.worker.watch import Watch

log = logging.getLogger("telha_queue.worker")

LOOK_SECS = 30.0
"""The longest sleep: a look now and then costs nothing, and mends whatever went wrong."""
_PAUSE_SECS = 1.0
"""After an error of the store."""


class Intake:
    """A thread that leases. One for a worker."""

    def __init__(
        self,
        queue: Queue,
        watch: Watch,
        roster: Roster,
        ticks: Ticks,
        tasks: Mapping[str, AnyTask],
        *,
        scope: Scope | None,
        worker_id: str,
        lease_ttl_secs: float | None,
        reaps: bool,
        start: Callable[[Claim], None],
        on_error: Callable[[StorageError | None], None],
    ) -> None:
        self._queue = queue
        self._watch = watch
        self._roster = roster
        self._tasks = tasks
        self._scope = scope
        self._worker_id = worker_id
        self._ttl_secs = lease_ttl_secs
        self._reaps = reaps
        self._ticks = ticks
        self._ticked_at = float("-inf")
        self._start = start
        self._on_error = on_error
        self._stopping = threading.Event()
        self._is_asleep = False
        self._passed = threading.Condition()
        self._begun = 0
        self._ended = 0
        self._found = False
        self._must_look = False
        self._is_well = True
        self._thread = threading.Thread(target=self._run, name="telha-intake", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Lease nothing more; returns when nothing is being leased."""
        self._stopping.set()
        self._roster.poke()  # after which its next look at the flag comes before its next sleep
        self.nudge()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def is_alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    def nudge(self) -> None:
        """There is more room than before: look again, if asleep."""
        if self._is_asleep:
            self._queue.wake()

    def look(self, timeout_secs: float) -> bool:
        """Have a look at the queue that begins now; whether it found anything, or did not end in time."""
        with self._passed:
            wanted = self._begun + 1
            self._must_look = True
            self._roster.poke()
            self.nudge()
            is_over = self._passed.wait_for(lambda: self._ended >= wanted or not self.is_alive, timeout_secs)
            return self._found or not is_over

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._pass()
            except StoreClosed:
                return
            except (StorageError, MemoryError) as error:
                if self._is_well:
                    log.error("nothing can be leased now; trying again every second: %s", error)
                self._is_well = False
                self._on_error(error if isinstance(error, StorageError) else StorageError("no memory"))
                self._stopping.wait(_PAUSE_SECS)

    def _pass(self) -> None:
        """Fill what room there is; if nothing was found for it, sleep until there may be something."""
        with self._passed:
            self._begun += 1
            self._must_look = False
        ticket = self._queue.ready_ticket(self._scope)
        changes = self._roster.changes
        found, looked_for = self._fill()
        if not self._is_well:
            self._is_well = True
            self._on_error(None)
        with self._passed:
            self._ended, self._found = self._begun, found
            self._passed.notify_all()
        if not found:
            self._sleep(looked_for, ticket, changes)

    def _fill(self) -> tuple[bool, list[Exact]]:
        """Lease what there is room for; whether there was anything, and of which kinds there was not enough."""
        if self._reaps:
            self._queue.reap_expired()
        if self._ticks and time.monotonic() - self._ticked_at >= LOOK_SECS:
            self._ticks.see_to_it()
            self._ticked_at = time.monotonic()
        looked_for: list[Exact] = []
        found = False
        for share in self._roster.shares:
            self._add(share, [])  # those in line for whom there is room by now
            n, kinds = self._roster.wanted(share)
            while n and not self._stopping.is_set():
                taken = self._lease(share, n, kinds)
                found = found or taken > 0
                if taken < n:
                    looked_for += [kind for kind in kinds if kind not in looked_for]
                    break
                n, kinds = self._roster.wanted(share)
        return found, looked_for

    def _sleep(self, looked_for: list[Exact], ticket: int, changes: int) -> None:
        if not looked_for:
            if not self._is_wanted():
                self._roster.wait_for_room(changes, LOOK_SECS)
            return
        self._is_asleep = True
        try:
            if self._roster.changes == changes and not self._is_wanted():
                self._queue.wait_ready(self._scope, looked_for, ticket, LOOK_SECS)
        finally:
            self._is_asleep = False

    def _is_wanted(self) -> bool:
        """Whether somebody waits for it to look again or to end."""
        return self._stopping.is_set() or self._must_look

    def lease_one(self, share: Share, kinds: Sequence[Exact]) -> Claim | None:
        """For a thread that goes on by itself: a job, which has no place yet; None if there is none, or on an error."""
        if self._stopping.is_set():
            return None
        try:
            claims = self._claims(share, 1, kinds)
        except StorageError:
            return None  # the next pass meets it, and tells
        return claims[0] if claims else None

    def _lease(self, share: Share, n: int, kinds: Sequence[Exact]) -> int:
        claims = self._claims(share, n, kinds)
        self._add(share, claims)
        return len(claims)

    def _add(self, share: Share, claims: Sequence[Claim]) -> None:
        for claim in self._roster.add(share, claims):
            self._start(claim)

    def _claims(self, share: Share, n: int, kinds: Sequence[Exact]) -> list[Claim]:
        records = self._queue.lease_many(
            self._scope, n, kinds, worker_id=self._worker_id, lease_ttl_secs=self._ttl_secs
        )
        if not records:
            return []
        now_ns, now_us = time.monotonic_ns(), self._queue.now_us()
        kept = self._watch.hold(records)
        claims = [
            Claim(self._queue, record, self._tasks[record.kind], held, share, now_ns, now_us)
            for record, held in zip(records, kept, strict=True)
        ]
        self._watch.remember(claims)
        return claims
