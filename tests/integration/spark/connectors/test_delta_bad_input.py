"""What others do to a Delta table while a task writes there: a clear cause, nothing lost, nothing twice."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.delta_sessions import session_for_few_rows
from tests.integration.spark.connectors.delta_tables import Frozen, Table, put
from tests.integration.spark.connectors.unwritable import unwritable
from worker.query_engine import QueryError
from worker.sinks.errors import SchemaError, SinkError
from worker.spark.causes import refusal

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.spark.conftest import Flights

UPSERT: dict[str, Any] = {"mode": "upsert", "key": ["id"]}
ONCE = {"available_now": True}


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Table:
    return Table(spark, tmp_path / "table")


def somebody(spark: SparkSession) -> SparkSession:
    """A session that is no task's; VACUUM looks for files in as many jobs as it is told."""
    session = session_for_few_rows(spark)
    session.conf.set("spark.sql.runSQLOnFiles", "true")
    session.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")
    return session


def forget(table: Table) -> None:
    """As a process does that was not there before."""
    jvm: Any = table.spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def cause(error: BaseException) -> str:
    """What a user reads."""
    return str(refusal(error)).partition("\n")[0]


@pytest.mark.parametrize("statement", ["OPTIMIZE delta.`{}`", "VACUUM delta.`{}`"])
def test_upkeep_beside_an_append_is_in_nobody_s_way(
    table: Table, tmp_path: Path, spark: SparkSession, statement: str
) -> None:
    """The batch has written its files, and commits after it."""
    sink = table.owner(1)
    put(sink, table, 0, 1)
    put(sink, table, 1, 2)
    held = Frozen(table, sink, 2, tmp_path)
    somebody(spark).sql(statement.format(table.folder)).collect()
    assert held.end() is None
    assert [row[0] for row in table.rows] == [1, 2, 100]


def test_optimize_beside_a_merge_has_it_done_again(table: Table, tmp_path: Path, spark: SparkSession) -> None:
    """It has rewritten the files that the MERGE has read; the batch fails, and the next start writes it."""
    sink = table.owner(1, **UPSERT)
    put(sink, table, 0, 1)
    put(sink, table, 1, 2)
    held = Frozen(table, sink, 2, tmp_path)
    somebody(spark).sql(f"OPTIMIZE delta.`{table.folder}`").collect()
    failed = held.end()
    assert failed is not None
    assert "such as of OPTIMIZE, met the batch; it is written again" in cause(failed)
    assert put(table.owner(2, **UPSERT), table, 2, 100).rows == 1
    assert [row[0] for row in table.rows] == [1, 2, 100]


def test_vacuum_beside_a_merge_is_not_in_its_way(table: Table, tmp_path: Path, spark: SparkSession) -> None:
    """It takes only files that are a week old."""
    sink = table.owner(1, **UPSERT)
    put(sink, table, 0, 1)
    held = Frozen(table, sink, 1, tmp_path)
    somebody(spark).sql(f"VACUUM delta.`{table.folder}`").collect()
    assert held.end() is None
    assert [row[0] for row in table.rows] == [1, 100]


def test_a_table_that_is_told_to_forget_while_a_task_writes(table: Table, spark: SparkSession) -> None:
    """The batch that notices it is there, and the task goes on with it when the setting is gone."""
    sink = table.owner(1)
    put(sink, table, 0, 1)
    name, alter = "delta.setTransactionRetentionDuration", f"ALTER TABLE delta.`{table.folder}`"
    somebody(spark).sql(f"{alter} SET TBLPROPERTIES ('{name}' = 'interval 1 hours')")
    with pytest.raises(SinkError, match=f"forgets who has written to it .*UNSET TBLPROPERTIES .'{name}'"):
        put(sink, table, 1, 2)
    with pytest.raises(SinkError, match="forgets who has written to it"):
        table.owner(2)
    somebody(spark).sql(f"{alter} UNSET TBLPROPERTIES ('{name}')")
    assert put(table.owner(3), table, 1, 2).duplicate
    assert [row[0] for row in table.rows] == [1, 2]


def test_columns_that_somebody_adds_are_null_until_the_next_start(table: Table, spark: SparkSession) -> None:
    """Which says what to do about them."""
    sink = table.owner(1)
    put(sink, table, 0, 1)
    somebody(spark).sql(f"ALTER TABLE delta.`{table.folder}` ADD COLUMNS (extra INT)")
    put(sink, table, 1, 2)
    with pytest.raises(SchemaError, match=r"/table has a column extra, .*: select a value for it"):
        table.owner(2)
    assert [row[0] for row in table.rows] == [1, 2]


def test_a_table_that_is_laid_apart_otherwise_meanwhile(table: Table, spark: SparkSession) -> None:
    """The batch under way is laid as the table is now; a definition that says otherwise does not start."""
    sink = table.owner(1)
    put(sink, table, 0, 1)
    writer = somebody(spark).read.format("delta").load(str(table.folder)).write.format("delta")
    writer.mode("overwrite").option("overwriteSchema", "true").partitionBy("v").save(str(table.folder))
    put(sink, table, 1, 2)
    table.owner(2)
    other = table.sink(3)
    other._partition_by = ["id"]
    other.claim()
    with pytest.raises(SchemaError, match=r"sink.partition_by: the table file:.*/table is laid apart by v"):
        other.prepare(table.fields)
    assert [row[0] for row in table.rows] == [1, 2]


