"""Parked requests on the event loop, and how their answers reach them."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from manager.core.member import Parked
from protocol.errors import ErrorCode, Failure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from manager.core.member import Connection
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


class PendingReply(Reply):
    """One that somebody awaits."""

    __slots__ = ("_future", "outcome")

    def __init__(self, connection: Connection | None) -> None:
        super().__init__(connection)
        self.outcome: Outcome | None = None
        self._future: asyncio.Future[Outcome] | None = None

    def deliver(self, outcome: Outcome) -> None:
        """Hand the answer over; nobody may be there to take it any more."""
        if self.outcome is None:
            self.outcome = outcome
            if self._future is not None and not self._future.done():
                self._future.set_result(outcome)

    def answered(self) -> asyncio.Future[Outcome]:
        """The answer, once it is there; as most are there at once, look at `outcome` first."""
        self._future = asyncio.get_running_loop().create_future()
        return self._future


def deliver(answers: Iterable[tuple[Parked, Outcome]]) -> None:
    """Send answers, in order."""
    for parked, outcome in answers:
        if isinstance(parked, Reply):
            parked.deliver(outcome)


def deliver_instead(answers: Iterable[tuple[Parked, Outcome]], outcome: Outcome) -> None:
    """Send `outcome` to those whose own answers must not be heard."""
    deliver((parked, outcome) for parked, _ in answers)
