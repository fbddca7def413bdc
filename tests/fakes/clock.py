"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio

from tests.fakes.turns import settle


class FakeClock:
    """Keeps to `worker.clock.Clock`; `advance` jumps from one sleeper's deadline to the next."""

    def __init__(self, now: float = 1000.0) -> None:
        self._now = now
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        """Seconds, as far as the test has let them pass."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Wait until the test has let that much time pass."""
        if seconds <= 0:
            return
        sleeper = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._now + seconds, sleeper))
        await sleeper

    async def advance(self, seconds: float) -> None:
        """Let `seconds` pass; everyone who sleeps wakes at their time, and acts on it before time goes on."""
        end = self._now + seconds
        await settle()
        while (deadline := self._next_deadline()) is not None and deadline <= end:
            self._now = max(self._now, deadline)
            for time, sleeper in self._sleepers:
                if time <= self._now and not sleeper.done():
                    sleeper.set_result(None)
            await settle()
        self._now = end

    def freeze(self, seconds: float) -> None:
        """Let `seconds` pass in which nobody could act: the process was stopped."""
        self._now += seconds

    def _next_deadline(self) -> float | None:
        self._sleepers = [(time, sleeper) for time, sleeper in self._sleepers if not sleeper.done()]
        return min((time for time, _ in self._sleepers), default=None)
