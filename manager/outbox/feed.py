"""Following the log: every reader at its own pace, from the storage; nothing is buffered for anybody."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from manager.background.supervision import Loop
from manager.storage.base import StorageError
from protocol.messages.events import Event, EventType

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from manager.storage.base import EventLog, LogPage

PAGE_LENGTH = 100
READERS = 2
"""Reads at a time: those who follow must not keep the writer from its connection."""
LOOK_EVERY_S = 1.0
"""How late events may be that another manager has written; those of this one are told of at once."""


def events_after(page: LogPage, after: int | None) -> tuple[Event, ...]:
    """The events of `page`; before them an `events.pruned` for those that are no longer kept.

    Args:
        page: as it was read.
        after: the last event the reader has; None if it takes what is kept, and misses nothing.
    """
    if after is None or after >= page.pruned_through:
        return page.events
    at_ms = page.events[0].at_ms if page.events else page.last_at_ms
    gap = Event(id=page.pruned_through, at_ms=at_ms, type=EventType.EVENTS_PRUNED, after=after)
    return (gap, *page.events)


class Feed:
    """Reads for many followers, and wakes them when there may be something new."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._readers = asyncio.Semaphore(READERS)
        self._version = 0
        self._newest = 0
        self._waiters: set[asyncio.Future[None]] = set()
        self._looking: Loop | None = None
        self._is_open = False

    def open(self) -> None:
        """The log can be read."""
        self._is_open = True
        self._looking = Loop(
            "looking for events", self._look, LOOK_EVERY_S, "events of other managers cannot be looked for"
        )

    def close(self) -> None:
        """Everybody who follows comes to the end."""
        self._is_open = False
        if self._looking is not None:
            self._looking.cancel()
        self.wake()

    def wake(self) -> None:
        """There may be new events."""
        self._version += 1
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def read(self, after: int, limit: int = PAGE_LENGTH, group: str | None = None) -> LogPage:
        """As the log's `read`.

        Raises:
            StorageError: it cannot be read now, or not any more.
        """
        if not self._is_open:
            raise StorageError("the manager is stopping")
        async with self._readers:
            return await self._log.read(after, limit, group)

    async def latest(
        self, before: int | None = None, limit: int = PAGE_LENGTH, group: str | None = None
    ) -> tuple[Event, ...]:
        """As the log's `latest`.

        Raises:
            StorageError: it cannot be read now, or not any more.
        """
        if not self._is_open:
            raise StorageError("the manager is stopping")
        async with self._readers:
            return await self._log.latest(before, limit, group)

    async def follow(self, after: int, group: str | None, idle_s: float) -> AsyncGenerator[LogPage]:
        """Page after page until the feed closes; an empty one where nothing came for `idle_s` seconds.

        Raises:
            StorageError: the log cannot be read now.
        """
        while self._is_open:
            version = self._version
            page = await self.read(after, group=group)
            yield page
            after = page.through
            if after == page.last_id:
                await self.wait_for_change(version, idle_s)

    @property
    def version(self) -> int:
        """Changes whenever there may be something new; for `wait_for_change`."""
        return self._version

    async def wait_for_change(self, since: int, at_most_s: float) -> None:
        """Wait until there may be something new since the version `since`, or the time is up."""
        if self._version != since:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(at_most_s):
                    await waiter
        finally:
            self._waiters.discard(waiter)

    async def _look(self) -> None:
        """What other managers write wakes nobody here by itself."""
        if not self._waiters:
            return
        newest = await self._log.newest()
        if newest != self._newest:
            self._newest = newest
            self.wake()
