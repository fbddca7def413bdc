"""What a start holds against the brokers: what Spark will really read, source by source, and nothing else."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.spark.conftest import catch_up, refusal
from tests.integration.spark.kafka.conftest import orders
from tests.integration.spark.kafka.test_kafka_causes import made_anew
from tests.kafka import broker as kafka

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.spark.conftest import Database
    from tests.kafka.broker import Broker
    from tests.kafka.topic import Topic
    from worker.spark.engine import SparkEngine
    from worker.spark.query import SparkQuery

SQL = "SELECT partition, offset FROM source"
BOTH = "SELECT 'b' AS source, offset FROM b UNION ALL SELECT 'a' AS source, offset FROM a"
"""In another order than that of the definition."""


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The broker of another cluster."""
    with kafka.running(tmp_path_factory.mktemp("elsewhere")) as broker:
        yield broker


def assigned(topic: Topic, *numbers: int, **options: Any) -> dict[str, Any]:
    """A source that reads these partitions."""
    source = topic.source(options={"assign": json.dumps({topic.name: numbers}), **options})
    del source["options"]["subscribe"]
    return source


def by_pattern(topic: Topic, pattern: str, **options: Any) -> dict[str, Any]:
    """A source that reads what a pattern finds."""
    source = topic.source(options={"subscribePattern": pattern, **options})
    del source["options"]["subscribe"]
    return source


def checkpoint(engine: SparkEngine, query: SparkQuery) -> Path:
    """The folder of its checkpoint."""
    return Path(engine._settings.checkpoint(query.spec.group, query.spec.task))


def uncommit(folder: Path, batch: int = 0) -> None:
    """As if the owner had died in the batch: it was planned and not finished."""
    for name in (f"{batch}", f".{batch}.crc"):
        (folder / "commits" / name).unlink()


async def test_sources_of_one_topic_in_two_clusters_are_each_judged_by_their_own_offsets(
    start: Any, topic: Topic, elsewhere: Broker, database: Database, engine: SparkEngine
) -> None:
    """They go on, and each has a lag of its own; a loss in one of them is told of that one."""
    other = elsewhere.topic(topic.name, 1)
    topic.produce(orders(20), partition=0)
    other.produce(orders(3), partition=0)
    definition = {"sources": {"a": topic.source(), "b": other.source()}, "sql": BOTH, "sink": database.sink()}
    query = await start(**definition)
    await catch_up(query)
    await query.stop(20)
    query = await start(token=2, **definition)
    await catch_up(query)
    other.produce(orders(2), partition=0)
    await catch_up(query)
    lag = await engine.lag(query.spec)
    assert lag is not None
    assert (lag.rows, lag.lost) == (0, 0)
    assert sorted(each.committed or 0 for each in lag.partitions) == [0, 0, 5, 20]
    await query.stop(20)
    rows = database.query("SELECT source, count(*), max(offset) FROM flights GROUP BY source ORDER BY source")
    assert rows == [("a", 20, 19), ("b", 5, 4)]
    other.produce(orders(9), partition=0)
    other.delete_before({0: 9})
    told = await refusal(start, permanent=True, token=3, **definition)
    assert told.startswith(f"sources.b: [KAFKA_DATA_LOSS] topic {topic.name}, partition 0: wants offset 5, ")


async def test_sources_of_different_partitions_of_one_topic_go_on(
    start: Any, topic: Topic, database: Database, engine: SparkEngine
) -> None:
    """Each has the partitions that are its own."""
    topic.produce(orders(20), partition=0)
    topic.produce(orders(3), partition=1)
    sources = {"a": assigned(topic, 0), "b": assigned(topic, 1)}
    definition = {"sources": sources, "sql": BOTH, "sink": database.sink()}
    query = await start(**definition)
    await catch_up(query)
    await query.stop(20)
    topic.produce(orders(4, 3), partition=1)
    query = await start(token=2, **definition)
    await catch_up(query)
    lag = await engine.lag(query.spec)
    assert lag is not None
    assert [(each.partition, each.committed) for each in lag.partitions] == [(0, 20), (1, 7)]
    assert len(database.query("SELECT source FROM flights")) == 27


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT offset FROM source UNION ALL SELECT offset FROM source",
        "WITH s AS (SELECT offset FROM source) SELECT offset FROM s UNION ALL SELECT offset FROM s",
    ],
)
async def test_a_source_that_is_read_twice_goes_on(
    start: Any, topic: Topic, database: Database, sql: str
) -> None:
    """However many lines Spark writes of it."""
    topic.produce(orders(4), partition=0)
    definition = {"source": topic.source(), "sql": sql, "sink": database.sink()}
    query = await start(**definition)
    await catch_up(query)
    await query.stop(20)
    topic.produce(orders(2), partition=0)
    await catch_up(await start(token=2, **definition))
    assert len(database.query("SELECT offset FROM flights")) == 12


