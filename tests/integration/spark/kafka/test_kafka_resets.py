"""A task is reset to offsets, to a time, or to what the broker still has; the answers are the broker's."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from protocol.messages.tasks import EARLIEST, TaskReset
from tests.integration.spark.kafka.conftest import orders
from worker.query_engine import QueryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from protocol.messages.tasks import Offsets
    from tests.integration.spark.conftest import Database
    from tests.kafka.topic import Topic
    from worker.spark.engine import SparkEngine
    from worker.spark.query import SparkQuery

SQL = "SELECT partition, offset FROM source"
HOUR_MS = 3_600_000
BEGUN_MS = int(time.time() * 1000) - 10 * HOUR_MS
ALL = [(partition, offset) for partition in range(3) for offset in range(10)]
"""What the topic has: ten rows in each partition, an hour apart."""


@pytest.fixture
def filled(topic: Topic) -> Topic:
    for partition in range(3):
        topic.produce(orders(10), partition=partition, times=[at(hour) for hour in range(10)])
    return topic


def at(hour: int) -> int:
    """When the row of that offset was written, in ms since 1970."""
    return BEGUN_MS + hour * HOUR_MS


def per_partition(topic: Topic, places: Iterable[int]) -> str:
    """What Spark takes as places to begin, one for each partition."""
    return json.dumps({topic.name: {str(number): place for number, place in enumerate(places)}})


async def reset(engine: SparkEngine, query: SparkQuery, offsets: Offsets) -> SparkQuery:
    """The task run anew as a manager's reset would have it."""
    spec = query.spec
    return await engine.start(replace(spec, token=spec.token + 1, reset=TaskReset(1, offsets)))


@pytest.mark.parametrize(
    ("offsets", "begins"),
    [
        (lambda _: EARLIEST, (0, 0, 0)),
        (lambda _: {"startingOffsets": "earliest"}, (0, 0, 0)),
        (lambda _: {"startingOffsets": "latest"}, (10, 10, 10)),
        (lambda topic: {"startingOffsets": per_partition(topic, (3, -2, -1))}, (3, 0, 10)),
        (lambda _: {"startingTimestamp": at(7)}, (7, 7, 7)),
        (
            lambda topic: {"startingOffsetsByTimestamp": per_partition(topic, (at(4), 0, at(9)))},
            (4, 0, 9),
        ),
    ],
    ids=["EARLIEST", "earliest", "latest", "offsets", "timestamp", "timestamps"],
)
async def test_a_reset_reads_again_from_there(
    *,
    start: Any,
    catch_up: Any,
    engine: SparkEngine,
    filled: Topic,
    database: Database,
    offsets: Callable[[Topic], Offsets],
    begins: tuple[int, ...],
) -> None:
    """Exactly the rows from that place on come again, and new ones behind them."""
    query = await start(source=filled.source(), sql=SQL, sink=database.sink())
    await catch_up(query)
    await query.stop(20)
    again = await reset(engine, query, offsets(filled))
    await catch_up(again)
    filled.produce(orders(1), partition=1)
    await catch_up(again)
    await again.stop(20)
    read_again = [(each, offset) for each in range(3) for offset in range(begins[each], 10)]
    assert _rows(database) == sorted([*ALL, *read_again, (1, 10)])


async def test_a_reset_to_what_is_not_there_is_told(
    start: Any, catch_up: Any, engine: SparkEngine, filled: Topic, database: Database
) -> None:
    """By its partition and both offsets; nothing is read, and the next reset mends it."""
    query = await start(source=filled.source(), sql=SQL, sink=database.sink())
    await catch_up(query)
    await query.stop(20)
    beyond: Offsets = {"startingOffsets": per_partition(filled, (0, 99, 0))}
    with pytest.raises(QueryError) as refused:
        await reset(engine, query, beyond)
    said = str(refused.value)
    assert f"topic {filled.name}, partition 1: wants offset 99, and the next row will get 10" in said
    assert _rows(database) == ALL
    spec = replace(query.spec, token=query.spec.token + 2, reset=TaskReset(2, EARLIEST))
    again = await engine.start(spec)
    await catch_up(again)
    await again.stop(20)
    assert _rows(database) == sorted(ALL * 2)


def _rows(database: Database) -> list[tuple[Any, ...]]:
    return database.query("SELECT partition, offset FROM flights ORDER BY partition, offset")
