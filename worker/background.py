"""The background tasks of a daemon: the first that fails ends it, and at the end none is left behind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine
    from types import TracebackType

Result = TypeVar("Result")


class BackgroundTasks:
    """Spawns tasks; used as an asynchronous context manager, which cancels what still runs at its end.

    Differs from `asyncio.TaskGroup` in that its end does not wait for the tasks, most of which run for ever,
    and that a failure comes out as itself.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def __aenter__(self) -> Self:
        """Nobody is at work yet."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Cancel all and see them end."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._failed.done():
            self._failed.exception()  # seen, even if nobody watched

    def spawn(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """Run `work` in the background."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)
        return task

    async def watch(self, result: Awaitable[Result]) -> Result:
        """Wait for `result`; if a task fails before it is there, raise what that raised."""
        waiting = asyncio.ensure_future(result)
        either: set[asyncio.Future[Any]] = {waiting, self._failed}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if self._failed.done():
                self._failed.result()
            return await waiting
        finally:
            waiting.cancel()

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or self._failed.done():
            return
        if (error := task.exception()) is not None:
            self._failed.set_exception(error)