async def test_a_deleted_topic_of_a_pattern_is_a_loss_that_can_be_accepted(
    start: Any, broker: Broker, topic: Topic, database: Database
) -> None:
    """Spark goes on with those that are left; nobody knows whether it comes back, so it is tried again."""
    gone = broker.topic(f"{topic.name}-gone", 1)
    topic.produce(orders(4), partition=0)
    gone.produce(orders(5), partition=0)
    pattern = by_pattern(topic, f"^{topic.name}(-gone)?$")
    query = await start(source=pattern, sql=SQL, sink=database.sink())
    await catch_up(query)
    await query.stop(20)
    await asyncio.to_thread(_delete, gone)
    told = await refusal(start, permanent=False, token=2, source=pattern, sql=SQL, sink=database.sink())
    assert told.startswith(
        f"source: [KAFKA_DATA_LOSS] topic {gone.name}, partition 0: wants offset 5, and the"
    )
    accepted = by_pattern(topic, f"^{topic.name}(-gone)?$", failOnDataLoss=False)
    query = await start(token=3, source=accepted, sql=SQL, sink=database.sink())
    topic.produce(orders(3), partition=1)
    await catch_up(query)
    assert len(database.query("SELECT offset FROM flights")) == 12


def _delete(topic: Topic) -> None:
    """Returns when it is gone."""
    admin = topic.broker.admin()
    for deleted in admin.delete_topics([topic.name]).values():
        deleted.result(60)
    while topic.name in admin.list_topics(timeout=60).topics:
        pass


async def test_a_missing_partition_may_come(start: Any, topic: Topic, database: Database) -> None:
    """So its task tries again, and goes on when it has."""
    source = assigned(topic, 0, 3)
    told = await refusal(start, permanent=False, source=source, sql=SQL, sink=database.sink())
    assert f"topic {topic.name} has no partition 3" in told
    topic.widen(4)
    topic.produce(orders(2), partition=3)
    await catch_up(await start(source=source, sql=SQL, sink=database.sink()))
    assert database.query("SELECT partition, offset FROM flights ORDER BY offset") == [(3, 0), (3, 1)]


async def test_a_partition_that_is_assigned_no_more_is_no_loss(
    start: Any, topic: Topic, database: Database
) -> None:
    """Its rows are there. Spark would say that it was deleted."""
    topic.produce(orders(4), partition=0)
    definition = {"sql": SQL, "sink": database.sink()}
    query = await start(source=assigned(topic, 0, 1), **definition)
    await catch_up(query)
    await query.stop(20)
    told = await refusal(start, permanent=True, source=assigned(topic, 1), token=2, **definition)
    said = f"source.options.assign: does not name topic {topic.name}, partition 0, which the checkpoint"
    assert told.startswith(said)
    query = await start(source=assigned(topic, 0, 1), token=3, **definition)
    await catch_up(query)


