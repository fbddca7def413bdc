from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from protocol.errors import ErrorCode
from protocol.messages.base import Response
from tests.fakes.clock import FakeClock
from tests.fakes.manager import failure
from tests.fakes.turns import settle
from worker.membership.draining import move_away

if TYPE_CHECKING:
    from protocol.errors import Failure


class Herd:
    """A manager that drains when told to, and tasks that are gone when the test says so."""

    def __init__(self, answer: Response | Failure) -> None:
        self.answer = answer
        self.drained: list[str] = []
        self.gone = asyncio.Event()
        self.alone = asyncio.Event()
        self.clock = FakeClock()

    async def drain(self, member_id: str) -> Response | Failure:
        self.drained.append(member_id)
        return self.answer

    async def own_nothing(self) -> None:
        await self.gone.wait()

    async def until_alone(self) -> None:
        await self.alone.wait()

    def depart(self) -> asyncio.Future[bool]:
        """A departure that may take ten seconds."""
        return asyncio.ensure_future(
            move_away("me", manager=self, managers=self, tasks=self, clock=self.clock, within_s=10.0)
        )


async def test_it_is_over_when_nothing_is_owned() -> None:
    """However soon that is."""
    herd = Herd(Response())
    departure = herd.depart()
    await settle()
    assert not departure.done()
    herd.gone.set()
    assert await departure
    assert herd.drained == ["me"]


async def test_when_the_time_is_up_the_rest_is_cut() -> None:
    """A query that does not stop must not keep the worker for ever."""
    herd = Herd(Response())
    departure = herd.depart()
    await herd.clock.advance(9.9)
    assert not departure.done()
    await herd.clock.advance(0.1)
    assert not await departure


async def test_whom_the_manager_does_not_drain_stops_everything_by_itself() -> None:
    """In order, and at once: there is nothing to wait for."""
    herd = Herd(failure(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    assert await herd.depart()


async def test_nobody_is_waited_for_when_all_managers_are_gone() -> None:
    """The one that was to drain it has stopped, too: nobody else will be given its tasks."""
    herd = Herd(Response())
    departure = herd.depart()
    await settle()
    herd.alone.set()
    assert await departure
