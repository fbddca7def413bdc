"""What a definition cannot make Spark do: each door that was found is tried (docs/security.md)."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from definition.document import DefinitionError
from worker.query_engine import QueryError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

NAMES = [
    "java_method",
    "reflect",
    "try_reflect",
    "builtin.reflect",
    "system.builtin.REFLECT",
    "`system`.`builtin`.`Java_Method`",
    "IDENTIFIER('ref' || 'lect')",
]
COMMAND = "SELECT TRANSFORM(1) USING 'id' AS (x)"
PLACES = [
    "SELECT id, {call} AS carrier FROM source",
    "SELECT id FROM source WHERE {call} > ''",
    "SELECT id, (SELECT max(x) FROM VALUES ({call}) AS t(x)) AS carrier FROM source",
    "WITH told AS (SELECT {call} AS x) SELECT id, x AS carrier FROM source JOIN told",
    "FROM source |> SELECT id, {call} AS carrier",
]


async def refusal(start: Any, **definition: Any) -> str:
    """The line that says why a definition is refused for good."""
    with pytest.raises(QueryError) as refused:
        await start(**definition)
    assert refused.value.permanent
    return str(refused.value).partition("\n")[0]


@pytest.mark.parametrize("name", NAMES)
async def test_no_function_calls_java(name: str, start: Any, flights: Any, database: Any) -> None:
    """Whatever way it is named: the variables of the worker are one call of System.getenv away."""
    sql = PLACES[0].format(call=f"{name}('java.lang.System', 'getenv', 'PATH')")
    said = await refusal(start, source=flights.source, sql=sql, sink=database.sink())
    assert "what calls any method of Java's is off in the sql of a task" in said
    assert "--allow-entrypoint" in said


@pytest.mark.parametrize("place", PLACES)
async def test_no_place_calls_java(place: str, start: Any, flights: Any, database: Any) -> None:
    """Wherever the call stands."""
    sql = place.format(call="reflect('java.lang.System', 'getenv', 'PATH')")
    said = await refusal(start, source=flights.source, sql=sql, sink=database.sink())
    assert "`reflect`" in said


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT TRANSFORM(id) USING 'printenv PATH' AS (carrier) FROM source",
        "FROM source MAP id USING 'printenv PATH' AS carrier",
        "FROM source REDUCE id USING 'printenv PATH' AS carrier",
        "WITH told AS (SELECT TRANSFORM(id) USING 'id' AS (x) FROM source) SELECT x AS carrier FROM told",
        "SELECT id, (SELECT max(x) FROM (SELECT TRANSFORM(1) USING 'id' AS (x))) AS carrier FROM source",
        "SELECT id FROM source WHERE EXISTS (SELECT TRANSFORM(a) USING 'id' AS (x) FROM VALUES (1) AS t(a))",
        f"SELECT sum(id) OVER w AS carrier FROM source WINDOW w AS (PARTITION BY ({COMMAND}))",
        f"SELECT sum(id) OVER v AS carrier FROM source WINDOW w AS (ORDER BY ({COMMAND})), v AS w",
        f"FROM source |> SELECT sum(id) OVER w AS carrier WINDOW w AS (PARTITION BY ({COMMAND}))",
        f"FROM source |> SET id = ({COMMAND})",
        f"SELECT * FROM explode(TABLE(source) PARTITION BY ({COMMAND}))",
        f"SELECT * FROM IDENTIFIER(({COMMAND})) TIMESTAMP AS OF 1",
        'SELECT TRANSFORM(id) USING /* a */ "id" AS (carrier) FROM source',
    ],
)
async def test_no_command_of_the_system_is_run(sql: str, start: Any, flights: Any, database: Any) -> None:
    """TRANSFORM starts a process for each partition, as the worker; it may be where no plan shows it."""
    said = await refusal(start, source=flights.source, sql=sql, sink=database.sink())
    assert said.startswith("sql: USING runs a command of the system, which is off in the sql of a task")
    assert "--allow-entrypoint" in said


@pytest.mark.parametrize("file_format", ["text", "binaryFile", "csv", "json", "parquet"])
async def test_sql_names_no_files(
    file_format: str, start: Any, flights: Any, database: Any, tmp_path: Path
) -> None:
    """Only a source names files; the setting of the worker's that would allow it is told."""
    (tmp_path / "secret").write_text("hunter2")
    sql = f"SELECT f.* FROM source JOIN {file_format}.`{tmp_path}/secret` AS f"
    said = await refusal(start, source=flights.source, sql=sql, sink=database.sink())
    assert "hunter2" not in said
    assert "--spark-conf spark.sql.runSQLOnFiles=true" in said


