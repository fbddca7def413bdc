"""Time as a parameter: what reads a clock or waits gets one of these."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """A clock that never goes back, and a way to wait by it."""

    def now(self) -> float:
        """Seconds since some fixed moment; may be read from any thread."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait that long."""
        ...


class SystemClock:
    """The machine's clock. It goes on while the machine is suspended, as the manager's does meanwhile."""

    _SOURCE = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def now(self) -> float:
        """Seconds since the machine was started."""
        return time.clock_gettime(self._SOURCE)

    async def sleep(self, seconds: float) -> None:
        """Wait that long, by the event loop's clock."""
        await asyncio.sleep(seconds)


def wall_ms() -> int:
    """The wall clock, in milliseconds since 1970; it may be set, and differs from machine to machine."""
    return time.time_ns() // 1_000_000
