"""Checks of definitions that read Kafka: a few rows of each partition, at either end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from definition.document import parse_definition
from tests.integration.spark.kafka.conftest import orders
from worker.query_engine import CheckSpec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from protocol.messages.checks import CheckResult
    from tests.kafka.topic import Topic
    from worker.spark.engine import SparkEngine

JSON = {"format": "json", "schema": "id BIGINT, customer STRING, total DOUBLE"}
SQL = "SELECT id, partition, offset FROM source"
NOOP = {"format": "noop"}


@pytest.fixture
def check(engine: SparkEngine) -> Callable[..., Awaitable[CheckResult]]:
    async def look(rows: int = 10, begin: Any = "beginning", **definition: Any) -> CheckResult:
        document = parse_definition(json.dumps({"sink": NOOP, **definition}).encode())
        return await engine.check(CheckSpec("g", document, rows, begin))

    return look


async def test_rows_of_both_ends(check: Any, topic: Topic) -> None:
    """In the order of their times, wherever the definition itself begins; values are taken apart."""
    for number in range(3):
        topic.produce(orders(1000, 1000 * number), partition=number)
    source = topic.source(value=JSON)
    source["options"]["startingOffsets"] = "latest"
    first = await check(rows=5, source=source, sql=SQL)
    assert [each.name for each in first.columns] == ["id", "partition", "offset"]
    assert [row[2] for row in first.rows] == [0, 1, 2, 3, 4]
    last = await check(rows=5, begin="end", source=source, sql=SQL)
    assert [row[2] for row in last.rows] == [995, 996, 997, 998, 999]
    assert {row[1] for row in last.rows} == {2}
    assert [row[0] for row in last.rows] == [2995, 2996, 2997, 2998, 2999]
    assert (last.problems, last.notes[0].path) == ((), "sink")


async def test_few_rows_are_read(check: Any, topic: Topic) -> None:
    """An aggregate is of these rows: a third of a thousand of each partition, not of all."""
    for number in range(3):
        topic.produce(orders(1000), partition=number)
    found = await check(
        source=topic.source(value=JSON),
        sql="SELECT partition, count(*) AS n, max(offset) AS last FROM source GROUP BY partition",
        output_mode="complete",
    )
    assert sorted(found.rows) == [(number, 333, 332) for number in range(3)]


async def test_a_row_that_is_none_of_the_schema_is_found(check: Any, topic: Topic) -> None:
    """Before it fails a task: with its topic, partition and offset."""
    topic.produce([*orders(3), b"not json"], partition=1)
    found = await check(source=topic.source(value=JSON), sql=SQL)
    [problem] = found.problems
    assert f"topic {topic.name}, partition 1, offset 3: cannot be taken apart as json" in problem.message
    assert found.rows == ()


async def test_an_empty_topic_and_none(check: Any, topic: Topic) -> None:
    """Columns are known all the same."""
    found = await check(source=topic.source(value=JSON), sql=SQL)
    assert ("source", "there are no rows in the topic") in [(n.path, n.message) for n in found.notes]
    assert (len(found.columns), found.rows, found.problems) == (3, (), ())
    absent = topic.source(value=JSON)
    absent["options"]["subscribe"] = "there-is-none"
    found = await check(source=absent, sql=SQL)
    [problem] = found.problems
    assert (problem.path, "there-is-none" in problem.message) == ("source.options.subscribe", True)
    assert (len(found.columns), found.rows) == (3, ())


async def test_a_broker_that_is_not_there(check: Any) -> None:
    """It is the source's problem."""
    options = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}
    found = await check(source={"format": "kafka", "options": options, "value": JSON}, sql=SQL)
    [problem] = found.problems
    assert problem.path == "source"
    assert "imed out" in problem.message or "imeout" in problem.message


async def test_a_source_that_the_query_does_not_read_is_not_asked_for(check: Any, topic: Topic) -> None:
    """Its brokers may be away, as they may while the task runs."""
    topic.produce(orders(3))
    away = {"format": "kafka", "options": {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}}
    sources = {"a": topic.source(value=JSON), "b": away}
    found = await check(sources=sources, sql="SELECT id FROM a")
    assert found.problems == ()
    assert len(found.rows) == 3
