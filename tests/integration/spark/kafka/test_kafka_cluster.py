"""A cluster of three brokers, one of which dies while a task reads from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.spark.conftest import catch_up
from tests.integration.spark.kafka.conftest import orders
from tests.kafka import broker as kafka

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.spark.conftest import Database
    from tests.kafka.broker import Broker
    from tests.kafka.topic import Topic
    from worker.spark.engine import SparkEngine

pytestmark = pytest.mark.timeout(900)

SQL = "SELECT id FROM source"
JSON = {"format": "json", "schema": "id BIGINT"}


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[list[Broker]]:
    """Each a controller of the quorum, too; a topic is kept three times, and two must have what is taken."""
    with kafka.running_cluster(tmp_path / "brokers") as brokers:
        yield brokers


async def test_a_broker_that_dies_while_a_task_reads_costs_nothing(
    engine: SparkEngine, spec: Any, start: Any, brokers: list[Broker], database: Database
) -> None:
    """It led a partition that is being read: each row is there once, the lag is told, the query goes on."""
    topic = brokers[0].topic("orders", partitions=3)
    source = topic.source(options={"maxOffsetsPerTrigger": 12}, value=JSON)
    topic.produce(orders(6))
    query = await start(source=source, sql=SQL, sink=database.sink())
    await catch_up(query)
    topic.produce(orders(60, first=6))
    leader = _leader(topic)
    brokers[leader - 1].kill()
    topic.produce(orders(14, first=66))
    lag = spec("t", 1, source=source, sql=SQL, sink=database.sink())
    while (told := await engine.lag(lag)) is None or told.trouble:
        """Until there is another leader, nobody can tell the ends."""
    await catch_up(query)
    assert database.ids() == list(range(80))
    told = await engine.lag(lag)
    assert told is not None
    assert (told.rows, told.trouble, sum(each.end for each in told.partitions)) == (0, None, 80)
    assert _leader(topic) != leader
    await query.stop(20)


def _leader(topic: Topic) -> int:
    """Of its first partition, by number."""
    found = topic.broker.admin().list_topics(topic.name, 30).topics[topic.name]
    return int(found.partitions[0].leader)