async def test_a_batch_that_was_begun_is_done_and_then_the_partition_is_left_out(
    start: Any, topic: Topic, database: Database, engine: SparkEngine
) -> None:
    """Once its loss was accepted: Spark does the batch with all of its rows, and no row twice."""
    topic.produce(orders(4), partition=0)
    topic.produce(orders(3), partition=1)
    definition = {"sql": SQL, "sink": database.sink()}
    query = await start(source=assigned(topic, 0, 1), **definition)
    await catch_up(query)
    await query.stop(20)
    database.query("DELETE FROM flights")
    uncommit(checkpoint(engine, query))
    told = await refusal(start, permanent=True, source=assigned(topic, 1), token=2, **definition)
    assert "or set `failOnDataLoss: false`" in told
    query = await start(source=assigned(topic, 1, failOnDataLoss=False), token=3, **definition)
    await catch_up(query)
    topic.produce(orders(1), partition=0)
    topic.produce(orders(2), partition=1)
    await catch_up(query)
    rows = database.query("SELECT partition, offset FROM flights ORDER BY 1, 2")
    assert rows == [*((0, offset) for offset in range(4)), *((1, offset) for offset in range(5))]


async def test_a_batch_that_was_begun_wants_a_topic_that_is_gone_and_not_named(
    start: Any, topic: Topic, database: Database, engine: SparkEngine
) -> None:
    """Spark would wait for it for ever, whatever loss is accepted; so the task says what it lacks."""
    other = topic.broker.topic(f"{topic.name}-other", 1)
    topic.produce(orders(4))
    other.produce(orders(3))
    definition: dict[str, Any] = {"sql": SQL, "sink": database.sink()}
    both = topic.source(options={"subscribe": f"{topic.name},{other.name}"})
    query = await start(source=both, **definition)
    await catch_up(query)
    await query.stop(20)
    uncommit(checkpoint(engine, query))
    _delete(other)
    alone = topic.source(options={"failOnDataLoss": False})
    told = await refusal(start, source=alone, token=2, **definition)
    assert f"topic {other.name}, partition 0: the batch that was begun is to go from offset 0 to 3" in told


async def test_offsets_by_time_go_before_offsets(start: Any, topic: Topic, database: Database) -> None:
    """What Spark does not look at is not judged."""
    topic.produce(orders(4), partition=0)
    begin = {
        "startingOffsets": json.dumps({topic.name: {"0": 1000}}),
        "startingOffsetsByTimestamp": json.dumps({topic.name: {"0": 0, "1": 0, "2": 0}}),
        "startingOffsetsByTimestampStrategy": "latest",
    }
    await catch_up(await start(source=topic.source(options=begin), sql=SQL, sink=database.sink()))
    assert len(database.query("SELECT offset FROM flights")) == 4


async def test_to_begin_where_no_rows_are_is_a_loss_that_can_be_accepted(
    start: Any, topic: Topic, database: Database
) -> None:
    """Spark begins with the first one there is, or at the end."""
    for number in range(2):
        topic.produce(orders(9), partition=number)
    topic.delete_before({0: 5})
    begin = {"startingOffsets": json.dumps({topic.name: {"0": 2, "1": 1000, "2": 0}})}
    definition = {"sql": SQL, "sink": database.sink()}
    told = await refusal(start, permanent=True, source=topic.source(options=begin), **definition)
    assert f"topic {topic.name}, partition 0: wants offset 2, the earliest there is 5" in told
    accepted = topic.source(options={**begin, "failOnDataLoss": False})
    query = await start(source=accepted, **definition)
    await catch_up(query)
    topic.produce(orders(1), partition=1)
    await catch_up(query)
    rows = database.query("SELECT partition, offset FROM flights ORDER BY 1, 2")
    assert rows == [(0, 5), (0, 6), (0, 7), (0, 8), (1, 9)]


async def test_where_to_begin_is_not_asked_again_once_the_query_has_begun(
    start: Any, topic: Topic, database: Database, engine: SparkEngine
) -> None:
    """A first batch that was planned begins where it was planned, whatever partitions came since."""
    topic.produce(orders(4), partition=0)
    begin = {"startingOffsets": json.dumps({topic.name: {"0": 1, "1": 0, "2": 0}})}
    definition = {"source": topic.source(options=begin), "sql": SQL, "sink": database.sink()}
    query = await start(**definition)
    await catch_up(query)
    await query.stop(20)
    uncommit(checkpoint(engine, query))
    topic.widen(4)
    topic.produce(orders(2), partition=3)
    await catch_up(await start(token=2, **definition))
    rows = database.query("SELECT partition, count(*) FROM flights GROUP BY partition ORDER BY partition")
    assert rows == [(0, 3), (3, 2)]


