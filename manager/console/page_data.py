"""What the pages ask for: the same that the API answers, an error as an exception."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

from manager.background.herd_alarms import rules_response
from manager.clock import read_clocks
from manager.core.alarms.book import AlarmBook
from manager.core.views.alarms import first_of, shown
from manager.core.views.transfers import transfer_fields
from protocol.errors import Failure, RefusedError
from protocol.messages.alarms import AlarmRulesResponse
from protocol.messages.transfers import Transfer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from manager.background.herd_alarms import HerdAlarms
    from manager.cluster.directory import Directory
    from manager.core.stored_rows import AlarmRow
    from manager.core.views.group_status import GroupStatus
    from manager.runtime.coordinator_runtime import CoordinatorRuntime
    from protocol.messages.alarms import Alarm, Silence
    from protocol.messages.base import Request
    from protocol.messages.cluster import ManagerListResponse
    from protocol.messages.events import Event

Answer = TypeVar("Answer")

FOUND_AT_MOST: Final = 100
READ_AT_ONCE: Final = 500
READS_AT_MOST: Final = 8
NO_RULES: Final = AlarmRulesResponse(rules=(), version=0, etag='"0"')


async def others_first() -> None:
    """Let heartbeats and whoever else waits for the event loop come in between two steps of a page."""
    await asyncio.sleep(0)


class PageData:
    """A manager, as the console looks at it."""

    def __init__(
        self, runtime: CoordinatorRuntime, directory: Directory, alarms: HerdAlarms | None = None
    ) -> None:
        self._runtime = runtime
        self._directory = directory
        self._alarms = alarms

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
        found = await self._directory.transfers.latest(group, "active", lambda name: name == group)
        return tuple(Transfer(**transfer_fields(rows)) for rows in found)

    def is_here(self, group: str) -> bool:
        """Whether this manager has the group, or nobody else."""
        return self._directory.is_here(group)

    async def firing_alarms(self) -> Sequence[Alarm]:
        """What fires in any group, the worst first, then the newest."""
        if self._alarms is None:
            return ()
        book = AlarmBook(silences=await self._alarms.silences())
        rows, now_ms = await self._alarms.firing(), self.now_ms()
        return await asyncio.to_thread(_all_shown, rows, book, now_ms)

    async def alarm_rules(self) -> AlarmRulesResponse:
        """All rules of alarms."""
        return NO_RULES if self._alarms is None else rules_response(await self._alarms.rules())

    async def silences(self) -> Sequence[Silence]:
        """All silences that are kept."""
        return () if self._alarms is None else await self._alarms.silences()

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


def _all_shown(rows: Sequence[AlarmRow], book: AlarmBook, now_ms: int) -> Sequence[Alarm]:
    """In a thread: there may be as many as there are tasks."""
    return [shown(row, book, now_ms) for row in first_of(rows, len(rows))]
