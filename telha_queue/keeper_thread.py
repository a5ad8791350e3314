"""The readable twin of ext/keeper.hpp: a thread of Python that renews leases.

It knows leases, two clocks and a function that renews; nothing of queues, engines or what the leases are for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from heapq import nsmallest

from telha_queue.clock import Clock
from telha_queue.config import MAX_BATCH_JOBS
from telha_queue.errors import JobError, JobNotFound, LeaseConflict, StoreClosed
from telha_queue.job import JobRecord, JobState, Lease
from telha_queue.many import tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from telha_queue.engine import Outcomes
    from telha_queue.keeper import Held

SHORTEST_PAUSE_US = 1000
"""Between two renewals of a lease, however short its ttl is. ext/keeper.hpp has it too."""
_NEVER_US = 2**63 - 1


class Hold:
    """One lease as `ThreadKeeper` keeps it; times are those of its two clocks."""

    __slots__ = (
        "_bounds_us", "_progress_us", "lease", "over", "renew_at_us", "stalls_at_us", "times_out_at_us", "ttl_us",
    )  # fmt: skip

    def __init__(self, lease: JobRecord | Lease, bounds_us: Clock, timeout_us: int, progress_us: int | None) -> None:
        self.lease = lease
        self.over: str | None = None
        self.ttl_us = 0
        self.renew_at_us = 0
        self.times_out_at_us = bounds_us() + timeout_us
        self.stalls_at_us = _NEVER_US
        self._bounds_us = bounds_us
        self._progress_us = progress_us
        self.progress()

    def progress(self) -> None:
        """The holder is getting on."""
        if self._progress_us is not None:
            self.stalls_at_us = self._bounds_us() + self._progress_us

    def note(self, lease: JobRecord | Lease, now_us: int, default_ttl_us: int) -> None:
        """Take from the lease as it is now when it is to be renewed: after a third of its ttl."""
        if isinstance(lease, JobRecord):
            self.ttl_us = lease.lease_ttl_us or default_ttl_us
            self.renew_at_us = (lease.lease_deadline or now_us) - self.ttl_us + self.ttl_us // 3
        else:
            self.ttl_us = default_ttl_us

    def is_over(self, bounds_us: int) -> str | None:
        """Whether a bound is reached, and which."""
        if self.times_out_at_us <= bounds_us:
            return "timeout"
        return "stalled" if self.stalls_at_us <= bounds_us else None


class ThreadKeeper:
    """A daemon thread that calls `extend_many`.

    Leases run on the queue's clock, `now_us`; bounds on `bounds_us`, which may be another. A clock that is moved by
    hand calls `look_again`.
    """

    def __init__(
        self,
        extend_many: Callable[[list[JobRecord | Lease]], Outcomes],
        now_us: Clock,
        bounds_us: Clock,
        default_ttl_us: int,
    ) -> None:
        self._extend_many = extend_many
        self._now_us = now_us
        self._bounds_us = bounds_us
        self._default_ttl_us = default_ttl_us
        self._holds: dict[Held, Hold] = {}
        self._over: dict[Held, None] = {}
        self._lock = threading.RLock()
        self._work = threading.Condition(self._lock)
        """Tells the thread that there may be something to do."""
        self._found = threading.Condition(self._lock)
        """Tells those who wait that something is over."""
        self._thread: threading.Thread | None = None
        self._sleeps_until_us = _NEVER_US
        self._must_look = False
        self._is_closed = False

    def hold(
        self, leases: list[JobRecord | Lease] | tuple[JobRecord | Lease, ...], timeout_us: int, progress_us: int | None
    ) -> list[Held]:
        tokens(leases)  # which says what is none
        now_us = self._now_us()
        holds = [Hold(lease, self._bounds_us, timeout_us, progress_us) for lease in leases]
        for hold in holds:
            hold.note(hold.lease, now_us, self._default_ttl_us)
        pause_us = self._pause_us(holds, now_us, self._bounds_us())
        with self._lock:
            if self._is_closed:
                raise StoreClosed("this keeper is closed")
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="telha-keeper", daemon=True)
                thread.start()
                self._thread = thread
            self._holds.update((hold, hold) for hold in holds)
            if monotonic_us() + pause_us < self._sleeps_until_us:
                self._work.notify()
            self._must_look = True
        return list(holds)

    def end(self, holds: Iterable[Held]) -> None:
        ended = list(holds)
        for hold in ended:
            if type(hold) is not Hold:
                raise TypeError(f"not {type(hold).__name__}")
        with self._lock:
            for held in ended:
                self._over.pop(held, None)
                if held in self._holds:
                    self._holds.pop(held).over = "ended"

    def wait(self, wait_us: int) -> list[Held]:
        give_up_us = monotonic_us() + wait_us
        with self._lock:
            while not self._over:
                if self._is_closed:
                    raise StoreClosed("this keeper is closed")
                left_us = give_up_us - monotonic_us()
                if left_us <= 0:
                    break
                self._found.wait(left_us / 1_000_000)
            found = list(self._over)
            self._over.clear()
            return found

    def look_again(self) -> None:
        """The clock was moved."""
        with self._lock:
            self._must_look = True
            self._work.notify()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            for hold in self._holds.values():
                hold.over = "ended"
            self._holds.clear()
            self._work.notify_all()
            self._found.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        try:
            while not self._is_closed:
                self._must_look = False
                now_us, bounds_us = self._now_us(), self._bounds_us()
                with self._lock:
                    due = self._due(now_us, bounds_us)
                    if not due:
                        self._sleep(now_us, bounds_us)
                if due:
                    self._renew(due, now_us)
        except StoreClosed:
            pass
        finally:
            self.close()  # whatever ended it: nobody holds or waits in vain

    def _due(self, now_us: int, bounds_us: int) -> list[Hold]:
        """Those to renew now, once those that are over are out; with them go those that would be next."""
        for hold in tuple(self._holds.values()):
            reason = hold.is_over(bounds_us)
            if reason is not None:
                self._give_up(hold, reason)
        if all(hold.renew_at_us > now_us for hold in self._holds.values()):
            return []
        due = (hold for hold in self._holds.values() if hold.renew_at_us <= now_us + hold.ttl_us // 10)
        return nsmallest(MAX_BATCH_JOBS, due, key=lambda hold: hold.renew_at_us)

    def _sleep(self, now_us: int, bounds_us: int) -> None:
        if self._must_look or self._is_closed:
            return
        pause_us = self._pause_us(self._holds.values(), now_us, bounds_us)
        self._sleeps_until_us = monotonic_us() + pause_us
        self._work.wait(min(pause_us / 1_000_000, threading.TIMEOUT_MAX))
        self._sleeps_until_us = 0  # it is awake

    def _pause_us(self, holds: Iterable[Hold], now_us: int, bounds_us: int) -> int:
        """How long nothing is to be done for these."""
        renewal_us = min((hold.renew_at_us for hold in holds), default=_NEVER_US) - now_us
        bound_us = min((min(hold.times_out_at_us, hold.stalls_at_us) for hold in holds), default=_NEVER_US) - bounds_us
        return max(min(renewal_us, bound_us), 0)

    def _renew(self, due: list[Hold], began_us: int) -> None:
        outcomes: Outcomes
        try:
            outcomes = self._extend_many([hold.lease for hold in due])
        except StoreClosed:
            raise
        except JobError as error:  # the disk fails: none of them was renewed
            outcomes = [error] * len(due)
        now_us = self._now_us()
        with self._lock:
            for hold, outcome in zip(due, outcomes, strict=True):
                if hold not in self._holds:  # ended meanwhile: what became of this renewal is nobody's concern
                    continue
                if isinstance(outcome, JobRecord):
                    hold.note(outcome, now_us, self._default_ttl_us)
                    # Not from now: a clock that was moved meanwhile, and then stands, would never come there.
                    hold.renew_at_us = max(hold.renew_at_us, began_us + SHORTEST_PAUSE_US)
                elif isinstance(outcome, (LeaseConflict, JobNotFound)):
                    self._give_up(hold, "ended" if _is_completed(outcome) else "lost")
                else:
                    hold.renew_at_us = now_us + max(hold.ttl_us // 10, SHORTEST_PAUSE_US)

    def _give_up(self, hold: Hold, reason: str) -> None:
        del self._holds[hold]
        hold.over = reason
        if reason != "ended":
            self._over[hold] = None
            self._found.notify_all()


def _is_completed(refusal: JobError) -> bool:
    """Whether the job was completed under the very lease that was to be renewed: by its holder, then."""
    return (
        isinstance(refusal, LeaseConflict) and refusal.state == JobState.COMPLETED and refusal.held == refusal.presented
    )


def monotonic_us() -> int:
    """A time that is never set."""
    return time.monotonic_ns() // 1000
