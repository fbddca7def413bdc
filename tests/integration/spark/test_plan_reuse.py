"""Plans that are kept from batch to batch, and what Spark knows of the rows that are put into them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from worker.sinks.last_rows import in_order, last_of_each_key
from worker.spark.batches.batch_steps import Reading
from worker.spark.classic.plan_reuse import ReusedReading
from worker.spark.reading.unreadable import ASIDE, KIND

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SQL = "SELECT id, id % 3 AS key FROM source WHERE id < 5"


def batch(frame: DataFrame) -> DataFrame:
    """The rows as Spark hands those of a batch over: with what it knows of them."""
    session, java = frame.sparkSession, frame._jdf.queryExecution()
    jvm: Any = session._jvm
    logical = jvm.java.lang.Class.forName("org.apache.spark.sql.execution.LogicalRDD$")
    flags = [False] if session.version < "4.3" else [False, False]  # no stream; since 4.3: of no checkpoint
    made = logical.getField("MODULE$").get(None).fromDataset(java.toRdd(), frame._jdf, *flags)
    ours = jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, made)
    return ClassicDataFrame(ours, session)


def rows(spark: SparkSession, number: int, parts: int, where: str = "true") -> DataFrame:
    return batch(
        spark.range(0, number, 1, parts).where(where).selectExpr("id", f"CAST(NULL AS {KIND}) AS {ASIDE}")
    )


@pytest.fixture
def reused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> ReusedReading:
    """After a first batch, of few rows in one part, which are all that is asked for; nothing is made anew."""
    reused = ReusedReading(Reading("source", SQL, ()))
    assert reused.result(reused.begun(rows(spark, 4, 1, where="id < 5"))).count() == 4
    monkeypatch.setattr(Reading, "result", lambda *_: pytest.fail("it was not kept"))
    return reused


def test_rows_in_more_parts_than_those_of_the_first_batch_are_counted_and_grouped_as_one_batch(
    spark: SparkSession, reused: ReusedReading
) -> None:
    """As when Kafka had rows in one of its partitions at first: Spark takes no shuffle for one part."""
    begun = reused.begun(rows(spark, 10, 3))
    assert begun.agg({"*": "count"}).collect() == [(10,)]
    last = last_of_each_key(in_order(reused.result(begun)), ["key"])
    assert sorted(last.collect()) == [(2, 2), (3, 0), (4, 1)]


def test_what_is_true_of_the_rows_of_the_first_batch_is_not_taken_for_true_of_others(
    spark: SparkSession, reused: ReusedReading
) -> None:
    """Spark leaves out a filter that all rows are said to pass, and broadcasts what is said to be small."""
    result: Any = reused.result(reused.begun(rows(spark, 10_000, 1)))
    assert sorted(row.id for row in result.collect()) == list(range(5))
    assert result._jdf.queryExecution().analyzed().stats().sizeInBytes() > 10_000