def test_a_table_that_was_made_again_with_other_columns(table: Table, spark: SparkSession) -> None:
    """The batch says so, not which column Spark misses; the next start has what to do."""
    sink = table.owner(1)
    put(sink, table, 0, 1)
    shutil.rmtree(table.folder)
    spark.range(1).selectExpr("id AS other").write.format("delta").save(str(table.folder))
    with pytest.raises(SinkError, match="was dropped and made again"):
        put(sink, table, 1, 2)
    with pytest.raises(SchemaError, match=r"/table has no column id: leave it out, add it to the table, or"):
        table.owner(2)
    assert table.frame().count() == 1


async def test_a_table_that_was_made_again_between_two_runs(
    start: Any, flights: Flights, table: Table
) -> None:
    """With the same columns: the checkpoint is ahead of it, and the task does not begin in the middle."""
    sink = {"format": "delta", "options": {"path": str(table.folder)}}
    flights.add(files=2)
    query = await start(source=flights.source, sink=sink, trigger=ONCE)
    assert await query.ended() is None
    empty = table.frame().limit(0)
    rows = table.spark.createDataFrame([], empty.schema)
    shutil.rmtree(table.folder)
    rows.write.format("delta").save(str(table.folder))
    flights.add()
    with pytest.raises(QueryError, match="the batches between them are missing; point the sink to"):
        await start(token=2, source=flights.source, sink=sink, trigger=ONCE)
    assert table.frame().count() == 0


@pytest.mark.parametrize("is_known", [True, False])
def test_a_log_that_has_a_hole_takes_no_batch(*, table: Table, is_known: bool) -> None:
    """Neither from who knows the table nor from who comes anew; with its file again, the task goes on."""
    sink = table.owner(1)
    put(sink, table, 0, 1)
    put(sink, table, 1, 2)
    entry = table.folder / "_delta_log" / f"{2:020}.json"
    text = entry.read_bytes()
    entry.unlink()
    if not is_known:
        forget(table)
    with pytest.raises(Exception, match="DELTA_VERSIONS_NOT_CONTIGUOUS") as failed:
        put(sink, table, 2, 3)
    assert "bring them back from a copy" in cause(failed.value)
    with pytest.raises(
        SinkError, match=f"the table {table.folder}: .DELTA_VERSIONS_NOT_CONTIGUOUS"
    ) as refused:
        table.owner(2)
    assert "bring them back from a copy" in cause(refused.value)
    entry.write_bytes(text)
    forget(table)
    put(table.owner(3), table, 2, 3)
    assert [row[0] for row in table.rows] == [1, 2, 3]


def test_a_log_that_loses_its_newest_entry_is_noticed(table: Table) -> None:
    """Delta writes the next batch in its place; no owner goes on as if the one before were there."""
    sink = table.owner(1)
    put(sink, table, 0, 1)
    put(sink, table, 1, 2)
    newest = max((table.folder / "_delta_log").glob("*.json"))
    newest.unlink()
    newest.with_suffix(".crc").unlink(missing_ok=True)
    with pytest.raises(SinkError, match=f"_delta_log of the table {table.folder} were deleted"):
        put(sink, table, 2, 3)
    with pytest.raises(SinkError, match="or reset the task"):
        table.owner(2)
    assert put(table.owner(3, resets=1), table, 0, 1).total > 0


def test_a_table_without_its_log_is_not_begun_anew(table: Table) -> None:
    """By the owner, or by the next one: rows are there that no log tells of."""
    sink = table.owner(1)
    put(sink, table, 0, 1)
    shutil.rmtree(table.folder / "_delta_log")
    with pytest.raises(SinkError, match=f"the table {table.folder} is gone, or its _delta_log: bring it"):
        put(sink, table, 1, 2)
    for claim in (sink.claim, lambda: table.owner(2)):
        with pytest.raises(SinkError, match=r"is no Delta table, or its _delta_log is gone: bring that back"):
            claim()
    assert not (table.folder / "_delta_log").exists()


def test_no_right_to_write(table: Table, tmp_path: Path) -> None:
    """Where no table can be made, into its log, into its folder; with the right, the task goes on."""
    with unwritable(tmp_path), pytest.raises(SinkError, match=f"the table {table.folder}: ") as refused:
        table.owner(1)
    assert "lacks a right there: grant it" in cause(refused.value)
    sink = table.owner(2)
    put(sink, table, 0, 1)
    for folder in (table.folder, table.folder / "_delta_log"):
        with unwritable(folder), pytest.raises(Exception, match=r"(?i)not permitted|denied") as failed:
            put(sink, table, 1, 2)
        assert f"{table.folder}" in cause(failed.value)
        assert "lacks a right there: grant it" in cause(failed.value)
    with unwritable(table.folder / "_delta_log"), pytest.raises(SinkError, match=f"{table.folder}"):
        table.owner(3)
    put(sink, table, 1, 2)
    assert [row[0] for row in table.rows] == [1, 2]
