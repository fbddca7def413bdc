"""Kafka's values as columns, by Spark alone: what is a row, and what is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as f

from definition.source import Payload, Source
from worker.spark.payload import take_apart

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "id BIGINT, name STRING, deep STRUCT<x: BIGINT>"
UNQUOTED: dict[str, Any] = {"allowUnquotedFieldNames": True, "allowComments": True}


def kafka(spark: SparkSession, column: str, value: bytes | None) -> DataFrame:
    """A row of Kafka's source, with bytes that no optimiser knows beforehand."""
    given = f.when(f.col("id") == 0, f.lit(value).cast("binary"))
    place = [f.lit("t").alias("topic"), f.lit(1).alias("partition"), f.lit(7).alias("offset")]
    return spark.range(1).select(given.alias(column), *place)


def read(spark: SparkSession, text: str | bytes | None, **payload: Any) -> tuple[Any, ...]:
    """The columns of one value, as those that a task's SQL sees."""
    value = text.encode() if isinstance(text, str) else text
    frame = kafka(spark, "value", value)
    source = Source(format="kafka", value=Payload(format="json", schema=SCHEMA, **payload))
    taken = take_apart(frame, source, "source")
    assert taken.columns == ["id", "name", "deep", "topic", "partition", "offset"]
    [row] = taken.collect()
    return tuple(row)[:3]


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ('{"id":1,"name":"a","deep":{"x":2}}', (1, "a", (2,))),
        (' {"id":1, "other": [{"id": 2}, {}]} \r\n\t', (1, None, None)),
        ('{"id":1,"name":"}{ \\" } é"}', (1, '}{ " } é', None)),
        ('{"id":null}', (None, None, None)),
        ('{"id":null,"other":5}\n', (None, None, None)),
        ("{}", (None, None, None)),
        (" { \n} \n", (None, None, None)),
        ("{'id':1}", (1, None, None)),
        (None, (None, None, None)),
    ],
)
def test_a_value_that_is_one_object_is_a_row(
    spark: SparkSession, text: str | None, row: tuple[Any, ...]
) -> None:
    """With white space around it, with other fields, with braces in its texts."""
    assert read(spark, text) == row
    assert read(spark, text, on_error=None) == row


@pytest.mark.parametrize(
    "text",
    [
        *('{"id":1}{"id":2}', '{"id":1} {"id":2}', '{"id":1},{"id":2}', '{"id":1}\n{"id":2}\n'),
        *('{"id":1} and more', '{"id":1}}', '{"id":1} }', '{"id":1}]', '{"id":1}\x00', '{}{"id":1}'),
        *('{"id":12', '{"id":12 \n', '{"id":1,', '{"id":1,}', '{"name":"a', '{"name":"a}', '{"name":"a\\}'),
        *("", "  ", "}", "{", "5", '"id"', "null", "[]", '[{"id":1}]', '[{"id":1},{"id":2}]', "{,}"),
        *('{"other":1}', '{"other":{"id":1}}', "{'other':1}", b'{"name":"\xff"}'),
    ],
)
def test_anything_else_fails_with_its_place(spark: SparkSession, text: str | bytes) -> None:
    """More than one value, a part of one, another one, none of the fields."""
    with pytest.raises(
        Exception, match=r"source\.value: topic t, partition 1, offset 7: cannot be taken apart"
    ):
        read(spark, text)


@pytest.mark.parametrize("text", ['{"id":"x"}', '{"id":1,"deep":{"x":"y"}}', '{"id":1,"deep":5}'])
def test_another_type_fails_too(spark: SparkSession, text: str) -> None:
    """Also deep in it."""
    with pytest.raises(Exception, match="offset 7: cannot be taken apart as json"):
        read(spark, text)


@pytest.mark.parametrize("text", ['{"id":1}{"id":2}', '{"id":1} x', '{"id":12', "[]", '[{"id":1}]', ""])
def test_its_columns_are_null_where_that_is_wanted(spark: SparkSession, text: str) -> None:
    """Not those of what it begins with."""
    assert read(spark, text, on_error="null") == (None, None, None)


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("{id:1}", (1, None, None)),
        ("{/* : */ id: 1, // one\n name: 'a'}", (1, "a", None)),
        ("{id:null, other:1}", (None, None, None)),
    ],
)
def test_options_that_allow_more_than_json(spark: SparkSession, text: str, row: tuple[Any, ...]) -> None:
    """They count for whether a row has any of the fields, too."""
    assert read(spark, text, options=UNQUOTED) == row


@pytest.mark.parametrize("text", ["{other:1}", "{other:{id:1}}", "{id:1}{id:2}", "{id:1} x", "{id:1 /* }"])
def test_with_options_the_same_rows_fail(spark: SparkSession, text: str) -> None:
    """What has none of the fields, and what is more or less than one object."""
    with pytest.raises(Exception, match="offset 7: cannot be taken apart as json"):
        read(spark, text, options=UNQUOTED)


def test_keys_of_topics_are_read_the_same_way(spark: SparkSession) -> None:
    """As a column that has the fields, and no others."""
    frame = kafka(spark, "key", b'{"id":1}')
    for on_error in ("fail", "null"):
        key = Payload(format="json", schema="id BIGINT", on_error=on_error)
        [row] = take_apart(frame, Source(format="kafka", key=key), "source").select("key").collect()
        assert row.key.asDict() == {"id": 1}
