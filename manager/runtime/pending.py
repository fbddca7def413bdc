"""Parked requests on the event loop, and how their answers reach them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from manager.core.purgatory import Parked
from protocol.errors import ErrorCode, Failure

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable

    from manager.core.connections import Connection
    from manager.core.turn import Outcome

UNAVAILABLE = Failure(
    ErrorCode.COORDINATOR_NOT_AVAILABLE, "the manager is stopping or cannot reach its database; try again"
)


class Reply(Parked, ABC):
    """A `Parked` whose answer goes somewhere; every parked request of the runtime is one."""

    __slots__ = ()

    @abstractmethod
    def deliver(self, outcome: Outcome) -> None:
        """Hand the answer over; nobody may be there to take it any more."""


class Pending(Reply):
    """One that somebody awaits."""

    __slots__ = ("future",)

    def __init__(self, connection: Connection | None, future: asyncio.Future[Outcome]) -> None:
        super().__init__(connection)
        self.future = future

    def deliver(self, outcome: Outcome) -> None:
        """Hand the answer over; nobody may be there to take it any more."""
        if not self.future.done():
            self.future.set_result(outcome)


def deliver(answers: Iterable[tuple[Parked, Outcome]]) -> None:
    """Send answers, in order."""
    for parked, outcome in answers:
        if isinstance(parked, Reply):
            parked.deliver(outcome)


def deliver_instead(answers: Iterable[tuple[Parked, Outcome]], outcome: Outcome) -> None:
    """Send `outcome` to those whose own answers must not be heard."""
    deliver((parked, outcome) for parked, _ in answers)
