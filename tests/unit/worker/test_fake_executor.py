from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from definition.document import parse_definition
from tests.contracts.executor import CONTRACT
from tests.fakes.executor import FakeExecutor
from worker.executor import QuerySpec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.contracts.executor import Bench
    from tests.fakes.executor import FakeQuery

DEFINITION = parse_definition(b'{"source": {"format": "rate"}, "sink": {"format": "noop"}}')


class FakeBench:
    """Queries that fare as the contract wants them to."""

    def __init__(self) -> None:
        self.executor = FakeExecutor()
        self._numbers = count()

    async def endless(self) -> FakeQuery:
        return await self.executor.start(QuerySpec("g", f"t{next(self._numbers)}", 1, DEFINITION))

    async def bounded(self) -> FakeQuery:
        query = await self.endless()
        query.is_bounded = True
        query.end()
        return query

    async def failing(self) -> FakeQuery:
        query = await self.endless()
        query.end("it failed\nwith a trace")
        return query

    async def broken(self) -> FakeQuery:
        self.executor.broken["no"] = "it cannot be"
        return await self.executor.start(QuerySpec("g", "no", 1, DEFINITION))


@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
async def test_the_fake_keeps_the_contract(clause: Callable[[Bench], Awaitable[None]]) -> None:
    """So that what is shown with the fake is shown of the real one."""
    await clause(FakeBench())
