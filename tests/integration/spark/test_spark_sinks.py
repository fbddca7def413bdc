"""The fenced sinks, and the fence of an entry point, in real queries."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from pyspark import TaskContext
from pyspark.sql import functions as sql

from worker.query_engine import QueryError
from worker.sinks.fence import Owner
from worker.sinks.files import FilesSink
from worker.spark.classic.statements import require_query

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

ONCE = {"available_now": True}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Any]:
    """A definition's sink into Parquet files."""
    return {"format": "fenced_files", "options": {"path": str(tmp_path / "a folder")}}


async def test_files_for_ordinary_readers(start: Any, flights: Any, files: Any, spark: SparkSession) -> None:
    """Spark reads the folder as it is; the batch is one more column, the manifests tell of the rest."""
    flights.add(files=3)
    query = await start(token=4, source=flights.source, sink=files, trigger=ONCE)
    assert await query.ended() is None
    read = spark.read.parquet(files["options"]["path"])
    rows = read.orderBy("id").select("id", "sparkherd_batch").collect()
    assert [row.id for row in rows] == flights.ids
    assert [row.sparkherd_batch for row in rows[::10]] == [f"0_00000000000{n}" for n in range(3)]
    assert query.progress().metrics["sink_rows"] == 30


async def test_files_across_owners(
    *, start: Any, flights: Any, files: Any, spark: SparkSession, catch_up: Any
) -> None:
    """A newer owner's claim ends the older query at its next batch, and the newer one does that batch."""
    files["options"]["format"] = "json"
    flights.add(files=2)
    definition = {"source": flights.source, "sql": "SELECT * FROM source WHERE id NOT BETWEEN 10 AND 19"}
    zombie = await start(token=1, **definition, sink=files)
    await catch_up(zombie)
    spec = zombie.spec
    FilesSink(spec.definition.sink.read_options(), Owner(spec.group, spec.task, 2)).claim()
    flights.add(files=1)
    assert (await zombie.ended()).fenced
    successor = await start(token=2, **definition, sink=files)
    await catch_up(successor)
    read = spark.read.json(files["options"]["path"])
    assert sorted(row.id for row in read.collect()) == [*range(10), *range(20, 30)]
    assert successor.progress().metrics["sink_rows"] == 20


async def test_files_refuse_other_tasks(start: Any, flights: Any, files: Any) -> None:
    """A folder belongs to one task; whoever else names it does not start."""
    flights.add()
    assert await (await start("a", source=flights.source, sink=files, trigger=ONCE)).ended() is None
    with pytest.raises(QueryError, match="is that of task a of group"):
        await start("b", source=flights.source, sink=files)


