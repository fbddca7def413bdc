"""A parked request on the event loop: its answer is a future."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core.parked import Parked

if TYPE_CHECKING:
    import asyncio

    from manager.core.turn import Outcome


class Pending(Parked):
    """A `Parked` somebody awaits."""

    __slots__ = ("future",)

    def __init__(self, host: str, future: asyncio.Future[Outcome]) -> None:
        super().__init__(host)
        self.future = future

    def deliver(self, outcome: Outcome) -> None:
        """Hand the answer over; nobody may be there to take it any more."""
        if not self.future.done():
            self.future.set_result(outcome)
