"""A batch that was under way when its owner died, done again by the next one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.integration.spark.conftest import catch_up
from tests.integration.spark.kafka.conftest import orders

if TYPE_CHECKING:
    from tests.integration.spark.conftest import Database
    from tests.kafka.topic import Topic
    from worker.spark.engine import SparkEngine

JSON = {"format": "json", "schema": "id BIGINT"}


async def test_the_next_owner_does_it_again_and_goes_on(
    engine: SparkEngine, start: Any, topic: Topic, database: Database
) -> None:
    """At the first try: Spark's own figures of such a batch would end the query (SPARK-57438)."""
    definition = {"source": topic.source(value=JSON), "sql": "SELECT id FROM source", "sink": database.sink()}
    topic.produce(orders(6))
    query = await start(**definition)
    await catch_up(query)
    await query.stop(20)
    folder = Path(engine._settings.checkpoint(query.spec.group, "t"))
    for name in ("0", ".0.crc"):
        (folder / "commits" / name).unlink()
    topic.produce(orders(4, first=6))
    again = await start(token=2, **definition)
    await catch_up(again)
    assert database.ids() == list(range(10))
    assert again._handle.query.isActive
