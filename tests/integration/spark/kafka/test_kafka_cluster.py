"""A cluster of three brokers, one of which dies while a task reads from it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import NewTopic

from tests.integration.spark.conftest import catch_up
from tests.integration.spark.kafka.conftest import orders, until
from tests.kafka import broker as kafka
from tests.kafka.topic import Topic
from worker.query_engine import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.spark.conftest import Database
    from tests.kafka.broker import Broker
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
    assert (told.rows, told.trouble, sum(each.end or 0 for each in told.partitions)) == (0, None, 80)
    assert _leader(topic) != leader
    await query.stop(20)


async def test_a_partition_without_a_leader_is_told_as_such_and_the_others_are_measured(
    engine: SparkEngine, spec: Any, brokers: list[Broker], database: Database
) -> None:
    """At once, while the cluster still takes the dead broker for the leader, and when it knows of none.

    Nor does it silence the cluster: a topic that the others have is read.
    """
    await asyncio.to_thread(_make_once_kept, brokers[0], "alone", 3)
    alone, shared = Topic(brokers[0], "alone"), brokers[0].topic("shared")
    for partition in range(3):
        alone.produce(orders(4), partition=partition)
    task = spec("t", 1, source=alone.source(), sql="SELECT offset FROM source", sink=database.sink())
    leader = _leader(alone)
    brokers[leader - 1].kill()
    told = await engine.lag(task)
    assert told is not None
    assert (told.trouble, told.unknown) == (None, 1)
    assert [each.end for each in told.partitions] == [None, 4, 4]
    await until(lambda: _leader(alone) == -1)
    unanswered = engine.kafka_requests["lag", False]
    told = await engine.lag(task)
    assert told is not None
    assert [each.end for each in told.partitions] == [None, 4, 4]
    assert engine.kafka_requests["lag", False] == unanswered
    with pytest.raises(QueryError) as refused:
        await engine.start(task)
    assert refused.value.outage
    assert "source: topic alone, partition 0 has no leader" in refused.value.cause
    other = await engine.lag(spec("u", 1, source=shared.source(), sql=SQL, sink=database.sink()))
    assert other is not None
    assert (other.trouble, other.unknown) == (None, 0)


def _make_once_kept(broker: Broker, name: str, partitions: int) -> None:
    """A topic whose partitions a broker each has, and no other."""
    admin = broker.admin()  # to be kept until the answer is there
    for made in admin.create_topics([NewTopic(name, partitions, replication_factor=1)]).values():
        made.result(30)


def _leader(topic: Topic) -> int:
    """Of its first partition, by number; -1 if it has none."""
    found = topic.broker.admin().list_topics(topic.name, 30).topics[topic.name]
    return int(found.partitions[0].leader)
