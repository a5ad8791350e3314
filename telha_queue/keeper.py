"""Heartbeats that nobody has to think of: leases are renewed for as long as their holders work.

`LeaseKeeper` is what users see. It checks arguments and leaves the work to a thread: the native one of ext/keeper.hpp
where the engine has it and the queue runs on the system's clock, and elsewhere that of keeper_thread.py, which means
the same but needs the interpreter. It does not know what a job is about or who works on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from telha_queue import arguments as check
from telha_queue.clock import Clock
from telha_queue.errors import InvalidType, StoreForked
from telha_queue.many import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from telha_queue.engine import Engine, Outcomes
    from telha_queue.job import JobRecord, Lease
else:
    Protocol = object  # see named.py for why typing is not imported


class Held(Protocol):
    """One lease that is kept. Safe to use from any thread; one that nobody refers to is kept all the same."""

    @property
    def over(self) -> str | None:
        """Why it is no longer renewed, or None while it is.

        "lost": the store refused the renewal, because somebody else has ended the lease. "timeout": it was held for as
        long as it might be. "stalled": it made no progress in time. "ended": `end` or `close` was called, or the job
        was completed under this lease. What came first stays.
        """

    def progress(self) -> None:
        """The holder is getting on: `progress_secs` count from now."""


class Renewals(Protocol):
    """What renews leases on behalf of a keeper. Spans are microseconds; arguments were checked."""

    def hold(
        self, leases: list[JobRecord | Lease] | tuple[JobRecord | Lease, ...], timeout_us: int, progress_us: int | None
    ) -> list[Held]:
        """Begin to renew; one hold for each lease, in order."""

    def end(self, holds: Iterable[Held]) -> None:
        """Stop to renew. Raises TypeError for what is no hold of this kind."""

    def wait(self, wait_us: int) -> list[Held]:
        """The holds that are over and were not ended, each once; sleeps until there are some or the time is over."""

    def close(self) -> None:
        """End all holds, wake those who wait, and wait for the thread."""


class LeaseKeeper:
    """Renews leases in a thread of its own, a third of their ttl after they were taken or last renewed.

    Made by `Queue.keeper`; the thread starts with the first hold. Safe to use from many threads. Closed with its queue,
    or by `close`; then `hold` and `wait` raise StoreClosed.

    A disk that fails costs a lease nothing at once: the renewal is tried again every tenth of the ttl. A lease whose
    deadline has passed goes on being renewed, for it is in force until somebody takes it back.
    """

    def __init__(self, renewals: Renewals, forget: Callable[[LeaseKeeper], object]) -> None:
        self._renewals = renewals
        self._forget = forget

    def hold(
        self, leases: Iterable[JobRecord | Lease], *, timeout_secs: float = 600, progress_secs: float | None = None
    ) -> list[Held]:
        """Keep up to 1,000 leases from now on; one hold for each, in order.

        A lease is renewed for at most `timeout_secs`, and with `progress_secs` only while `Held.progress` is called at
        least that often. A `Lease`, which does not say when it ends, is renewed at once.
        """
        kept = leases if type(leases) is list or type(leases) is tuple else listed("leases", leases)
        timeout_us = check.span_us("timeout_secs", timeout_secs)
        progress_us = None if progress_secs is None else check.span_us("progress_secs", progress_secs)
        return self._renewals.hold(kept, timeout_us, progress_us)

    def end(self, holds: Iterable[Held]) -> None:
        """Stop to renew: no renewal begins after this returns, and `wait` returns none of these any more.

        Call it before the job is failed or released, so that a renewal which comes too late is not taken for a loss;
        before or after it is completed. Holds that are over already are left as they are.
        """
        try:
            self._renewals.end(holds)
        except TypeError as error:
            raise InvalidType(f"holds is a list of what this keeper's hold returned: {error}") from None

    def wait(self, wait_secs: float) -> list[Held]:
        """The holds that came to be over by loss, timeout or stall: each is returned once, to one caller.

        Sleeps until there are some or the time is over; Ctrl-C ends the wait within 50 ms. Raises StoreClosed when the
        keeper is closed and all have been returned.
        """
        return self._renewals.wait(check.span_us("wait_secs", wait_secs))

    def close(self) -> None:
        """End all holds, wake those who wait, and stop the thread. Again: does nothing."""
        self._renewals.close()
        self._forget(self)

    def abandon(self) -> None:
        """In a forked child: refuse every call, and touch no lock that a thread of the parent may hold. Internal."""
        self._renewals = ForkedRenewals()


class ForkedRenewals:
    """What is left of a keeper in a forked child, which has not its thread."""

    def hold(self, *_: object) -> list[Held]:
        """Refused."""
        raise StoreForked

    def end(self, holds: Iterable[Held]) -> None:
        """Nothing is renewed here."""

    def wait(self, wait_us: int) -> list[Held]:
        """Refused."""
        raise StoreForked

    def close(self) -> None:
        """Nothing to wait for."""


def renewals_of(
    engine: Engine,
    clock: Clock | None,
    now_us: Clock,
    extend_many: Callable[[list[JobRecord | Lease]], Outcomes],
    default_ttl_us: int,
) -> Renewals:
    """What renews the leases of a queue. `clock` is the one that it was given, `now_us` the one it goes by.

    Bounds are measured on a clock that was given, so that a test can turn it, and else on one that is never set.
    """
    if engine.capabilities.native_keeper and clock is None:
        from telha_queue._keeper import Keeper

        return Keeper(engine.renewer(), now_us(), default_ttl_us)
    from telha_queue.keeper_thread import ThreadKeeper, monotonic_us

    keeper = ThreadKeeper(extend_many, now_us, monotonic_us if clock is None else now_us, default_ttl_us)
    subscribe = getattr(clock, "subscribe", None)
    if subscribe is not None:
        subscribe(keeper.look_again)
    return keeper
