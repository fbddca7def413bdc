from __future__ import annotations

import asyncio
from typing import Any

from worker.spark.query import _STATUS_EVERY, SparkQuery


async def look_around(query: SparkQuery) -> None:
    """As the monitor does, as often as it takes to see all there is."""
    for _ in range(_STATUS_EVERY):
        await asyncio.to_thread(query.poll)


async def test_a_batch_that_is_being_done_is_data_that_waits(
    *, start: Any, flights: Any, entrypoint: Any, stage: Any, catch_up: Any
) -> None:
    """Also of files, whose source does not tell how many are left: that is no lag of 0, but none."""

    def hold(context: Any) -> Any:
        frame = context.spark.readStream.schema(flights.source["schema"]).json(str(flights.folder))
        return context.foreach_batch(frame, lambda _, __: stage.pause())

    flights.add()
    query = await start(entrypoint=entrypoint(hold))
    await stage.until_reached()
    await look_around(query)
    assert query.has_work
    assert query.progress() is None
    stage.go_on.set()
    await catch_up(query)
    await look_around(query)
    assert not query.has_work
    assert "lag" not in query.progress().metrics


async def test_what_a_query_has_done_adds_up(start: Any, flights: Any, database: Any, catch_up: Any) -> None:
    """Every batch counts, those between two looks too."""
    flights.add(files=3)
    query = await start(source=flights.source, sink=database.sink())
    await catch_up(query)
    totals = query.progress().totals
    assert (totals.batches, totals.rows) == (3, 30)
    assert totals.busy_ms > query.progress().metrics["batch_ms"]


async def test_a_source_that_knows_its_newest_offset_tells_its_lag(start: Any) -> None:
    """Of this one every offset is read in the batch that was planned for it."""
    query = await start(
        source={"format": "rate", "options": {"rowsPerSecond": 1000}}, sink={"format": "noop"}
    )
    while query.progress() is None:
        await asyncio.to_thread(query.poll)
    assert query.progress().metrics["lag"] == {"offsets": 0}
