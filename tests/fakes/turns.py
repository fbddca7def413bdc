"""Letting the event loop run until something holds, without counting on time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 1000
"""Turns of the loop in which everything that needs no time must have happened."""

PATIENCE_S = 120.0
"""In which, on the busiest of machines, everything must have happened that needs more than the loop."""


async def turn() -> None:
    """Let everything that is ready run once."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    loop.call_soon(done.set_result, None)
    await done


async def settle(turns: int = 50) -> None:
    """Let everything that is ready run, and what that makes ready, and so on."""
    for _ in range(turns):
        await turn()


async def until(holds: Callable[[], object], what: str = "") -> None:
    """Run until `holds()`; fails if it never does, however often the loop turns."""
    for _ in range(PATIENCE):
        if holds():
            return
        await turn()
    raise AssertionError(f"never came about: {what or holds}")


async def eventually(holds: Callable[[], object], what: str = "") -> None:
    """Run until `holds()`, which takes sockets or other threads besides the loop, and their time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            while not holds():
                await asyncio.to_thread(int)
            return
    raise AssertionError(f"never came about: {what or holds}")
