"""Keeping the log short; on several managers at once it does no harm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.background.supervision import Loop

if TYPE_CHECKING:
    from collections.abc import Callable

    from manager.core.turn import ClockReading
    from manager.storage.base import EventLog

PRUNE_EVERY_S = 60.0


class Retention:
    """Forgets what is too old, or too much, from time to time.

    Args:
        events: the log.
        keep_ms: how long an event is kept at least.
        keep_count: how many are kept at most.
        clock: tells the time.
    """

    def __init__(
        self, events: EventLog, keep_ms: int, keep_count: int, clock: Callable[[], ClockReading]
    ) -> None:
        self._events = events
        self._keep_ms = keep_ms
        self._keep_count = keep_count
        self._clock = clock

    def start(self) -> Loop:
        """Prune every `PRUNE_EVERY_S` seconds."""
        return Loop("pruning events", self.prune, PRUNE_EVERY_S, "old events cannot be forgotten now")

    async def prune(self) -> None:
        """Forget everything that is to be forgotten by now.

        Raises:
            StorageError: not now.
        """
        before_ms = self._clock().wall - self._keep_ms
        while await self._events.prune(before_ms, self._keep_count):
            pass
