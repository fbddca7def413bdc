"""What the pages ask for: the same that the API answers, an error as an exception."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

from manager.clock import read_clocks
from manager.core.views.transfers import transfer_fields
from protocol.errors import Failure, RefusedError
from protocol.messages.transfers import Transfer

if TYPE_CHECKING:
    from collections.abc import Callable

    from manager.cluster.directory import Directory
    from manager.core.views.group_status import GroupStatus
    from manager.runtime.coordinator_runtime import CoordinatorRuntime
    from protocol.messages.base import Request
    from protocol.messages.cluster import ManagerListResponse
    from protocol.messages.events import Event

Answer = TypeVar("Answer")

FOUND_AT_MOST: Final = 100
READ_AT_ONCE: Final = 500
READS_AT_MOST: Final = 8


async def others_first() -> None:
    """Let heartbeats and whoever else waits for the event loop come in between two steps of a page."""
    await asyncio.sleep(0)


class PageData:
    """A manager, as the console looks at it."""

    def __init__(self, runtime: CoordinatorRuntime, directory: Directory) -> None:
        self._runtime = runtime
        self._directory = directory

    def now_ms(self) -> int:
        """The time that pages are made at."""
        return read_clocks().wall

    @property
    def is_storage_healthy(self) -> bool:
        """Whether anything can be changed."""
        return self._runtime.is_healthy

    async def ask(self, group: str, request: Request, kind: type[Answer]) -> Answer:
        """The group's answer, which is of `kind`.

        Raises:
            RefusedError: what the API would answer in its place.
        """
        outcome = await self._runtime.ask(group, request)
        await others_first()
        if isinstance(outcome, Failure):
            raise RefusedError(outcome.code, outcome.message, **outcome.fields)
        if not isinstance(outcome, kind):
            raise TypeError(f"{type(request).__name__} was answered by {type(outcome).__name__}")
        return outcome

    async def managers(self) -> ManagerListResponse:
        """All managers."""
        return await self._directory.managers()

    async def group_statuses(self) -> list[GroupStatus]:
        """All groups."""
        return await self._directory.group_statuses()

    async def transfers(self, group: str) -> tuple[Transfer, ...]:
        """The transfers under way that a group gives or gets, the newest first."""
        found = await self._directory.transfers.latest(group, "active")
        return tuple(Transfer(**transfer_fields(rows)) for rows in found)

    def is_here(self, group: str) -> bool:
        """Whether this manager has the group, or nobody else."""
        return self._directory.is_here(group)

    async def latest_events(
        self, before: int | None = None, limit: int = 100, group: str | None = None
    ) -> tuple[Event, ...]:
        """The newest events, the newest first."""
        return await self._runtime.feed.latest(before, limit, group)

    async def events_like(
        self, takes: Callable[[Event], bool], *, before: int | None = None, group: str | None = None
    ) -> tuple[tuple[Event, ...], int | None]:
        """The newest events that `takes` likes, among the latest `READ_AT_ONCE * READS_AT_MOST`.

        Returns:
            `FOUND_AT_MOST` of them at most, and before which id to go on; None if there are no more.
        """
        found: list[Event] = []
        for _ in range(READS_AT_MOST):
            page = await self.latest_events(before, READ_AT_ONCE, group)
            for event in filter(takes, page):
                found.append(event)
                if len(found) == FOUND_AT_MOST:
                    return tuple(found), event.id
            if len(page) < READ_AT_ONCE:
                return tuple(found), None
            before = page[-1].id
        return tuple(found), before