async def test_a_partition_that_is_tried_again(
    *, start: Any, flights: Any, database: Any, entrypoint: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first attempt fails with 10,000 rows staged already: they are not among those that count."""
    monkeypatch.setattr("worker.sinks.sql.INLINE_ROWS", 100)
    flights.add(rows=15_000)

    def run(context: Any) -> Any:
        @sql.udf("long", useArrow=False)
        def fail_once(number: int) -> int:
            task = TaskContext.get()
            if task is not None and task.attemptNumber() == 0 and number == 14_000:
                raise OSError("this machine is gone")
            return number

        frame = context.spark.readStream.schema("id LONG").json(str(flights.folder))
        return context.sink(frame.select(fail_once("id").alias("id")), **database.sink()["options"])

    query = await start(entrypoint=entrypoint(run), trigger=ONCE)
    assert await query.ended() is None
    assert database.ids() == flights.ids
    assert list((database.path.parent / "out.db-sparkherd").iterdir()) == []


async def test_postgresql_across_owners(
    *, start: Any, flights: Any, postgres: str, catch_up: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Executors copy large batches into PostgreSQL, small ones pass through the driver: none is lost."""
    monkeypatch.setattr("worker.sinks.sql.INLINE_ROWS", 1_000)
    flights.add(rows=3_000)
    flights.add(rows=10)
    options = {"url": postgres, "table": "flights", "mode": "upsert", "key": ["id"]}
    sql_text = (
        "SELECT id, carrier, delay, timestamp_micros(id) AS at, date_from_unix_date(0) AS day FROM source"
    )
    definition = {"source": flights.source, "sql": sql_text, "sink": {"format": "sql", "options": options}}
    first = await start(token=1, **definition)
    await catch_up(first)
    await first.stop(30)
    flights.add(rows=3_000)
    second = await start(token=2, **definition)
    await catch_up(second)
    engine = sa.create_engine(sa.make_url(postgres).set(drivername="postgresql+psycopg"))
    with engine.connect() as connection:
        stored = connection.exec_driver_sql("SELECT id, delay, at, day FROM flights ORDER BY id").all()
        tables = connection.exec_driver_sql("SELECT COUNT(*) FROM pg_tables WHERE tablename LIKE '%%stage%%'")
        assert tables.scalar_one() == 0
    engine.dispose()
    assert [row.id for row in stored] == flights.ids
    assert (stored[3].delay, stored[3].day) == (1.5, date(1970, 1, 1))
    assert stored[3].at == datetime(1970, 1, 1, microsecond=3, tzinfo=UTC)
    assert second.progress().metrics["sink_rows"] == 6_010


async def test_the_fence_of_an_entry_point(
    *, start: Any, flights: Any, tmp_path: Path, entrypoint: Any, catch_up: Any
) -> None:
    """Its own table, written by `foreachBatch`: a crash after the commit repeats the batch, not the rows."""
    flights.add(files=3)
    engine = sa.create_engine(f"sqlite:///{tmp_path}/mine.db")
    told = []
    crashes = iter([True])

    def run(context: Any) -> Any:
        with engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS mine (id INTEGER)")
        context.fence.claim(engine)

        def write(frame: DataFrame, batch_id: int) -> None:
            rows = [(row.id,) for row in frame.collect()]
            context.fence.check()
            with engine.begin() as connection:
                told.append((context.token, batch_id, context.fence.guard(connection)))
                if told[-1][2]:
                    connection.exec_driver_sql("INSERT INTO mine VALUES (?)", rows)
            if batch_id == 1 and next(crashes, False):
                raise OSError("the power is gone")

        source = context.spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1)
        return context.foreach_batch(source.json(str(flights.folder)), write)

    first = await start(token=1, entrypoint=entrypoint(run))
    assert (await first.ended()).cause.startswith("OSError: the power is gone")
    second = await start(token=2, entrypoint=entrypoint(run))
    await catch_up(second)
    with pytest.raises(QueryError) as refused:
        await start(token=1, entrypoint=entrypoint(run))
    assert refused.value.fenced
    assert told == [(1, 0, True), (1, 1, True), (2, 1, False), (2, 2, True)]
    with engine.connect() as connection:
        stored = connection.exec_driver_sql("SELECT id FROM mine ORDER BY id").scalars().all()
    engine.dispose()
    assert stored == flights.ids


@pytest.mark.parametrize("computes", ["first", "if it is new"])
async def test_the_fence_of_a_query_with_state(
    *, start: Any, flights: Any, tmp_path: Path, entrypoint: Any, catch_up: Any, computes: str
) -> None:
    """A repeated batch whose rows nobody wants is computed all the same: its state goes on."""
    flights.add(files=3)
    engine = sa.create_engine(f"sqlite:///{tmp_path}/mine.db")
    told: list[tuple[int, int, bool]] = []
    crashes = iter([True])

    def run(context: Any) -> Any:
        with engine.begin() as connection:
            connection.exec_driver_sql(
                "CREATE TABLE IF NOT EXISTS mine (carrier TEXT PRIMARY KEY, n INTEGER)"
            )

        def write(frame: DataFrame, batch_id: int) -> None:
            rows = [tuple(row) for row in frame.collect()] if computes == "first" else None
            with engine.begin() as connection:
                told.append((context.token, batch_id, context.fence.guard(connection)))
                if told[-1][2]:
                    rows = rows or [tuple(row) for row in frame.collect()]
                    connection.exec_driver_sql("INSERT OR REPLACE INTO mine VALUES (?, ?)", rows)
            if batch_id == 1 and next(crashes, False):
                raise OSError("the power is gone")

        source = context.spark.readStream.schema("carrier STRING").option("maxFilesPerTrigger", 1)
        return context.foreach_batch(source.json(str(flights.folder)).groupBy("carrier").count(), write)

    definition = {"entrypoint": entrypoint(run), "output_mode": "update"}
    first = await start(token=1, **definition)
    assert (await first.ended()).cause.startswith("OSError: the power is gone")
    second = await start(token=2, **definition)
    await catch_up(second)
    assert told == [(1, 0, True), (1, 1, True), (2, 1, False), (2, 2, True)]
    with engine.connect() as connection:
        stored = connection.exec_driver_sql("SELECT carrier, n FROM mine ORDER BY carrier").all()
    engine.dispose()
    assert [tuple(row) for row in stored] == [("AA", 10), ("B6", 10), ("UA", 10)]


