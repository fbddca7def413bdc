"""Columns that Delta cannot hold, merge or cluster by: told before anything is changed, or mended."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.spark.connectors.delta_tables import Table, put
from worker.sinks.base import Field
from worker.sinks.errors import SinkError
from worker.sinks.fence import Mark
from worker.spark.classic.rows import RddBatch

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests.integration.spark.conftest import Flights
    from worker.sinks.delta.sink import DeltaSink


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Table:
    return Table(spark, tmp_path / "table")


def begin(table: Table, token: int, frame: DataFrame, **options: Any) -> DeltaSink:
    """An owner that is ready for these columns."""
    sink = table.sink(token, **options)
    sink.claim()
    sink.prepare([Field(each["name"], each["type"]) for each in frame.schema.jsonValue()["fields"]])
    return sink


def write(sink: DeltaSink, batch_id: int, frame: DataFrame) -> None:
    sink.write(RddBatch(frame, Mark("c", batch_id, f"p{batch_id}"), lambda: None))


@pytest.mark.parametrize("name", ["a-b", "a:int", "`", "from"])
def test_a_nested_column_of_any_name_is_added_as_it_is(table: Table, name: str) -> None:
    """To a table that is there, as to a new one."""
    put(table.owner(1), table, 0, 1)
    quoted = f"`{name.replace('`', '``')}`"
    frame = table.spark.sql(
        f"SELECT 2L AS id, 'b1' AS v, struct(7 AS {quoted}) AS s, array(struct(1Y AS {quoted})) AS l"
    )
    write(begin(table, 2, frame, merge_schema=True), 1, frame)
    assert {(row.id, row.s and row.s[name]) for row in table.frame().collect()} == {(1, None), (2, 7)}


def test_columns_that_cannot_cluster_fail_each_start_until_they_are_corrected(table: Table) -> None:
    """The table has columns after the first of them, and is not clustered yet."""
    frame = table.spark.sql("SELECT 1L AS id, true AS flag")
    for token in (1, 2):
        with pytest.raises(SinkError, match="DELTA_CLUSTERING_COLUMN"):
            begin(table, token, frame, cluster_by=["flag"])
    write(begin(table, 3, frame, cluster_by=["id"]), 0, frame)
    begin(table, 4, frame, cluster_by=["flag"])
    detail = table.spark.sql(f"DESCRIBE DETAIL '{table.folder}'").first()
    assert detail is not None
    assert detail.clusteringColumns == ["id"]


def test_a_text_that_names_no_folder_is_one_key(table: Table) -> None:
    """Delta reads it as NULL from a table that is laid apart by it, so an upsert has to look for NULL."""
    upsert: dict[str, Any] = {"mode": "upsert", "key": ["k"]}
    sink = table.sink(1, **upsert)
    sink._partition_by = ("k",)
    sink.claim()
    sink.prepare([Field("id", "long"), Field("k", "string")])
    batches: list[list[str | None]] = [["", "a"], ["__HIVE_DEFAULT_PARTITION__", "a"], [None, ""]]
    for at, texts in enumerate(batches):
        rows = [(10 * at + nth, text) for nth, text in enumerate(texts)]
        write(sink, at, table.spark.createDataFrame(rows, "id long, k string").coalesce(1))
    assert {(row.id, row.k) for row in table.frame().collect()} == {(21, None), (11, "a")}


@pytest.mark.parametrize("options", [{}, {"mode": "upsert", "key": ["id"]}])
async def test_a_table_has_the_name_of_a_source(
    start: Any, flights: Flights, catch_up: Any, spark: SparkSession, options: dict[str, Any]
) -> None:
    """By which SQL finds the query's view first."""
    name = f"view_{uuid.uuid4().hex}"
    flights.add(files=1)
    query = await start(
        sources={name: flights.source},
        sql=f"SELECT * FROM {name}",
        sink={"format": "delta", "table": name, "options": options},
    )
    await catch_up(query)
    assert sorted(row.id for row in spark.table(name).collect()) == flights.ids


def test_what_is_no_delta_table_is_told_as_such(table: Table) -> None:
    """To a task that has never run there, it is not gone."""
    table.spark.range(3).write.parquet(table.place)
    with pytest.raises(SinkError, match=r"is no Delta table"):
        table.sink(1).claim()
