"""What rows the fenced Iceberg sink leaves in a table, through a definition and behind it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.spark.connectors.held_server import HeldServer
from tests.integration.spark.connectors.lake_sinks import FIELDS, Table, Writer
from worker.sinks.base import Field
from worker.sinks.errors import FencedError, SchemaError, SinkError
from worker.sinks.iceberg.sink import IcebergSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.integration.spark.conftest import Flights

ONCE = {"available_now": True}


@pytest.fixture
def table(spark: SparkSession) -> Table:
    return Table(spark)


async def test_whole_results_take_the_place_of_those_before(
    start: Any, flights: Flights, table: Table
) -> None:
    """A query with state, in complete mode."""
    flights.add(files=3)
    sink = {"format": "iceberg", "table": table.name, "options": {"mode": "overwrite"}}
    sql = "SELECT carrier, count(*) AS n FROM source GROUP BY carrier"
    query = await start(source=flights.source, sql=sql, sink=sink, trigger=ONCE, output_mode="complete")
    assert await query.ended() is None
    rows = table.run("SELECT * FROM {table}")
    assert len(rows) == 3
    assert sum(row.n for row in rows) == 30


async def test_rows_with_a_key_take_the_place_of_those_before(
    start: Any, flights: Flights, table: Table
) -> None:
    """The newest change of each group, by MERGE."""
    flights.add(files=3)
    sink = {"format": "iceberg", "table": table.name, "options": {"mode": "upsert", "key": ["carrier"]}}
    sql = "SELECT carrier, count(*) AS n FROM source GROUP BY carrier"
    query = await start(source=flights.source, sql=sql, sink=sink, trigger=ONCE, output_mode="update")
    assert await query.ended() is None
    rows = table.run("SELECT * FROM {table}")
    assert len(rows) == 3
    assert sum(row.n for row in rows) == 30


def test_of_rows_with_one_key_the_last_counts(table: Table) -> None:
    """In one batch, and over batches; a key may be NULL."""
    writer = Writer(table, mode="upsert", key=["ID"])
    writer.begin()
    frame = table.spark.createDataFrame([(1, "a"), (1, "b"), (None, "c")], "id long, day string").coalesce(1)
    assert writer.batch(0, frame=frame).total == 3
    frame = table.spark.createDataFrame([(None, "d"), (2, "e")], "id long, day string")
    assert writer.batch(1, frame=frame).total == 5
    assert {tuple(row) for row in table.run("SELECT * FROM {table}")} == {(1, "b"), (None, "d"), (2, "e")}
    assert writer.batch(1, frame=frame).duplicate


def test_a_branch_is_written_to_and_main_is_left_alone(table: Table) -> None:
    """It has a fence of its own, beside that of main which it was made from."""
    writer = Writer(table)
    writer.begin()
    writer.batch(0)
    with pytest.raises(SinkError, match="has no branch audit"):
        Writer(table, branch="audit").begin()
    table.run("ALTER TABLE {table} CREATE BRANCH audit")
    other = Writer(table, token=2, branch="audit")
    assert other.begin() == 0
    other.batch(1)
    assert len(table.ids) == 10
    assert len(table.ids_of(f"{table.name}.branch_audit")) == 20


def test_columns_that_do_not_fit_are_named(table: Table) -> None:
    """All of them; a table is changed only if the definition says so."""
    table.run("CREATE TABLE {table} (id int, day string, must string NOT NULL) USING iceberg")
    with pytest.raises(SchemaError) as refused:
        Writer(table).begin((*FIELDS, Field("more", "double"), Field("extra", "date")))
    for part in (
        "must of the table must have a value",
        "more is not in",
        "extra",
        "id is wider",
        "merge_schema",
    ):
        assert part in str(refused.value)


def test_a_table_grows_if_it_may(table: Table) -> None:
    """Columns are added and widened; those that the query has not are NULL."""
    table.run("CREATE TABLE {table} (id int, old string) USING iceberg")
    table.run("INSERT INTO {table} VALUES (1000, 'x')")
    writer = Writer(table, merge_schema=True)
    writer.begin()
    writer.batch(0)
    [row] = table.run("SELECT * FROM {table} WHERE id = 3")
    assert row.asDict() == {"id": 3, "old": None, "day": "d1"}
    assert table.ids == [*range(10), 1000]


def test_many_columns_that_the_query_has_not_are_one_step(table: Table) -> None:
    """Each step is analysed with all before it: 400 of them took 20 s a batch."""
    others = ", ".join(f"c{n} int" for n in range(40))
    table.run(f"CREATE TABLE {{table}} (id bigint, day string, {others}) USING iceberg")
    writer = Writer(table)
    writer.begin()
    writer.batch(0)
    assert table.ids == list(range(10))
    assert isinstance(writer.sink, IcebergSink)
    assert writer.sink._fitted is not None
    frame: Any = writer.sink._fitted.frame(table.spark.range(1))
    assert frame._jdf.queryExecution().logical().toString().count("Project") == 1


def test_a_table_laid_out_otherwise_is_refused(table: Table) -> None:
    """With both layouts; one that says nothing takes any."""
    writer = Writer(table, partition_by=["day", "bucket(4, id)"])
    writer.begin()
    writer.batch(0)
    with pytest.raises(
        SchemaError, match=r"partitioned by day, bucket\(4, id\), and sink.partition_by says id"
    ):
        Writer(table, partition_by=["id"]).begin()
    table.run("ALTER TABLE {table} DROP PARTITION FIELD day")
    writer.batch(1)
    with pytest.raises(SchemaError, match=r"partitioned by bucket\(4, id\), and"):
        Writer(table, partition_by=["day", "bucket(4, id)"]).begin()
    assert Writer(table).begin() == 1
    assert len(table.ids) == 20


def test_a_catalog_in_postgres(spark: SparkSession, postgres: str, tmp_path: Any) -> None:
    """The same, by another database's compare and swap."""
    with HeldServer(postgres) as server:
        session = spark.newSession()
        for key, value in server.catalog("pg", tmp_path / "lake").items():
            session.conf.set(key, value)
        _hand_over(Table(session, "pg"))


def _hand_over(table: Table) -> None:
    writer = Writer(table)
    writer.begin()
    writer.batch(0)
    follower = Writer(table, token=2)
    assert follower.begin() == 0
    with pytest.raises(FencedError):
        writer.batch(1)
    follower.batch(1)
    assert len(table.ids) == 20


def test_marks_say_whose_they_are(table: Table) -> None:
    """For people who look at a table's snapshots."""
    writer = Writer(table)
    writer.begin()
    writer.batch(0)
    found = "map_values(map_filter(summary, (name, text) -> name LIKE 'sparkherd-fence-%'))"
    [row] = table.run(f"SELECT {found} FROM {{table}}.snapshots WHERE summary['added-records'] = '10'")
    mark = json.loads(row[0][0])
    assert (mark["group"], mark["task"], mark["token"], mark["batch"], mark["plan"]) == ("g", "t", 1, 0, "p0")