async def test_a_batch_that_outlives_its_lease(
    *, start: Any, flights: Any, tmp_path: Path, entrypoint: Any, lease: Any
) -> None:
    """`fence.check` before a side effect ends the batch of a worker that has lost its lease meanwhile."""
    flights.add()
    log = tmp_path / "effects"

    def run(context: Any) -> Any:
        def act(_frame: DataFrame, _batch_id: int) -> None:
            lease.holds = False
            context.fence.check()
            log.write_text("done")

        return context.foreach_batch(
            context.spark.readStream.schema("id LONG").json(str(flights.folder)), act
        )

    query = await start(entrypoint=entrypoint(run))
    assert await query.ended() == QueryError("the worker has lost its lease, so it may not write")
    assert not log.exists()


NAMED_INSERT = "(InsertIntoStatement|UnresolvedInsert)"
"""Which of the two is the version's."""


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("DROP VIEW source", "DropView"),
        ("INSERT INTO t SELECT * FROM source", "InsertIntoStatement"),
        ("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", "InsertIntoStatement"),
        ("FROM source INSERT INTO t SELECT *", "InsertIntoStatement"),
        ("INSERT OVERWRITE DIRECTORY '/nowhere' USING json SELECT 1", "InsertIntoDir"),
        ("EXECUTE IMMEDIATE 'DROP VIEW source'", "UnresolvedExecuteImmediate"),
        ("BEGIN SELECT 1; END", "CompoundBody"),
        ("SET a=b", "SetCommand"),
        ("CALL a.b()", "Call"),
        ("CREATE TEMP VIEW v AS SELECT 1", "CreateViewCommand"),
        ("CREATE TEMP VIEW IDENTIFIER('a' || 'b') AS SELECT 1", "CreateViewCommand"),
        ("CREATE TABLE IDENTIFIER('a' || 'b') AS SELECT 1", "CreateTableAsSelect"),
        ("DROP TABLE IDENTIFIER('a' || 'b')", "DropTable"),
        ("CREATE TEMP FUNCTION IDENTIFIER('a' || 'b') AS 'x.Y'", "CreateFunctionCommand"),
        ("CREATE FUNCTION IDENTIFIER('a' || 'b') AS 'x.Y'", "CreateFunction"),
        ("CACHE TABLE IDENTIFIER('a' || 'b')", "CacheTable"),
        ("INSERT INTO IDENTIFIER('a' || 'b') SELECT 1", NAMED_INSERT),
        ("WITH q AS (SELECT 1) INSERT INTO IDENTIFIER('a' || 'b') SELECT * FROM q", NAMED_INSERT),
        ("FROM source INSERT INTO IDENTIFIER('a' || 'b') SELECT *", NAMED_INSERT),
    ],
)
def test_statements_that_are_no_queries(spark: SparkSession, statement: str, kind: str) -> None:
    """Each is refused by its plan, before anything of it is executed."""
    with pytest.raises(QueryError, match=f"sql: is no query but a {kind}; it is to be one SELECT"):
        require_query(spark, statement)


