"""The event loop on which `async def` handlers run: one, in a thread of its own. Knows no queue.

Nothing here ever waits for the loop: a handler that blocks it holds up the others on it, and nobody else.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")

PATIENCE_SECS = 5.0
"""For how long a handler that was cancelled may take to end before it counts as one that hangs."""


class Loop:
    """Starts with the first handler. Safe to use from many threads, its own included."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stopped = False
        self._tasks: set[asyncio.Task[Any]] = set()
        """Which asyncio itself does not keep alive."""

    def start(
        self,
        handler: Callable[[], Coroutine[Any, Any, T]],
        then: Callable[[T | None], None],
        on_hang: Callable[[], None],
    ) -> Callable[[], object]:
        """Run a handler on the loop; `then` is called there with what it returned, None if it was cancelled.

        Returns what cancels it, from any thread; `on_hang` is called if it has not ended a while after that.
        """
        run = _Run(handler, then, on_hang)
        loop = self._running()
        loop.call_soon_threadsafe(self._spawn, loop, run)
        return lambda: loop.call_soon_threadsafe(run.cancel)

    def stop(self) -> None:
        """Cancel what runs and end the loop. Does not wait: a handler that blocks the loop keeps it."""
        with self._lock:
            loop, self._is_stopped = self._loop, True
        if loop is not None:
            loop.call_soon_threadsafe(self._end, loop)

    def _spawn(self, loop: asyncio.AbstractEventLoop, run: _Run[Any]) -> None:
        task = run.task = loop.create_task(run.handler())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(run.ended)

    def _end(self, loop: asyncio.AbstractEventLoop) -> None:
        for task in list(self._tasks):
            task.cancel()
        loop.call_later(PATIENCE_SECS if self._tasks else 0, loop.stop)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                if self._is_stopped:
                    raise RuntimeError("the worker has stopped")
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._run, args=(self._loop,), name="telha-loop", daemon=True).start()
            return self._loop

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            loop.close()


class _Run(Generic[T]):
    """One handler on the loop. Its methods run there."""

    def __init__(
        self,
        handler: Callable[[], Coroutine[Any, Any, T]],
        then: Callable[[T | None], None],
        on_hang: Callable[[], None],
    ) -> None:
        self.handler = handler
        self._then = then
        self._on_hang = on_hang
        self.task: asyncio.Task[T] | None = None

    def ended(self, task: asyncio.Task[T]) -> None:
        """It has, one way or another; a task that was cancelled before its first step too."""
        has_result = not task.cancelled() and task.exception() is None
        self._then(task.result() if has_result else None)

    def cancel(self) -> None:
        if self.task is not None and not self.task.done():
            self.task.cancel()
            asyncio.get_running_loop().call_later(PATIENCE_SECS, self._look_again)

    def _look_again(self) -> None:
        if self.task is not None and not self.task.done():
            self._on_hang()
