"""When to look for the storage again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 5.0


class RetryTimer:
    """Pauses that double from `FIRST_PAUSE_S` to `LONGEST_PAUSE_S`."""

    def __init__(self) -> None:
        self._next_s = FIRST_PAUSE_S
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def is_pausing(self) -> bool:
        """Whether it is too early for another attempt."""
        return self._alarm is not None

    def pause(self, retry: Callable[[], None]) -> float:
        """Have `retry` called after a pause, unless one is running already; returns it in seconds."""
        pause_s = self._next_s
        if self._alarm is None:
            self._next_s = min(pause_s * 2, LONGEST_PAUSE_S)
            self._alarm = asyncio.get_running_loop().call_later(pause_s, self._ring, retry)
        return pause_s

    def reset(self) -> None:
        """All is well: the next pause is a short one again."""
        self._next_s = FIRST_PAUSE_S

    def _ring(self, retry: Callable[[], None]) -> None:
        self._alarm = None
        retry()
