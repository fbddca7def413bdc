from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from definition.document import parse_definition
from tests.contracts.query_engine import CONTRACT, made_ready
from tests.fakes.query_engine import FakeEngine
from worker.query_engine import QuerySpec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.contracts.query_engine import Bench
    from tests.fakes.query_engine import FakeQuery

DEFINITION = parse_definition(b'{"source": {"format": "rate"}, "sink": {"format": "noop"}}')


class FakeBench:
    """Queries that fare as the contract wants them to."""

    def __init__(self) -> None:
        self.engine = FakeEngine()
        self._numbers = count()

    async def endless(self, *, is_prepared: bool = False) -> FakeQuery:
        spec = QuerySpec("g", f"t{next(self._numbers)}", 1, DEFINITION)
        prepared = await made_ready(self.engine, spec) if is_prepared else None
        return await self.engine.start(spec, prepared=prepared)

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
        self.engine.broken["no"] = "it cannot be"
        return await self.engine.start(QuerySpec("g", "no", 1, DEFINITION))


@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
async def test_the_fake_keeps_the_contract(clause: Callable[[Bench], Awaitable[None]]) -> None:
    """So that what is shown with the fake is shown of the real one."""
    await clause(FakeBench())
