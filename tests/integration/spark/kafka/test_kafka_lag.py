"""Lag by a real checkpoint and a real broker, with and without a query."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.spark.conftest import catch_up
from tests.integration.spark.kafka.conftest import eaten, orders
from worker.spark.classic import kafka

if TYPE_CHECKING:
    from pathlib import Path

    from protocol.messages.lag import TaskLag
    from tests.integration.spark.conftest import Database
    from tests.kafka.topic import Topic
    from worker.spark.engine import SparkEngine

SQL = "SELECT offset FROM source"
HOUR_MS = 3_600_000


@pytest.fixture
def lag(engine: SparkEngine, spec: Any, topic: Topic, database: Database) -> Any:
    """Measures the task `t`, whose query is started and stopped by the test."""

    async def measured(**options: Any) -> TaskLag:
        found = await engine.lag(
            spec("t", 1, source=topic.source(options=options), sql=SQL, sink=database.sink())
        )
        assert found is not None
        return found

    return measured


async def test_what_was_put_there_while_nothing_ran_is_behind(
    start: Any, topic: Topic, database: Database, lag: Any
) -> None:
    """By partition, with the age of the first row that was not read."""
    topic.produce(orders(30), partition=0)
    query = await start(source=topic.source(), sql=SQL, sink=database.sink())
    await catch_up(query)
    assert (await lag()).rows == 0
    await query.stop(20)
    topic.produce(orders(12), partition=1)
    told = await lag()
    assert (told.rows, told.trouble, told.lost) == (12, None, 0)
    places = [(each.partition, each.committed, each.end, each.behind) for each in told.partitions]
    assert places == [(0, 30, 30, 0), (1, 0, 12, 12), (2, 0, 0, 0)]
    assert told.partitions[1].behind_ms == told.behind_ms
    assert 0 <= told.behind_ms < 600_000


async def test_many_rows_of_one_partition_do_not_hide_the_age_of_others(
    start: Any, topic: Topic, database: Database, lag: Any
) -> None:
    """Each that is behind has the time of its first unread row, and no later one."""
    query = await start(source=topic.source(), sql=SQL, sink=database.sink())
    await catch_up(query)
    await query.stop(20)
    begun = int(time.time() * 1000) - HOUR_MS
    for partition in range(3):
        first = begun + 60_000 * partition
        topic.produce(orders(2_000), partition=partition, times=range(first, first + 2_000))
    told = await lag()
    ages = {each.partition: each.behind_ms for each in told.partitions}
    assert [(told.at_ms - ages[number]) - begun for number in range(3)] == [0, 60_000, 120_000]


async def test_partitions_that_are_not_assigned_are_not_behind(
    start: Any, topic: Topic, database: Database, engine: SparkEngine, spec: Any
) -> None:
    """A task that reads some of a topic is measured by those alone."""
    source = topic.source()
    del source["options"]["subscribe"]
    source["options"]["assign"] = json.dumps({topic.name: [0, 2]})
    for number in range(3):
        topic.produce(orders(10), partition=number)
    query = await start(source=source, sql=SQL, sink=database.sink())
    await catch_up(query)
    told = await engine.lag(spec("t", 1, source=source, sql=SQL, sink=database.sink()))
    assert told is not None
    assert (told.rows, [each.partition for each in told.partitions]) == (0, [0, 2])


async def test_before_the_first_batch_there_is_an_end_and_no_lag(topic: Topic, lag: Any) -> None:
    """Where it will begin is its options' business."""
    topic.produce(orders(5), partition=2)
    told = await lag()
    assert told.rows is None
    assert [each.end for each in told.partitions] == [0, 0, 5]


async def test_what_retention_has_eaten_is_lost(
    start: Any, topic: Topic, database: Database, lag: Any, tmp_path: Path
) -> None:
    """As Kafka's own tool for it does."""
    topic.produce(orders(4), partition=0)
    query = await start(source=topic.source(), sql=SQL, sink=database.sink())
    await catch_up(query)
    await query.stop(20)
    topic.produce(orders(10), partition=0)
    await eaten(topic, tmp_path, 0, 9)
    told = await lag()
    assert (told.lost, told.rows) == (5, 5)


async def test_rows_that_are_deleted_during_a_look_leave_the_lag_without_an_age(
    start: Any, topic: Topic, lag: Any, engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The consumer is refused an offset that was there a moment ago; the client is kept."""
    topic.produce(orders(4), partition=0)
    query = await start(source=topic.source(), sql=SQL, sink={"format": "noop"})
    await catch_up(query)
    await query.stop(20)
    topic.produce(orders(10), partition=0)
    topic.delete_before({0: 9})
    monkeypatch.setattr(kafka, "_unread", lambda *_: {(topic.name, 0): 4})
    backend: Any = engine._backend
    before = dict(backend.brokers.clients._kept)
    told = await lag()
    assert (told.rows, told.behind_ms, told.trouble) == (5, None, None)
    assert backend.brokers.clients._kept.items() >= before.items()
    assert backend.brokers.clients._kept
    monkeypatch.undo()
    assert (await lag()).behind_ms is not None


async def test_a_broker_that_is_not_there_is_the_trouble(
    engine: SparkEngine, spec: Any, topic: Topic, database: Database
) -> None:
    """In one line, in time."""
    source = topic.source(options={"kafka.bootstrap.servers": "127.0.0.1:1"})
    told = await engine.lag(spec("t", 1, source=source, sql=SQL, sink=database.sink()))
    assert told is not None
    assert told.rows is None
    assert "\n" not in (told.trouble or "\n")


async def test_a_source_that_the_query_does_not_read_has_no_lag(
    start: Any, engine: SparkEngine, spec: Any, topic: Topic, database: Database
) -> None:
    """Its brokers may be away; what the query reads is measured as ever."""
    topic.produce(orders(6))
    away = {"format": "kafka", "options": {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}}
    sql, sources = "SELECT offset FROM a", {"a": topic.source(), "b": away}
    query = await start(sources=sources, sql=sql, sink=database.sink())
    await catch_up(query)
    await query.stop(10)
    topic.produce(orders(2))
    told = await engine.lag(spec("t", 1, sources=sources, sql=sql, sink=database.sink()))
    assert told is not None
    assert (told.rows, told.trouble) == (2, None)
    sources = {"c": topic.source(), "b": away}
    told = await engine.lag(spec("t", 1, sources=sources, sql="SELECT offset FROM c", sink=database.sink()))
    assert told is not None
    assert told.trouble is not None


async def test_a_topic_that_is_not_there_has_no_partitions(
    engine: SparkEngine, spec: Any, topic: Topic, database: Database
) -> None:
    """It may come yet."""
    source = topic.source(options={"subscribe": "nobody-has-made-it"})
    told = await engine.lag(spec("t", 1, source=source, sql=SQL, sink=database.sink()))
    assert told is not None
    assert (told.partitions, told.rows, told.trouble) == ((), None, None)
