"""Kafka's values as columns by Avro, by Spark alone: what is one record, and what is none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.spark.kafka_values import read, refused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def record(*fields: dict[str, Any], **more: Any) -> str:
    """Avro's schema of a record."""
    return json.dumps({"type": "record", "name": "order", "namespace": "shop", "fields": fields, **more})


ID = {"name": "id", "type": "long"}
NAME = {"name": "name", "type": ["null", "string"], "default": None}
AVRO = {"format": "avro", "schema": record(ID, NAME)}
NESTED = record(
    {
        "name": "deep",
        "type": {
            "type": "array",
            "items": {"type": "map", "values": json.loads(record(NAME, name="inner"))},
        },
    }
)
CONFLUENT = b"\0\0\0\0\1"
"""What a serializer of Confluent's puts before a record: zero, and the id of its schema."""
READER = {"avroSchema": record(NAME, {"name": "extra", "type": "string", "default": "d"})}


@pytest.mark.parametrize(
    "value",
    [
        *(CONFLUENT + b"\x02\x02\x02a", b"\x02\x02\x02a" * 2, b"\x02\x00 and more", b"\x02\x02\x02\xff"),
        *(b"", b"\x02", b"\x02\x02\x04a", b"\x02\x06", b'{"id":1}', b"\x02\x02\xfe\xff\xff\xff\x0f"),
    ],
)
@pytest.mark.parametrize("options", [{}, READER])
def test_what_is_not_one_record_fails_with_its_place(
    spark: SparkSession, value: bytes, options: dict[str, Any]
) -> None:
    """A header before it, more or less than one, no UTF-8, another format, lengths beyond its end."""
    with pytest.raises(Exception, match="topic t, partition 1, offset 7: cannot be taken apart as avro"):
        read(spark, value, **AVRO, options=options)


MOST = b"\xec\xff\xff\xff\x0f"
"""A length of 2³¹-10, as Avro writes it: the most that Java has room for in one array."""


@pytest.mark.parametrize(
    "kind",
    ["bytes", "string", {"type": "array", "items": "long"}, {"type": "map", "values": "long"}],
    ids=lambda kind: kind if isinstance(kind, str) else kind["type"],
)
def test_a_length_that_no_memory_has_room_for_is_one_of_a_bad_row(spark: SparkSession, kind: Any) -> None:
    """Avro's reader makes room before it sees the bytes, and the JVM would end."""
    payload: dict[str, Any] = {"format": "avro", "schema": record({"name": "b", "type": kind})}
    assert read(spark, MOST, on_error=None, **payload) == (None,)
    with pytest.raises(Exception, match="topic t, partition 1, offset 7: cannot be taken apart as avro"):
        read(spark, MOST, **payload)


@pytest.mark.parametrize(
    ("value", "row"), [(b"\x02\x02\x02a", (1, "a")), (b"\x02\x00", (1, None)), (None, (None, None))]
)
def test_one_record_is_a_row(spark: SparkSession, value: bytes | None, row: tuple[Any, ...]) -> None:
    """With a namespace of its own; nothing of ours is in it."""
    assert read(spark, value, **AVRO) == row


@pytest.mark.parametrize("name", ["avroSchema", "AVROSCHEMA"])
def test_a_reader_s_schema_counts_with_fail_too(spark: SparkSession, name: str) -> None:
    """It leaves columns out and adds others by their defaults, as Spark alone does."""
    options = {name: READER["avroSchema"]}
    for on_error in ("fail", "null"):
        assert read(spark, b"\x02\x02\x02a", **AVRO, options=options, on_error=on_error) == ("a", "d")


def test_texts_are_looked_at_however_deep_they_are(spark: SparkSession) -> None:
    """In keys and values of maps, in arrays, in records; null is none."""
    assert read(spark, b"\x02\x02\x02k\x02\x02a\0\0", format="avro", schema=NESTED) == ([{"k": ("a",)}],)
    assert read(spark, b"\x02\x02\x02k\x00\0\0", format="avro", schema=NESTED) == ([{"k": (None,)}],)
    for value in (b"\x02\x02\x02k\x02\x02\xff\0\0", b"\x02\x02\x02\xff\x02\x02a\0\0"):
        with pytest.raises(Exception, match="offset 7: cannot be taken apart as avro"):
            read(spark, value, format="avro", schema=NESTED)


@pytest.mark.parametrize(
    ("value", "good"),
    [(b"\x04\x02a\x02b\0", True), (b"\x04\x02a\x02\xff\0", False), (b"\x04\x02\xc3\x02\xa9\0", False)],
)
def test_each_text_of_an_array_is_utf_8_by_itself(spark: SparkSession, value: bytes, good: bool) -> None:  # noqa: FBT001
    """Two halves of a character are none."""
    schema = record({"name": "tags", "type": {"type": "array", "items": "string"}})
    if good:
        assert read(spark, value, format="avro", schema=schema) == (["a", "b"],)
        return
    with pytest.raises(Exception, match="offset 7: cannot be taken apart as avro"):
        read(spark, value, format="avro", schema=schema)


LON = record({"name": "id", "type": "lon"})


@pytest.mark.parametrize(
    ("payload", "place", "said"),
    [
        ({"schema": LON}, "schema", "Undefined schema: shop.lon"),
        ({"schema": '{"fields":[1]}'}, "schema", 'No type: {"fields":[1]}'),
        ({"schema": record({"name": "me", "type": ["null", "order"]})}, "schema", "recursive reference"),
        ({"schema": record(ID), "options": {"avroSchema": LON}}, "options", "Undefined schema: shop.lon"),
        ({"schema": record(ID), "options": {"recursiveFieldMaxDepth": "x"}}, "options", '"x"'),
    ],
)
@pytest.mark.parametrize("on_error", ["fail", "null"])
def test_what_spark_refuses_is_told_with_its_place(
    spark: SparkSession, payload: dict[str, Any], place: str, said: str, on_error: str
) -> None:
    """In its own words, and without names of ours."""
    path, line = refused(spark, format="avro", **payload, on_error=on_error)
    assert path == f"source.value.{place}"
    assert said in line
