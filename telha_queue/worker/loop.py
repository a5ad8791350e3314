"""The event loop on which `async def` handlers run: one, in a thread of its own. Knows no queue."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from telha_queue.worker.extras import wanted

T = TypeVar("T")


class Loop:
    """Starts with the first handler. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._context: Any = None
        self._portal: Any = None

    def start(self, handler: Callable[[], Awaitable[T]], then: Callable[[T | None], None]) -> Callable[[], object]:
        """Run a handler on the loop; `then` is called there with what it returned, None if it was cancelled.

        Returns what cancels it, from any thread.
        """
        portal = self._running()
        run = _Run(handler, then)
        portal.start_task_soon(run.whole)
        return lambda: portal.start_task_soon(run.cancel)

    def stop(self) -> None:
        """Cancel what runs and end the loop. Does not wait: a handler that blocks the loop keeps it."""
        with self._lock:
            portal, context = self._portal, self._context
            self._portal = self._context = None
        if portal is not None:
            portal.start_task_soon(portal.stop, True)
            threading.Thread(
                target=context.__exit__, args=(None, None, None), daemon=True, name="telha-loop-end"
            ).start()

    def _running(self) -> Any:
        with self._lock:
            if self._portal is None:
                self._context = wanted("anyio.from_thread", "worker").start_blocking_portal(
                    "asyncio", name="telha-loop"
                )
                self._portal = self._context.__enter__()
            return self._portal


class _Run(Generic[T]):
    """One handler on the loop."""

    def __init__(self, handler: Callable[[], Awaitable[T]], then: Callable[[T | None], None]) -> None:
        self._handler = handler
        self._then = then
        self._scope: Any = None

    async def whole(self) -> None:
        result: T | None = None
        try:
            with wanted("anyio", "worker").CancelScope() as self._scope:  # before whoever cancels it: loops keep order
                result = await self._handler()
        finally:
            self._then(result)

    async def cancel(self) -> None:
        self._scope.cancel()
