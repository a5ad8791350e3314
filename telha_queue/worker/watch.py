"""Acts on leases that are over before their handlers are: hears it from the keeper, and tells the worker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from telha_queue.errors import StoreClosed

if TYPE_CHECKING:
    from telha_queue.job import JobRecord
    from telha_queue.keeper import Held, LeaseKeeper
    from telha_queue.worker.claim import Claim
    from telha_queue.worker.settle import Settled

UNBOUNDED_SECS = 366 * 86_400
"""For how long the lease of a job without a deadline is kept."""
_LOOK_SECS = 5.0


class Watch:
    """A thread that waits for the keeper, and ends with it. Knows which claim each hold is for."""

    def __init__(self, keeper: LeaseKeeper, on_over: Callable[[Claim, str], None]) -> None:
        self._keeper = keeper
        self._on_over = on_over
        self._lock = threading.Lock()
        self._claims: dict[Held, Claim] = {}
        self._early: set[Held] = set()  # over before their claims were known
        self._thread = threading.Thread(target=self._run, name="telha-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    def hold(self, records: Sequence[JobRecord]) -> list[Held]:
        """Have leases kept."""
        return self._keeper.hold(records, timeout_secs=UNBOUNDED_SECS)

    def remember(self, claims: Sequence[Claim]) -> None:
        """Whose leases those are; to be told before their handlers begin."""
        with self._lock:
            for claim in claims:
                self._claims[claim.held] = claim

    def bound(self, claim: Claim, timeout_secs: float | None, progress_secs: float | None) -> None:
        """From now on its lease is kept for so long only."""
        longest = UNBOUNDED_SECS if timeout_secs is None else timeout_secs
        [held] = self._keeper.hold([claim.record], timeout_secs=longest, progress_secs=progress_secs)
        with self._lock:
            before, claim.held = claim.held, held
            self._claims.pop(before, None)
            self._claims[held] = claim
            is_early = held in self._early
            self._early.discard(held)
        self._keeper.end([before])
        if is_early and held.over is not None:
            self._on_over(claim, held.over)

    def forget(self, batch: Sequence[Settled]) -> None:
        """Their outcomes are written."""
        with self._lock:
            for one in batch:
                self._claims.pop(one.claim.held, None)
                self._early.discard(one.claim.held)

    def _run(self) -> None:
        while True:
            try:
                found = self._keeper.wait(_LOOK_SECS)
            except StoreClosed:
                return
            for held in found:
                with self._lock:
                    claim = self._claims.pop(held, None)
                    if claim is None:
                        self._early.add(held)
                if claim is not None and held.over is not None:
                    self._on_over(claim, held.over)
