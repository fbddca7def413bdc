"""Waiting for conditions and for the first of two things, without polling."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class News:
    """Wakes whoever waits for a condition; to be told after each change that may make one true."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def tell(self) -> None:
        """Something has changed."""
        self._event.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until `holds()`."""
        while not holds():
            self._event.clear()
            await self._event.wait()


async def first(this: Awaitable[Any], that: Awaitable[Any]) -> bool:
    """Wait for either and cancel the other; whether `this` is done and `that` is not."""
    tasks = asyncio.ensure_future(this), asyncio.ensure_future(that)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                task.result()
        return tasks[0].done() and not tasks[1].done()
    finally:
        for task in tasks:
            task.cancel()
