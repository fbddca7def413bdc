"""What others do to an Iceberg table under a task: a clear cause, nothing lost, nothing twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.spark.connectors.lake_sinks import FIELDS, Table, Writer, meanwhile
from tests.integration.spark.connectors.test_iceberg_fence import COMPACT, EXPIRE, rows
from tests.integration.spark.connectors.unwritable import unwritable
from worker.sinks.base import Field
from worker.sinks.errors import SchemaError, SinkError
from worker.sinks.iceberg.publishing import Write
from worker.spark.causes import refusal

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

UPSERT: dict[str, Any] = {"mode": "upsert", "key": ["id"]}
ORPHANS = "CALL {catalog}.system.remove_orphan_files(table => '{path}')"


@pytest.fixture
def table(spark: SparkSession) -> Table:
    return Table(spark)


@pytest.mark.parametrize("statement", [COMPACT, EXPIRE, ORPHANS])
def test_upkeep_beside_a_merge_loses_nothing(
    table: Table, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    """What it makes vain is merged again, at the head as it is then."""
    writer = Writer(table, **UPSERT)
    writer.begin()
    writer.batch(0)
    writer.batch(1)
    with meanwhile(monkeypatch, Write, lambda: table.run(statement)):
        writer.batch(2)
    assert Writer(table, token=2, **UPSERT).begin() == 2
    assert table.ids == rows(0, 1, 2)


def test_columns_that_nobody_could_read_again_are_not_added(table: Table) -> None:
    """Iceberg itself takes them, and the table is lost to everybody."""
    writer = Writer(table)
    writer.begin()
    writer.batch(0)
    inner: list[Any] = [
        {"name": name, "type": "integer", "nullable": True, "metadata": {}} for name in ("A", "a")
    ]
    wider = (*FIELDS, Field("s", {"type": "struct", "fields": inner}))
    with pytest.raises(SchemaError, match="s has two fields of one name, A and a"):
        Writer(table, token=2, merge_schema=True).begin(wider)
    variant = (*FIELDS, Field("v", "variant"))
    with pytest.raises(SinkError, match=r"Invalid schema for v2: .*v.*variant"):
        Writer(table, token=3, merge_schema=True).begin(variant)
    assert Writer(table, token=4).begin() == 0
    assert table.ids == rows(0)


def test_partitions_that_iceberg_takes_beside_each_other(table: Table) -> None:
    """All but twice the same, which is told before the first of them is there."""
    by = ["id", "bucket(4, id)", "bucket(8, id)", "truncate(4, id)", "days(at)", "hours(at)"]
    fields = (*FIELDS, Field("at", "timestamp"))
    Writer(table, partition_by=by).begin(fields)
    Writer(table, token=2, partition_by=by).begin(fields)
    with pytest.raises(SchemaError, match=r"names days\(at\) twice"):
        Writer(table, token=3, partition_by=[*by, "day(AT)"]).begin(fields)


def test_columns_that_go_while_a_task_writes(table: Table) -> None:
    """The batch fails with the column, and so does the next start; with it again, the batch is written."""
    writer = Writer(table)
    writer.begin()
    writer.batch(0)
    table.run("ALTER TABLE {table} DROP COLUMN day")
    with pytest.raises(Exception, match="day"):
        writer.batch(1)
    with pytest.raises(SchemaError, match="day is not in the table"):
        Writer(table, token=2).begin()
    table.run("ALTER TABLE {table} ADD COLUMN day string")
    follower = Writer(table, token=3)
    assert follower.begin() == 0
    follower.batch(1)
    assert table.ids == rows(0, 1)


def test_a_table_that_was_made_again_with_other_columns(table: Table) -> None:
    """No batch goes there, nor does a start."""
    writer = Writer(table)
    writer.begin()
    writer.batch(0)
    table.run("DROP TABLE {table}")
    table.run("CREATE TABLE {table} (other int) USING iceberg")
    with pytest.raises(SinkError):
        writer.batch(1)
    with pytest.raises(SchemaError, match="id is not in the table"):
        Writer(table, token=2).begin()
    assert table.run("SELECT * FROM {table}") == []


@pytest.mark.parametrize("setting", ["spark.wap.id", "spark.wap.branch"])
def test_rows_that_would_be_staged_elsewhere_are_refused(table: Table, setting: str) -> None:
    """Nothing is written, and the cause names the settings; without them the task goes on."""
    writer = Writer(table)
    writer.begin()
    writer.batch(0)
    table.run("ALTER TABLE {table} SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    table.spark.conf.set(setting, "audit")
    try:
        with pytest.raises(
            Exception, match=r"settings spark\.wap\.id and spark\.wap\.branch put rows elsewhere"
        ):
            writer.batch(1)
    finally:
        table.spark.conf.unset(setting)
    writer.batch(1)
    assert table.ids == rows(0, 1)


@pytest.mark.parametrize("is_made_again", [True, False])
def test_a_start_does_not_go_by_a_table_that_others_have_dropped(
    table: Table, *, is_made_again: bool
) -> None:
    """A session's catalog keeps what it has loaded, but a start has a session of its own."""
    writer = Writer(table)
    writer.begin()
    writer.batch(0)
    elsewhere = table.spark.newSession()
    elsewhere.sql(f"DROP TABLE {table.name}")
    if is_made_again:
        elsewhere.sql(f"CREATE TABLE {table.name} (id bigint, day string) USING iceberg")
    with pytest.raises(SinkError):
        writer.batch(2)
    table.spark = table.spark.newSession()
    follower = Writer(table, token=2)
    assert follower.begin() is None
    follower.batch(0)
    assert table.ids == rows(0)


