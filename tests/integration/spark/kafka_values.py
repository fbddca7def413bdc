"""One value of Kafka's, by Spark alone: as a task's SQL sees it, or what the task fails with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as f

from definition.source import Payload, Source
from worker.query_engine import QueryError
from worker.spark.reading.payload import take_apart

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "id BIGINT, name STRING, deep STRUCT<x: BIGINT>"


def kafka(spark: SparkSession, column: str, value: bytes | None) -> DataFrame:
    """A row of Kafka's source, with bytes that no optimiser knows beforehand."""
    given = f.when(f.col("id") == 0, f.lit(value).cast("binary"))
    place = [f.lit("t").alias("topic"), f.lit(1).alias("partition"), f.lit(7).alias("offset")]
    return spark.range(1).select(given.alias(column), *place)


def taken(spark: SparkSession, text: str | bytes | None, **payload: Any) -> DataFrame:
    """One value as a task's SQL sees it."""
    value = text.encode() if isinstance(text, str) else text
    source = Source(format="kafka", value=Payload(**{"format": "json", "schema": SCHEMA, **payload}))
    return take_apart(kafka(spark, "value", value), source, "source")


def read(spark: SparkSession, text: str | bytes | None, **payload: Any) -> tuple[Any, ...]:
    """Its own columns."""
    frame = taken(spark, text, **payload)
    assert frame.columns[-3:] == ["topic", "partition", "offset"]
    [row] = frame.collect()
    return tuple(row)[:-3]


def refused(spark: SparkSession, **payload: Any) -> tuple[str, str]:
    """The place of what Spark has against a payload, and the line that says it; for good, before any row."""
    with pytest.raises(QueryError) as refusal:
        taken(spark, "{}", **payload)
    assert refusal.value.permanent
    assert refusal.value.path
    line = refusal.value.cause.partition("\n")[0]
    assert "sparkherd" not in line
    return refusal.value.path, line
