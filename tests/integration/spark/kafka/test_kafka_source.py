"""Kafka as a source: a real broker, Spark's own connector, rows in a table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.spark.conftest import refusal
from tests.integration.spark.kafka.conftest import orders

if TYPE_CHECKING:
    from tests.integration.spark.conftest import Database
    from tests.kafka.topic import Topic

SCHEMA = "id BIGINT, customer STRING, total DOUBLE"
JSON = {"format": "json", "schema": SCHEMA}


async def test_json_becomes_columns_beside_those_of_kafka(
    start: Any, catch_up: Any, topic: Topic, database: Database
) -> None:
    """What SQL sees is the value's fields, where it lay, its key and its headers."""
    topic.produce(orders(30), key=b"k", headers=[("trace", b"1")])
    sql = (
        "SELECT id, total, key, topic, partition, offset, CAST(headers[0].value AS STRING) AS trace"
        " FROM source"
    )
    source = topic.source(key={"format": "text"}, value=JSON)
    await catch_up(await start(source=source, sql=sql, sink=database.sink()))
    assert database.ids() == list(range(30))
    assert database.query("SELECT DISTINCT key, topic, trace FROM flights") == [("k", topic.name, "1")]
    assert len(database.query("SELECT DISTINCT partition, offset FROM flights")) == 30


BAD = [b"not json", b"[1, 2]", b'{"id": "seven"}', b'{"other": 1}', b'{"id": 7', b"", b"\xff\xfe"]


@pytest.mark.parametrize("value", BAD)
async def test_a_row_that_is_no_json_of_the_schema_fails_its_batch(
    start: Any, topic: Topic, database: Database, value: bytes
) -> None:
    """With where it is; the rows before it in the batch are not there either, and no other try is made."""
    topic.produce(orders(3), partition=1)
    topic.produce([value], partition=1)
    query = await start(source=topic.source(value=JSON), sql="SELECT id FROM source", sink=database.sink())
    ended = await query.ended()
    where = f"source.value: topic {topic.name}, partition 1, offset 3: cannot be taken apart as json"
    assert where in ended.cause.partition("\n")[0]
    assert "on_error: null" in ended.cause.partition("\n")[0]
    assert ended.permanent
    assert database.query("SELECT count(*) FROM flights") == [(0,)]


async def test_null_instead_of_a_failure_is_the_user_s_word(
    start: Any, catch_up: Any, topic: Topic, database: Database
) -> None:
    """Spark's own way: columns are null, one by one where that can be told."""
    topic.produce([b"not json", b'{"id": 7, "total": "x"}', b'{"other": 1}'], partition=0)
    source = topic.source(value={**JSON, "on_error": None})
    sql = "SELECT offset, id, total FROM source"
    await catch_up(await start(source=source, sql=sql, sink=database.sink()))
    assert database.query("SELECT * FROM flights ORDER BY offset") == [
        (0, None, None),
        (1, 7, None),
        (2, None, None),
    ]


async def test_a_value_that_is_null_is_a_row_of_nulls(
    start: Any, catch_up: Any, topic: Topic, database: Database
) -> None:
    """Tombstones of compacted topics are no mistakes; nor are fields that are missing, or null."""
    topic.produce([None, b'{"id": 1}', b'{"id": null, "total": null}'], partition=0)
    sql = "SELECT offset, id, total FROM source"
    await catch_up(await start(source=topic.source(value=JSON), sql=sql, sink=database.sink()))
    assert database.query("SELECT * FROM flights ORDER BY offset") == [
        (0, None, None),
        (1, 1, None),
        (2, None, None),
    ]


async def test_csv_and_text(start: Any, catch_up: Any, topic: Topic, database: Database) -> None:
    """With options of Spark's; a text column has the name that the bytes had."""
    topic.produce([b"1;a", b"2;b"], partition=0, key=b"k")
    csv = {"format": "csv", "schema": "id INT, name STRING", "options": {"sep": ";"}}
    source = topic.source(value=csv)
    query = await start("csv", source=source, sql="SELECT id, name FROM source", sink=database.sink("csv"))
    await catch_up(query)
    assert database.query("SELECT * FROM csv ORDER BY id") == [(1, "a"), (2, "b")]
    source = topic.source(value={"format": "text"})
    query = await start("text", source=source, sql="SELECT value FROM source", sink=database.sink("text"))
    await catch_up(query)
    assert database.query("SELECT * FROM text ORDER BY value") == [("1;a",), ("2;b",)]


async def test_csv_of_too_few_columns_is_none(start: Any, topic: Topic, database: Database) -> None:
    """As JSON of another schema is none."""
    topic.produce([b"1,a", b"2"], partition=2)
    csv = {"format": "csv", "schema": "id INT, name STRING"}
    query = await start(source=topic.source(value=csv), sql="SELECT id FROM source", sink=database.sink())
    ended = await query.ended()
    assert f"topic {topic.name}, partition 2, offset 1: cannot be taken apart as csv" in ended.cause


