"""What the pages ask for: the same that the API answers, an error as an exception."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from manager.runtime.clock import read_clocks
from protocol.errors import Failure, RefusedError

if TYPE_CHECKING:
    from manager.cluster.directory import Directory
    from manager.core.tallies import Tally
    from manager.runtime.runtime import Runtime
    from protocol.messages.base import Request
    from protocol.messages.cluster import ManagerListResponse
    from protocol.messages.events import Event

Answer = TypeVar("Answer")


class Sources:
    """A manager, as the console looks at it."""

    def __init__(self, runtime: Runtime, directory: Directory) -> None:
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
        if isinstance(outcome, Failure):
            raise RefusedError(outcome.code, outcome.message, **outcome.fields)
        if not isinstance(outcome, kind):
            raise TypeError(f"{type(request).__name__} was answered by {type(outcome).__name__}")
        return outcome

    async def managers(self) -> ManagerListResponse:
        """All managers."""
        return await self._directory.managers()

    async def tallies(self) -> list[Tally]:
        """All groups."""
        return await self._directory.tallies()

    def is_here(self, group: str) -> bool:
        """Whether this manager has the group, or nobody else."""
        return self._directory.is_here(group)

    async def latest_events(
        self, before: int | None = None, limit: int = 100, group: str | None = None
    ) -> tuple[Event, ...]:
        """The newest events, the newest first."""
        return await self._runtime.feed.latest(before, limit, group)