@pytest.mark.parametrize(
    "statement",
    [
        "LOAD DATA LOCAL INPATH '/etc/hostname' INTO TABLE t",
        "ADD JAR '/tmp/their.jar'",
        "ADD FILE '/etc/hostname'",
        "CREATE TEMPORARY FUNCTION f AS 'org.example.Theirs'",
        "CREATE TEMPORARY VIEW v USING text OPTIONS (path '/etc/hostname')",
        "SET spark.sql.runSQLOnFiles=true",
        "DECLARE x STRING",
    ],
)
async def test_nothing_but_queries(statement: str, start: Any, flights: Any, database: Any) -> None:
    """Statements that bring files or classes in, or settings, are none."""
    with pytest.raises(QueryError, match=r"^sql: is no query but a \w+"):
        await start(source=flights.source, sql=statement, sink=database.sink())


async def test_the_default_of_a_column_calls_nothing(start: Any, flights: Any, database: Any) -> None:
    """Spark makes it with functions of its own, whatever the session has; but it must be a constant."""
    flights.add()
    default = {"EXISTS_DEFAULT": "java_method('java.lang.System', 'getenv', 'PATH')"}
    field = {"name": "x", "type": "string", "nullable": True, "metadata": default}
    schema = json.dumps(json.dumps({"type": "struct", "fields": [field]}))
    sql = f"SELECT id, from_json('{{}}', {schema}).x AS carrier FROM source"
    query = await start(source=flights.source, sql=sql, sink=database.sink())
    ended = await query.ended()
    assert ended.cause is not None
    assert ended.cause.startswith("[INVALID_DEFAULT_VALUE.NOT_CONSTANT]")


@pytest.mark.parametrize(
    "key",
    [
        "spark.sql.runSQLOnFiles",
        "spark.sql.variable.substitute",
        "spark.sql.catalog.db",
        "spark.sql.catalog.db.url",
        "spark.datasource.iceberg.url",
    ],
)
async def test_a_task_cannot_undo_it(key: str, start: Any, flights: Any, database: Any) -> None:
    """Nor have Spark make a catalog, or lead one's tables to any database and run any statement there."""
    with pytest.raises(DefinitionError) as refused:
        await start(source=flights.source, sink=database.sink(), spark_conf={key: "true"})
    assert str(refused.value).startswith(f'spark_conf["{key}"]: is for the worker\'s --spark-conf only')


@pytest.mark.parametrize("trick", ["$${x}{env.PATH}", "$${$${y}}", "$${env.PATH}"])
async def test_hadoop_puts_no_variables_into_options(trick: str, start: Any, database: Any) -> None:
    """It would, several times over, and a file system of theirs could send them anywhere."""
    options = {"path": "theirs://host/x", "fs.theirs.impl": f"no.such.{trick}", "x": "$", "y": "env.PATH"}
    source = {"format": "text", "options": options}
    with pytest.raises((DefinitionError, QueryError)) as refused:
        await start(source=source, sink=database.sink())
    assert os.environ["PATH"] not in str(refused.value)
    assert str(refused.value).startswith('source.options["fs.theirs.impl"]: ')


async def test_other_queries_are_as_ever(
    start: Any, flights: Any, database: Any, catch_up: Any, spark: SparkSession
) -> None:
    """Names that only look alike, texts, and the sessions of entry points."""
    flights.add()
    sql = (
        "SELECT id, concat('reflect(', map('java_method', 'x')['java_method'],"
        " transform(array('y'), e -> e)[0]) AS carrier FROM source"
    )
    query = await start(source=flights.source, sql=sql, sink=database.sink())
    await catch_up(query)
    assert database.query("SELECT DISTINCT carrier FROM flights") == [("reflect(xy",)]
    told = spark.newSession().sql("SELECT reflect('java.lang.Math', 'abs', -1)").collect()
    assert [tuple(row) for row in told] == [("1",)]


DERBY = {
    "url": "jdbc:derby:memory:reach;create=true",
    "sessionInitStatement": (
        "CREATE FUNCTION told(name VARCHAR(99)) RETURNS VARCHAR(9999) LANGUAGE JAVA PARAMETER STYLE JAVA"
        " NO SQL EXTERNAL NAME 'java.lang.System.getenv'"
    ),
    "query": "SELECT told('PATH') AS carrier FROM sysibm.sysdummy1",
}


@pytest.mark.parametrize("driver", [{}, {"driver": "org.apache.derby.jdbc.EmbeddedDriver"}])
@pytest.mark.parametrize("jdbc", ["jdbc", "org.apache.spark.sql.execution.datasources.jdbc"])
async def test_no_database_calls_java(
    driver: Any, jdbc: str, start: Any, flights: Any, database: Any
) -> None:
    """Derby comes with Spark, and its functions are any method of Java's."""
    flights.add()
    sources = {
        "flights": flights.source,
        "told": {"format": jdbc, "static": True, "options": {**DERBY, **driver}},
    }
    sql = "SELECT flights.id, told.carrier FROM flights CROSS JOIN told"
    said = await refusal(start, sources=sources, sql=sql, sink=database.sink())
    assert said.startswith("sources.told.options.url: is of jdbc:derby, whose driver may run Java")
