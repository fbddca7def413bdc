"""Statements that only connectors know: no task's SQL, and no check's, is one."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

from worker.query_engine import QueryError
from worker.spark.classic.statements import drop_escapes, require_query

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.spark.conftest import Database, Flights

STATEMENTS = (
    *("RESTORE TABLE {table} TO VERSION AS OF 0", "RESTORE {table} TO TIMESTAMP AS OF '2030-01-01'"),
    "CREATE TABLE stolen SHALLOW CLONE {table} LOCATION '{folder}/stolen'",
    "CREATE OR REPLACE TABLE stolen SHALLOW CLONE {table} VERSION AS OF 0",
    *(
        "DESCRIBE HISTORY {table}",
        "DESCRIBE DETAIL {table}",
        "OPTIMIZE {table}",
        "REORG TABLE {table} APPLY (PURGE)",
    ),
    *(
        "VACUUM {table} RETAIN 0 HOURS",
        "CONVERT TO DELTA parquet.`{folder}/x`",
        "GENERATE symlink_format_manifest FOR TABLE {table}",
    ),
    *("ALTER TABLE {table} ADD CONSTRAINT c CHECK (id > 0)", "ALTER TABLE {table} CREATE BRANCH b"),
    *("CALL lake.system.expire_snapshots('shop.t')", "ALTER TABLE {table} WRITE ORDERED BY id"),
)


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> str:
    """A table of Delta with one row, which its version 0 does not have."""
    name = f"victim_{uuid.uuid4().hex}"
    spark.sql(f"CREATE TABLE {name} (id INT) USING delta LOCATION '{tmp_path}/victim'")
    spark.sql(f"INSERT INTO {name} VALUES (1)")
    return name


@pytest.mark.parametrize("statement", STATEMENTS)
async def test_no_statement_of_a_lake_is_a_query(
    statement: str,
    *,
    table: str,
    spark: SparkSession,
    tmp_path: Path,
    start: Any,
    flights: Flights,
    database: Database,
) -> None:
    """It is refused before Spark does it, also where the manager has not read it for its length."""
    flights.add(files=1)
    sql = statement.format(table=table, folder=tmp_path) + " " * 100_001
    with pytest.raises(QueryError, match=r"PARSE_SYNTAX_ERROR|is no query but"):
        await start(source=flights.source, sql=sql, sink=database.sink())
    assert spark.sql(f"SELECT count(*) FROM {table}").first() == (1,)
    assert not spark.catalog.tableExists("stolen")


@pytest.mark.usefixtures("table")
def test_no_function_reads_a_table_by_its_path(spark: SparkSession, tmp_path: Path) -> None:
    """`spark.sql.runSQLOnFiles` holds back names of paths only; Delta has a function beside them."""
    session = spark.newSession()
    asked = f"SELECT * FROM table_changes_by_path('{tmp_path}/victim', 0)"
    require_query(session, asked)
    drop_escapes(session)
    with pytest.raises(AnalysisException, match="UNRESOLVABLE_TABLE_VALUED_FUNCTION"):
        session.sql(asked)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM {table} VERSION AS OF 0",
        "SELECT * FROM {table} TIMESTAMP AS OF '2999-01-01'",
        "FROM {table} |> WHERE id = 1 |> SELECT id",
        "WITH a AS (SELECT 1 AS id) SELECT id FROM a",
    ],
)
def test_queries_that_look_like_statements_are_queries(query: str, table: str, spark: SparkSession) -> None:
    """Travel in time, and pipes, are Spark's own."""
    require_query(spark, query.format(table=table))