AVRO = json.dumps(
    {
        "type": "record",
        "name": "order",
        "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}],
    }
)


async def test_avro_becomes_columns(start: Any, catch_up: Any, topic: Topic, database: Database) -> None:
    """By its own schema; a record of nulls is told from bytes that are none."""
    topic.produce([bytes([14, 2, 2]) + b"a", bytes([16, 0])], partition=0)
    source = topic.source(value={"format": "avro", "schema": AVRO})
    query = await start("good", source=source, sql="SELECT id, name FROM source", sink=database.sink())
    await catch_up(query)
    assert database.query("SELECT * FROM flights ORDER BY id") == [(7, "a"), (8, None)]
    topic.produce([b"\x01"], partition=0)
    ended = await query.ended()
    assert f"topic {topic.name}, partition 0, offset 2: cannot be taken apart as avro" in ended.cause


async def test_confluent_s_header_is_cut_off_in_sql(
    start: Any, catch_up: Any, topic: Topic, database: Database
) -> None:
    """As docs/connectors.md has it; a record that is cut off ends the query, which `value` would place."""
    header = bytes([0, 0, 0, 0, 1])
    topic.produce([header + bytes([14, 2, 2]) + b"a", header + bytes([16, 0])], partition=0)
    taken = f"from_avro(substring(value, 6), '{AVRO}', map('mode', 'FAILFAST')) AS r"
    sql = f"SELECT r.id, r.name, offset FROM (SELECT offset, {taken} FROM source)"
    query = await start(source=topic.source(), sql=sql, sink=database.sink())
    await catch_up(query)
    assert database.query("SELECT id, name, offset FROM flights ORDER BY id") == [(7, "a", 0), (8, None, 1)]
    topic.produce([header + bytes([14])], partition=0)
    ended = await query.ended()
    assert "alformed" in ended.cause


async def test_an_option_that_spark_refuses_is_told_before_anything_is_read(
    start: Any, topic: Topic, database: Database
) -> None:
    """With its place, and without another try."""
    value = {**JSON, "options": {"allowComments": "maybe"}}
    cause = await refusal(start, permanent=True, source=topic.source(value=value), sink=database.sink())
    assert cause.startswith('source.value.options: IllegalArgumentException: For input string: "maybe"')


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"format": "json", "schema": "id LONG LONG"}, "source.value.schema: [PARSE_SYNTAX_ERROR]"),
        ({"format": "json", "schema": "id LONG, Topic STRING"}, "source.value: has a field `Topic`"),
        ({"format": "avro", "schema": "long"}, "source.value.schema: is not JSON"),
        ({"format": "avro", "schema": '"long"'}, "source.value.schema: is not Avro's schema of a record"),
    ],
)
async def test_a_schema_that_is_none_is_told_before_anything_is_read(
    start: Any, topic: Topic, database: Database, value: dict[str, Any], said: str
) -> None:
    """With its place in the definition, and for good."""
    assert said in await refusal(
        start, permanent=True, source=topic.source(value=value), sink=database.sink()
    )


async def test_streams_are_joined_with_each_other_and_with_what_stands_still(
    start: Any, catch_up: Any, topic: Topic, database: Database, tmp_path: Any
) -> None:
    """Two topics and a file, each a view of its name; watermarks let the state of the join end."""
    payments = topic.broker.topic(f"{topic.name}-payments")
    (tmp_path / "customers.json").write_text(
        "".join(f'{{"customer": "c{n}", "name": "n{n}"}}\n' for n in range(3))
    )
    topic.produce(orders(6))
    payments.produce([json.dumps({"order": n, "paid": 1}).encode() for n in range(4)])
    late = {"column": "timestamp", "delay": "1 hour"}
    still = {"format": "json", "schema": "customer STRING, name STRING", "options": {"path": str(tmp_path)}}
    sql = (
        "SELECT o.id, c.name FROM orders o JOIN payments p"
        " ON o.id = p.order AND p.timestamp BETWEEN o.timestamp - INTERVAL 1 HOUR"
        " AND o.timestamp + INTERVAL 1 HOUR"
        " JOIN customers c ON o.customer = c.customer"
    )
    sources = {
        "orders": topic.source(value=JSON, watermark=late),
        "payments": payments.source(
            value={"format": "json", "schema": "order BIGINT, paid INT"}, watermark=late
        ),
        "customers": {**still, "static": True},
    }
    query = await start(sources=sources, sql=sql, sink=database.sink())
    await catch_up(query)
    assert database.query("SELECT * FROM flights ORDER BY id") == [(n, f"n{n % 3}") for n in range(4)]
