"""Partitions that a topic is given while a task reads it, or does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.integration.spark.kafka.conftest import orders

if TYPE_CHECKING:
    from tests.integration.spark.conftest import Database
    from tests.kafka.topic import Topic

SQL = "SELECT partition, offset FROM source"


async def test_a_new_partition_is_read_from_its_first_row(
    start: Any, catch_up: Any, topic: Topic, database: Database
) -> None:
    """By the query that runs, and by one that goes on from a checkpoint; a new one would begin at the end."""
    latest = topic.source(options={"startingOffsets": "latest"})
    query = await start(source=latest, sql=SQL, sink=database.sink())
    await catch_up(query)
    topic.widen(4)
    topic.produce(orders(5), partition=3)
    await catch_up(query)
    assert _rows(database) == [(3, offset) for offset in range(5)]
    await query.stop(20)
    topic.widen(5)
    topic.produce(orders(7), partition=4)
    topic.delete_before({3: 5})
    await catch_up(await start(token=2, source=latest, sql=SQL, sink=database.sink()))
    assert _rows(database)[5:] == [(4, offset) for offset in range(7)]


def _rows(database: Database) -> list[tuple[Any, ...]]:
    return database.query("SELECT partition, offset FROM flights ORDER BY partition, offset")
