"""Waiting without polling: for a condition, for the first of two things, and between tries."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class ChangeSignal:
    """Wakes whoever waits for a condition; to be notified after each change that may make one true."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def notify(self) -> None:
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


_FURTHEST_DOUBLING = 60
"""Beyond it no delay of practical use exists, and floats would overflow."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """The delay before each try; `jitter` is the share by which it may be shorter or longer."""

    first_s: float
    limit_s: float
    jitter: float = 0.2

    def delay_s(self, tries: int, chance: float) -> float:
        """Seconds to wait after `tries` tries failed before (0 after the first failure).

        Args:
            tries: failures in a row before this one.
            chance: a random number in [0, 1).
        """
        doubled = min(self.first_s * 2.0 ** min(tries, _FURTHEST_DOUBLING), self.limit_s)
        return doubled * (1 + self.jitter * (2 * chance - 1))


MANAGER = Backoff(first_s=0.1, limit_s=1.0)
"""Between requests that a manager did not answer or could not serve (protocol §7)."""