def test_what_iceberg_tells_of_a_table_takes_no_rows(table: Table) -> None:
    """Its files, snapshots and the like have names as tables have."""
    Writer(table).begin()
    told = Table(table.spark)
    told.name = f"{table.name}.files"
    with pytest.raises(SinkError, match="takes no rows"):
        Writer(told).begin()


@pytest.fixture
def own(spark: SparkSession, tmp_path: Path) -> Table:
    """A table in a catalog of the test's: `own.db`, and the files in `warehouse`."""
    session = spark.newSession()
    catalog = "spark.sql.catalog.own"
    session.conf.set(catalog, "org.apache.iceberg.spark.SparkCatalog")
    session.conf.set(f"{catalog}.type", "jdbc")
    session.conf.set(f"{catalog}.uri", f"jdbc:sqlite:{tmp_path}/own.db")
    session.conf.set(f"{catalog}.warehouse", str(tmp_path / "warehouse"))
    return Table(session, "own")


def cause(error: BaseException) -> str:
    """What a user reads."""
    return str(refusal(error)).partition("\n")[0]


def test_no_right_to_write_into_the_warehouse(own: Table, tmp_path: Path) -> None:
    """Into the folder of data, or of metadata; with the right, the batch is written, once."""
    writer = Writer(own)
    writer.begin()
    writer.batch(0)
    folder = tmp_path / "warehouse" / own.path.replace(".", "/")
    for kept in (folder / "data", folder / "metadata"):
        with unwritable(kept), pytest.raises(Exception, match=r"(?i)not permitted|denied") as failed:
            writer.batch(1)
        assert f"{folder}" in cause(failed.value)
        assert "lacks a right there: grant it" in cause(failed.value)
        assert own.ids == rows(0)
    with (
        unwritable(folder / "metadata"),
        pytest.raises(SinkError, match=r"the table .*not permitted") as refused,
    ):
        Writer(own, token=2).begin()
    assert "lacks a right there: grant it" in cause(refused.value)
    follower = Writer(own, token=3)
    assert follower.begin() == 0
    follower.batch(1)
    assert own.ids == rows(0, 1)


def test_no_right_to_write_into_the_catalog(own: Table, tmp_path: Path) -> None:
    """Its database may not be written to: no batch, no claim; with the right, the task goes on."""
    writer = Writer(own)
    writer.begin()
    writer.batch(0)
    database = tmp_path / "own.db"
    with unwritable(tmp_path, database), pytest.raises(Exception, match="SQLITE_") as failed:
        writer.batch(1)
    assert "lacks a right there: grant it" in cause(failed.value)
    with unwritable(tmp_path, database), pytest.raises(SinkError, match="SQLITE_") as refused:
        Writer(own, token=2).begin()
    assert "lacks a right there: grant it" in cause(refused.value)
    follower = Writer(own, token=3)
    assert follower.begin() == 0
    follower.batch(1)
    assert own.ids == rows(0, 1)
