"""Delta and Iceberg as sinks and sources: what Spark's own writers and ours promise, through a definition."""

from __future__ import annotations

import uuid
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from tests.integration.spark.conftest import Database, Flights
    from worker.spark.engine import SparkEngine
    from worker.spark.query import SparkQuery

ONCE = {"available_now": True}


class Lake(NamedTuple):
    """A table that is not there yet: what a definition calls it as sink and source, its rows, its files."""

    place: dict[str, Any]
    rows: Callable[[], DataFrame]
    files: Callable[[], list[str]]
    source: dict[str, Any]

    @property
    def ids(self) -> list[int]:
        return sorted(row.id for row in self.rows().collect())


@pytest.fixture(params=["delta", "iceberg", "iceberg_unfenced"])
def lake(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Lake:
    if request.param == "delta":
        path = str(tmp_path / "orders")
        read = partial(spark.read.format("delta").load, path)
        place = {"format": "delta_unfenced", "options": {"path": path}}
        return Lake(place, read, lambda: read().inputFiles(), {**place, "format": "delta"})
    name = f"lake.shop.t{uuid.uuid4().hex}"
    files = partial(spark.table, f"{name}.files")
    return Lake(
        {"format": request.param, "table": name},
        partial(spark.table, name),
        lambda: [row.file_path for row in files().collect()],
        {"format": "iceberg", "table": name},
    )


def forget_commit(engine: SparkEngine, query: SparkQuery, batch: int) -> None:
    """What a worker leaves behind that has written a batch and died before Spark noted that it has."""
    checkpoint = Path(engine._settings.checkpoint(query.spec.group, query.spec.task))
    for name in (f"{batch}", f".{batch}.crc"):
        (checkpoint / "commits" / name).unlink()


async def test_rows_go_into_a_table_and_out_of_it(
    *, start: Any, flights: Flights, database: Database, lake: Lake
) -> None:
    """Made by the first batch, laid apart by a column, read as a stream by another task."""
    flights.add(files=3)
    sink = {**lake.place, "partition_by": ["carrier"]}
    query = await start("in", source=flights.source, sink=sink, trigger=ONCE)
    assert await query.ended() is None
    assert lake.ids == flights.ids
    assert sum("carrier=UA" in file for file in lake.files()) == 3
    query = await start("out", source=lake.source, sink=database.sink(), trigger=ONCE)
    assert await query.ended() is None
    assert database.ids() == flights.ids


async def test_a_batch_that_is_done_again_is_there_once(
    *, start: Any, flights: Flights, engine: SparkEngine, lake: Lake
) -> None:
    """The tables know a query by its checkpoint, and its batches by their numbers."""
    flights.add(files=2)
    query = await start(source=flights.source, sink=lake.place, trigger=ONCE)
    assert await query.ended() is None
    forget_commit(engine, query, 1)
    flights.add(files=1)
    query = await start(token=2, source=flights.source, sink=lake.place, trigger=ONCE)
    assert await query.ended() is None
    assert lake.ids == flights.ids