async def test_a_topic_that_was_made_anew_in_the_first_batch_is_told(
    start: Any, topic: Topic, database: Database, engine: SparkEngine
) -> None:
    """By its id if it has as many rows again, and by its offsets if it has not."""
    topic.produce(orders(4), partition=0)
    definition = {"source": topic.source(), "sql": SQL, "sink": database.sink()}
    query = await start(**definition)
    await catch_up(query)
    await query.stop(20)
    uncommit(checkpoint(engine, query))
    await asyncio.to_thread(made_anew, topic, 3)
    told = await refusal(start, permanent=True, token=2, **definition)
    assert "the batch that was begun is to go from offset 0 to 4, and the next row will get 0" in told
    topic.produce(orders(6), partition=0)
    told = await refusal(start, permanent=True, token=3, **definition)
    assert told.startswith(f"source: [KAFKA_DATA_LOSS] topic {topic.name} was made anew (its id was ")


async def test_a_topic_that_was_made_anew_in_a_batch_is_a_loss_that_can_be_accepted(
    start: Any, topic: Topic, database: Database, engine: SparkEngine
) -> None:
    """Spark does the batch again as far as it can be done, and goes on at the end of what is there."""
    topic.produce(orders(4), partition=0)
    accepted = {"failOnDataLoss": False, "kafkaConsumer.pollTimeoutMs": 5000}  # else two minutes
    definition = {"source": topic.source(options=accepted), "sql": SQL}
    query = await start(**definition, sink=database.sink())
    await catch_up(query)
    await query.stop(20)
    uncommit(checkpoint(engine, query))
    await asyncio.to_thread(made_anew, topic, 3)
    topic.produce(orders(1), partition=0)
    topic.produce(orders(2), partition=1)
    query = await start(token=2, **definition, sink=database.sink())
    await catch_up(query)
    topic.produce(orders(1), partition=0)
    await catch_up(query)
    rows = database.query("SELECT partition, offset FROM flights ORDER BY 1, 2")
    assert rows == [(0, 0), (0, 1), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)]


async def test_patterns_are_java_s_and_find_as_spark_does(
    start: Any, topic: Topic, database: Database, engine: SparkEngine
) -> None:
    """A part of a name is enough, and classes that only Java knows match; the lag is of the same topics."""
    topic.produce(orders(4), partition=0)
    part = topic.name[1:]
    source = by_pattern(topic, rf"\p{{Alnum}}{part[:-1]}")
    query = await start(source=source, sql="SELECT topic, offset FROM source", sink=database.sink())
    await catch_up(query)
    found = {name for (name,) in database.query("SELECT DISTINCT topic FROM flights")}
    assert topic.name in found
    lag = await engine.lag(query.spec)
    assert lag is not None
    assert lag.rows == 0
    assert found <= {each.topic for each in lag.partitions}


async def test_a_pattern_that_is_none_is_told_with_its_place(
    start: Any, topic: Topic, database: Database
) -> None:
    """Only Java knows its patterns; Spark says what is wrong, and not where."""
    source = by_pattern(topic, "(")
    told = await refusal(start, permanent=True, source=source, sql=SQL, sink=database.sink())
    assert told.startswith("source.options.subscribePattern: PatternSyntaxException: Unclosed group")


async def test_a_pattern_that_goes_astray_holds_up_only_its_own_task(
    *, start: Any, broker: Broker, topic: Topic, database: Database, engine: SparkEngine, spec: Any
) -> None:
    """It is told as the cause after so many steps, and by the lag as well."""
    broker.topic("a" * 60 + "-", 1)
    source = by_pattern(topic, "(.*a){12}b")
    told = await refusal(start, permanent=True, source=source, sql=SQL, sink=database.sink())
    assert told.startswith("source.options.subscribePattern: (.*a){12}b looks at the name of topic")
    lag = await engine.lag(spec("t", 1, source=source, sql=SQL, sink=database.sink()))
    assert lag is not None
    assert "subscribePattern: (.*a){12}b" in (lag.trouble or "")
