"""What has its own time beside the groups: keeping the log of events short, and telling webhooks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

from manager.outbox.retention import Retention
from manager.runtime.clock import read_clocks

if TYPE_CHECKING:
    from manager.settings import ManagerSettings
    from manager.storage.base import EventLog


class Outbox:
    """Runs while its `async with` block does."""

    def __init__(self, events: EventLog, settings: ManagerSettings) -> None:
        keep = (settings.event_retention_ms, settings.event_retention_count)
        self._runs = [Retention(events, *keep, read_clocks).run]
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(run()) for run in self._runs]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
