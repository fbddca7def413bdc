from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from tests.contracts.query_engine import CONTRACT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.contracts.query_engine import Bench
    from worker.spark.query import SparkQuery

ENDLESS = {"format": "rate", "options": {"rowsPerSecond": 5}}


class SparkBench:
    """Queries that fare as the contract wants them to, on real data."""

    def __init__(self, start: Any, flights: Any, database: Any, folder: Path) -> None:
        self._start = start
        self._flights = flights
        self._database = database
        self._folder = folder
        self._numbers = count()

    async def _run(self, **definition: Any) -> SparkQuery:
        number = next(self._numbers)
        sink = self._database.sink(f"table{number}")
        query: SparkQuery = await self._start(task=f"t{number}", sink=sink, **definition)
        return query

    async def endless(self, *, is_prepared: bool = False) -> SparkQuery:
        return await self._run(source=ENDLESS, is_prepared=is_prepared)

    async def bounded(self) -> SparkQuery:
        self._flights.add(files=1)
        return await self._run(source=self._flights.source, trigger={"available_now": True})

    async def failing(self) -> SparkQuery:
        self._flights.add(files=1)
        return await self._run(
            source=self._flights.source, sql="SELECT CAST(raise_error('wrong') AS STRING) AS no FROM source"
        )

    async def broken(self) -> SparkQuery:
        options = {"path": str(self._folder / "nowhere")}
        return await self._run(source={"format": "json", "schema": "a INT", "options": options})


@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
async def test_spark_keeps_the_contract(
    clause: Callable[[Bench], Awaitable[None]], start: Any, flights: Any, database: Any, tmp_path: Path
) -> None:
    """Real queries in a real JVM."""
    await clause(SparkBench(start, flights, database, tmp_path))
