"""A table of a real PostgreSQL beside a stream, its password by reference."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
import sqlalchemy as sa

from definition.document import parse_definition
from tests.integration.spark.conftest import CONNECTORS, refusal
from worker.query_engine import CheckSpec
from worker.spark.reading.jdbc_options import OF_DRIVERS, OF_SPARK, READING
from worker.spark.reading.table_options import NAMES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pyspark.sql import SparkSession

    from protocol.messages.checks import CheckResult
    from tests.integration.spark.conftest import Database, Flights, JvmLog
    from worker.spark.engine import SparkEngine

PASSWORD = "s3cr3t-Qw7-of-the-carriers"
ROLE = "carriers_reader"


def execute(url: sa.URL, statement: str) -> Any:
    """As the server's owner; returns the first value, if the statement has one."""
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            result = connection.exec_driver_sql(statement)
            return result.scalar() if result.returns_rows else None
    finally:
        engine.dispose()


@pytest.fixture(scope="session")
def carriers(postgres: str) -> sa.URL:
    """A database with a table that one role may read, by its password only."""
    url = sa.make_url(postgres).set(drivername="postgresql+psycopg")
    execute(url, f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'")
    execute(url, "CREATE TABLE carriers AS VALUES ('UA', 'United'), ('AA', 'American')")
    execute(url, f"GRANT SELECT ON carriers TO {ROLE}")
    rules = Path(execute(url, "SHOW hba_file"))
    rules.write_text(f"local all {ROLE} scram-sha-256\n{rules.read_text()}")  # the first that fits counts
    execute(url, "SELECT pg_reload_conf()")
    return url


@asynccontextmanager
async def by_tcp(socket: str) -> AsyncIterator[int]:
    """A port that leads to a Unix socket, which Java's driver does not speak to."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(socket)
        await asyncio.gather(pump(reader, back), pump(there, writer))

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@pytest_asyncio.fixture(loop_scope="session")
async def table(carriers: sa.URL) -> AsyncIterator[dict[str, Any]]:
    """A definition's source that reads it as a whole."""
    folder, port = str(carriers.query["host"]), carriers.port or 5432
    async with by_tcp(f"{folder}/.s.PGSQL.{port}") as own:
        options = {
            "url": f"jdbc:postgresql://127.0.0.1:{own}/{carriers.database}",
            "dbtable": "carriers",
            "user": ROLE,
            "password": "${env:TESTED_PASSWORD}",
            "driver": "org.postgresql.Driver",
        }
        yield {"format": "jdbc", "options": options, "static": True}


async def test_a_stream_is_joined_with_a_table_of_a_database(
    *, start: Any, catch_up: Any, flights: Flights, database: Database, table: Any, carriers: sa.URL,
    monkeypatch: pytest.MonkeyPatch, jvm_log: JvmLog,
) -> None:  # fmt: skip
    """It is read anew in each batch. The password is shown nowhere: not in the plan, not in the log."""
    monkeypatch.setenv("TESTED_PASSWORD", PASSWORD)
    flights.add(files=2)
    sql = "SELECT f.id, c.column2 AS name FROM flights f JOIN carriers c ON f.carrier = c.column1"
    query = await start(sources={"flights": flights.source, "carriers": table}, sql=sql, sink=database.sink())
    await catch_up(query)
    assert database.query("SELECT count(*), count(DISTINCT name) FROM flights") == [(14, 2)]
    await asyncio.to_thread(execute, carriers, "INSERT INTO carriers VALUES ('B6', 'JetBlue')")
    flights.add()
    await catch_up(query)
    assert database.query("SELECT count(*), count(DISTINCT name) FROM flights") == [(24, 3)]
    plan = query._handle.query._jsq.explainInternal(True)  # noqa: FBT003 - Java's
    assert "JDBCRelation(carriers)" in plan
    assert PASSWORD not in plan + jvm_log.all()


async def test_a_wrong_password_is_told_of_and_not_told(
    *, start: Any, flights: Flights, database: Database, table: Any,
    monkeypatch: pytest.MonkeyPatch, jvm_log: JvmLog,
) -> None:  # fmt: skip
    """The cause has the database's own words."""
    wrong = f"{PASSWORD}-of-yesterday"
    monkeypatch.setenv("TESTED_PASSWORD", wrong)
    sources = {"flights": flights.source, "carriers": table}
    cause = await refusal(start, sources=sources, sql="SELECT * FROM flights", sink=database.sink())
    assert f'password authentication failed for user "{ROLE}"' in cause
    assert wrong not in cause + jvm_log.all()


async def look(engine: SparkEngine, flights: Flights, source: Any) -> CheckResult:
    document = {
        "sources": {"flights": flights.source, "other": {"format": "jdbc", "static": True, **source}},
        "sql": "SELECT other.* FROM flights CROSS JOIN other",
        "sink": {"format": "noop"},
    }
    return await engine.check(CheckSpec("g", parse_definition(json.dumps(document).encode()), 1, "beginning"))


async def test_a_check_cannot_write_into_a_database(
    *, engine: SparkEngine, flights: Flights, table: Any, carriers: sa.URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function that writes is refused by PostgreSQL itself, and what else would be sent is left out."""
    monkeypatch.setenv("TESTED_PASSWORD", PASSWORD)
    flights.add()
    await asyncio.to_thread(execute, carriers, "CREATE TABLE marks AS SELECT 1 AS mark")
    body = "INSERT INTO marks VALUES (2) RETURNING 2"
    made = f"CREATE FUNCTION mark() RETURNS int LANGUAGE sql SECURITY DEFINER AS '{body}'"
    await asyncio.to_thread(execute, carriers, made)
    options = {**table["options"], "query": "SELECT column2, mark() AS mark FROM carriers"}
    del options["dbtable"]
    found = await look(engine, flights, {"options": {**options, "sessionInitStatement": "SELECT mark()"}})
    assert "cannot execute INSERT in a read-only transaction" in found.problems[0].message
    assert found.notes[0].path == "sources.other.options.sessionInitStatement"
    assert await asyncio.to_thread(execute, carriers, "SELECT count(*) FROM marks") == 1
    options["query"] = "SELECT column2 FROM carriers ORDER BY 1"
    assert (await look(engine, flights, {"options": options})).rows == (("American",),)


async def test_a_check_makes_no_database(engine: SparkEngine, flights: Flights, tmp_path: Path) -> None:
    """SQLite's driver would make the file that it does not find; one that is there is read."""
    flights.add()
    file = tmp_path / "shop.db"
    options = {"url": f"jdbc:sqlite:{file}", "dbtable": "t", "driver": "org.sqlite.JDBC"}
    found = await look(engine, flights, {"options": options})
    assert "[SQLITE_CANTOPEN]" in found.problems[0].message
    assert not file.exists()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE t AS SELECT 7 AS x")
    found = await look(engine, flights, {"options": options})
    assert (found.problems, found.rows) == ((), ((7,),))


NEED_TO_BE_ALLOWED = {
    "postgresql": {
        *("authenticationpluginclassname", "classloaderstrategy", "connectexecutor", "connectexecutorarg"),
        *("socketfactory", "socketfactoryarg", "sslfactory", "sslfactoryarg", "sslhostnameverifier"),
        *("sslpasswordcallback", "sspiserviceclass", "xmlfactoryfactory"),  # all of these load classes
        *(
            "gsslib",
            "gssusedefaultcreds",
            "jaasapplicationname",
            "jaaslogin",
            "usespnego",
        ),  # the worker's logins
        *("loggerfile", "loggerlevel", "service", "replication"),  # files of the worker; another protocol
    },
    "sqlite": {"enable_load_extension", "temp_store_directory"},
}
OF_SQLITE_ITSELF = {"mode", "cache", "immutable", "nolock", "psow"}
"""In the URIs of its files; no options of the driver's."""
ENUMS = {
    "postgresql": ("org.postgresql.PGProperty", "getName"),
    "sqlite": ("org.sqlite.SQLiteConfig$Pragma", "getPragmaName"),
}


@pytest.mark.parametrize("database", OF_DRIVERS)
def test_each_option_of_the_shipped_drivers_is_known(spark: SparkSession, database: str) -> None:
    """A new version of a driver may bring options: each is either no harm, or has to be allowed."""
    jvm: Any = spark._jvm
    name, named = ENUMS[database]
    files = sorted((CONNECTORS / "jdbc").glob(f"{database}*.jar"))
    urls = spark.sparkContext._gateway.new_array(jvm.java.net.URL, len(files))  # type: ignore[union-attr]
    for index, file in enumerate(files):
        urls[index] = jvm.java.net.URL(file.as_uri())
    with_driver = jvm.java.net.URLClassLoader(urls)
    options = {str(getattr(each, named)()).lower() for each in with_driver.loadClass(name).getEnumConstants()}
    harmless, others = OF_DRIVERS[database] - OF_SQLITE_ITSELF, NEED_TO_BE_ALLOWED[database]
    assert not harmless & others
    assert options == harmless | others


@pytest.mark.parametrize(("database", "alike"), [("postgresql", set()), ("sqlite", {"encoding"})])
def test_no_option_of_tables_is_of_a_shipped_driver(database: str, alike: set[str]) -> None:
    """But where it is harmless: SQLite's is a pragma that does nothing to a database that is there."""
    of_driver = OF_DRIVERS[database] - OF_SQLITE_ITSELF | NEED_TO_BE_ALLOWED[database]
    assert (NAMES - READING) & of_driver == alike


def test_options_of_spark_s_are_known(spark: SparkSession) -> None:
    """Those that its JDBC does not hand on to drivers."""
    jvm: Any = spark._jvm
    of_jdbc = jvm.org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions
    constants = {name for name in dir(of_jdbc) if name.startswith("JDBC_")}
    assert {str(getattr(of_jdbc, name)()).lower() for name in constants} == OF_SPARK
