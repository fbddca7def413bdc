"""Checks of definitions at a Spark Connect server."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from definition.document import parse_definition
from worker.query_engine import CheckSpec

if TYPE_CHECKING:
    from tests.integration.spark.conftest import Database, Flights
    from worker.spark.engine import SparkEngine

NOOP = {"format": "noop"}


def wanted(rows: int = 10, begin: Any = "beginning", **definition: Any) -> CheckSpec:
    return CheckSpec("g", parse_definition(json.dumps(definition).encode()), rows, begin)


async def test_columns_rows_and_what_is_wrong(
    remote: SparkEngine, flights: Flights, database: Database
) -> None:
    """As in a JVM of the worker's own; that one thing only a start can tell is said."""
    flights.add(files=2)
    source = flights.source
    found = await remote.check(wanted(rows=2, begin="end", source=source, sink=database.sink()))
    assert [(each.name, each.type) for each in found.columns or ()] == [
        ("id", "bigint"),
        ("carrier", "string"),
        ("delay", "double"),
    ]
    assert found.rows == ((18, "UA", 9.0), (19, "AA", 9.5))
    assert found.problems == ()
    assert any("whether Spark can stream this" in note.message for note in found.notes)
    absent = {**source, "options": {"path": str(flights.folder / "absent")}}
    found = await remote.check(wanted(source=absent, sink=NOOP))
    [problem] = found.problems
    assert (problem.path, "[PATH_NOT_FOUND]" in problem.message) == ("source", True)
    found = await remote.check(wanted(source=source, sql="SELECT nothing FROM source", sink=NOOP))
    [problem] = found.problems
    assert (problem.path, "[UNRESOLVED_COLUMN" in problem.message) == ("sql", True)


async def test_one_that_is_given_up_ends_on_the_server(remote: SparkEngine, flights: Flights) -> None:
    """The next one has the server's processors to itself."""
    flights.add()
    slow = "SELECT sum(r.id % 7) AS s FROM source CROSS JOIN range(100000000000) AS r"
    computing = asyncio.Event()

    def at(step: str) -> None:
        if step == "Spark, for rows of the sources":
            computing.set()

    spec = wanted(source=flights.source, sql=slow, sink=NOOP, output_mode="complete")
    running = asyncio.ensure_future(remote.check(spec, at))
    await computing.wait()
    running.cancel()
    found = await remote.check(wanted(source=flights.source, sink=NOOP))
    assert len(found.rows) == 10
    with pytest.raises(asyncio.CancelledError):
        await running