def test_queries_of_every_form(spark: SparkSession) -> None:
    """What is a query goes through, however it is written."""
    for query in (
        "TABLE source",
        "TABLE IDENTIFIER('sou' || 'rce')",
        "SELECT IDENTIFIER('i' || 'd') FROM IDENTIFIER('sou' || 'rce') AS s",
        "FROM source |> SELECT id",
        "WITH a AS (SELECT * FROM source) SELECT * FROM a",
        "(SELECT 1) UNION ALL VALUES (2)",
        "SELECT id FROM source LATERAL VIEW explode(array(1)) AS n",
    ):
        require_query(spark, query)


@pytest.mark.parametrize(
    "relation",
    [
        "t WITH (url = 'jdbc:derby:x')",
        "t with /* WITH */ (a 'b') AS x",
        "`with`WITH--\n(a='b')",
        "t w\u0131th(a 'b')",
        "STREAM t WITH (a 'b')",
        "IDENTIFIER('t') WITH (a 'b')",
        "IDENTIFIER('t' || 'u') WITH (a 'b')",
        "t TIMESTAMP AS OF '2020-01-01' WITH (a 'b')",
        "json.`/x` WITH (a 'b')",
        "a JOIN (SELECT * FROM b WHERE EXISTS (SELECT * FROM t WITH (a 'b')))",
        "range(1) WHERE (SELECT max(x) FROM t WITH (a 'b')) > 1",
    ],
)
def test_a_table_gets_no_options_in_sql(spark: SparkSession, relation: str) -> None:
    """They would be put in place of those of its catalog, and lead to any database by any driver."""
    for query in (f"SELECT * FROM {relation}", f"WITH q AS (SELECT * FROM {relation}) SELECT * FROM q"):
        with pytest.raises(QueryError, match=r"sql: gives options to a table by WITH \(...\)") as refused:
            require_query(spark, query)
        assert refused.value.permanent


def test_other_uses_of_the_word_with(spark: SparkSession) -> None:
    """Texts, comments, names and common table expressions."""
    for query in (
        "SELECT 'paid WITH (card)' AS `WITH (x)` -- WITH (",
        "WITH /* these */ a AS (SELECT 1) SELECT startswith('a', 'b') FROM a /* WITH (a 'b') */",
        "SELECT count(*) FROM range(3) GROUP BY id WITH ROLLUP",
    ):
        require_query(spark, query)


async def test_a_statement_does_nothing(start: Any, flights: Any, database: Any, spark: SparkSession) -> None:
    """A task whose SQL drops something is refused, and what it named is still there."""
    flights.add()
    spark.sql("CREATE OR REPLACE GLOBAL TEMP VIEW keep AS SELECT 1 AS one")
    with pytest.raises(QueryError, match="is no query but a DropView"):
        await start(source=flights.source, sql="DROP VIEW global_temp.keep", sink=database.sink())
    assert spark.sql("SELECT one FROM global_temp.keep").collect()[0].one == 1


async def test_what_to_select_instead_works(start: Any, flights: Any, database: Any) -> None:
    """Every type without a column of its own is refused with a remedy; all remedies together are written."""
    flights.add(rows=1)
    columns = {
        "a": "array(id)",
        "m": "map('k', id)",
        "s": "struct(id)",
        "v": "parse_json('{\"k\": 1}')",
        "n": "NULL",
        "d": "INTERVAL '1' DAY",
        "y": "INTERVAL '1' YEAR",
        "i": "make_interval(1, 2)",
    }
    select = ", ".join(f"{value} AS {name}" for name, value in columns.items())
    with pytest.raises(QueryError) as refused:
        await start(source=flights.source, sql=f"SELECT {select} FROM source", sink=database.sink())
    faults = str(refused.value).partition("no column type for ")[2].split("; ")
    assert len(faults) == len(columns)
    remedies = ", ".join(fault.partition("select ")[2].removesuffix(" instead") for fault in faults)
    query = await start(
        source=flights.source,
        sql=f"SELECT {remedies} FROM (SELECT {select} FROM source)",
        sink=database.sink(),
        trigger=ONCE,
    )
    assert await query.ended() is None
    ((a, m, s, v, n, *_),) = database.query("SELECT * FROM flights")
    assert [json.loads(each) for each in (a, m, s, v)] == [[0], {"k": 0}, {"id": 0}, {"k": 1}]
    assert n is None
