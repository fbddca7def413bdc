from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import pyspark
import pytest

from protocol.connectors import package_of
from tests.integration.spark.conftest import refusal
from worker.query_engine import QueryError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def source(flights: Any, **changes: Any) -> dict[str, Any]:
    return {**flights.source, **changes}


async def test_a_wrong_source_is_named(start: Any, flights: Any, database: Any, tmp_path: Path) -> None:
    """A missing path, an unknown format, an unreadable schema: Spark's own line, without all around it."""
    sink = database.sink()
    nowhere = f"{tmp_path}/nowhere"
    said = await refusal(start, source=source(flights, options={"path": nowhere}), sink=sink)
    assert said.startswith(f"[PATH_NOT_FOUND] Path does not exist: {nowhere}: `sparkherd tasks restart` when")
    said = await refusal(start, source=source(flights, format="nonsense"), sink=sink)
    assert said.startswith("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: nonsense.")
    said = await refusal(start, source=source(flights, schema="a lon g"), sink=sink)
    assert said.startswith("[PARSE_SYNTAX_ERROR] Syntax error at or near 'g'")


@pytest.mark.parametrize(
    ("reads", "writes", "said"),
    [
        ("carrierpigeon", "noop", "--packages GROUP:ARTIFACT:VERSION of carrierpigeon"),
        ("rate", "delta_unfenced", f"--packages {package_of('delta', pyspark.__version__)}"),
        ("rate", "jdbc", "Data source jdbc does not support streamed writing"),
        ("jdbc", "noop", "Data source jdbc does not support streamed reading"),
    ],
)
async def test_what_is_not_installed_is_told_at_once(start: Any, reads: str, writes: str, said: str) -> None:
    """No other try can mend it: the cause says what to install, and is there for good."""
    definition = {"source": {"format": reads, "options": {"url": "jdbc:sqlite:"}}, "sink": {"format": writes}}
    assert said in await refusal(start, permanent=True, **definition)


async def test_a_path_that_is_missing_is_told_at_once(start: Any, flights: Any, tmp_path: Path) -> None:
    """Of a source, and of a file system that nobody has installed."""
    for path in (f"{tmp_path}/nowhere", "carrierpigeon://coop/seven"):
        definition = {"source": source(flights, options={"path": path}), "sink": {"format": "noop"}}
        await refusal(start, permanent=True, **definition)


async def test_wrong_sql_is_named(start: Any, flights: Any, database: Any) -> None:
    """An unknown column, a query of something else than the source."""
    sink = database.sink()
    said = await refusal(start, source=flights.source, sql="SELECT nope FROM source", sink=sink)
    assert said.startswith("[UNRESOLVED_COLUMN.WITH_SUGGESTION]")
    assert "`nope`" in said
    said = await refusal(start, source=flights.source, sql="SELECT 1 AS one", sink=sink)
    assert said == "sql: does not read the view `source`, so there is nothing to stream"


async def test_a_wrong_sink_is_named(start: Any, flights: Any, database: Any, tmp_path: Path) -> None:
    """A format nobody knows, a folder that is not there, columns that no table can hold."""
    said = await refusal(start, source=flights.source, sink={"format": "nonsense"})
    assert said.startswith("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: nonsense.")
    sink = {"format": "sql", "options": {"url": f"sqlite:///{tmp_path}/no/out.db", "table": "t"}}
    said = await refusal(start, source=flights.source, sink=sink)
    assert said.endswith("no/out.db refused: unable to open database file")
    sql = "SELECT id, array(delay) AS delays FROM source"
    said = await refusal(start, source=flights.source, sql=sql, sink=database.sink())
    assert "delays of type array, select to_json(delays) AS delays instead" in said


async def test_wrong_settings_are_named(start: Any, flights: Any, database: Any) -> None:
    """A setting that only a whole session can have; an output mode the query cannot have."""
    conf = {"spark.executor.memory": "1g"}
    said = await refusal(start, source=flights.source, sink=database.sink(), spark_conf=conf)
    assert "spark.executor.memory" in said
    sql = "SELECT carrier, COUNT(*) AS n FROM source GROUP BY carrier"
    said = await refusal(start, source=flights.source, sql=sql, sink=database.sink())
    assert said.startswith("[STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION]")


async def test_an_option_that_spark_reads_late(start: Any, flights: Any, database: Any) -> None:
    """Some mistakes show only when the query runs: they are its cause then."""
    options = {**flights.source["options"], "maxFilesPerTrigger": "many"}
    query = await start(source=source(flights, options=options), sink=database.sink())
    ended = await query.ended()
    assert ended.cause.startswith("IllegalArgumentException: Invalid value 'many' for option")
    assert "\n\n" in ended.cause


async def test_a_failing_batch_ends_its_query_only(
    start: Any, flights: Any, database: Any, catch_up: Any, jvm_log: Any
) -> None:
    """The cause is what failed at the bottom of it, with a trace; the task beside it runs on."""
    flights.add()
    healthy = await start("healthy", source=flights.source, sink=database.sink())
    sql = "SELECT id, IF(id = 3, raise_error('bad flight'), 0) AS checked FROM source"
    failing = await start("failing", source=flights.source, sql=sql, sink=database.sink("checked"))
    ended = await failing.ended()
    line, _, details = ended.cause.partition("\n\n")
    assert line == "[USER_RAISED_EXCEPTION] bad flight"
    assert "at org.apache.spark" in details
    assert database.query("SELECT COUNT(*) FROM checked") == [(0,)]
    flights.add()
    await catch_up(healthy)
    assert database.ids() == flights.ids
    assert "StackOverflowError" not in jvm_log.all()


async def test_the_same_of_spark_s_own_sinks(start: Any, flights: Any) -> None:
    """Their causes come out of Spark's exception: the innermost, not the wrapping around it."""
    flights.add()
    sql = "SELECT raise_error('bad flight') AS checked FROM source"
    query = await start(source=flights.source, sql=sql, sink={"format": "noop"})
    assert (await query.ended()).cause.partition("\n")[0] == "[USER_RAISED_EXCEPTION] bad flight"


async def test_a_query_that_somebody_else_stops(
    start: Any, flights: Any, database: Any, catch_up: Any
) -> None:
    """An end nobody had asked for is a failure, though Spark calls it a clean one."""
    flights.add()
    query = await start(source=flights.source, sink=database.sink())
    await catch_up(query)
    await asyncio.to_thread(query._handle.query.stop)
    assert await query.ended() == QueryError("the query ended by itself, which nobody had asked for")


async def test_entry_points_that_cannot_be_called(
    start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not allowed, not there, not importable, not a function: each says which."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "absent").mkdir()
    (tmp_path / "absent/__init__.py").write_text("number = 3\n")
    (tmp_path / "absent/broken.py").write_text("raise OSError('no license')\n")
    (tmp_path / "absent/script.py").write_text("import sys\nsys.exit(3)\n")
    (tmp_path / "absent/needy.py").write_text("import tested_nowhere\n")
    for entrypoint, expected in [
        (
            "os:system",
            "entrypoint: os:system is not allowed on this worker; start it with --allow-entrypoint os",
        ),
        ("absent.gone:run", "entrypoint: cannot import absent.gone: no module named absent.gone"),
        ("absent.needy:run", "entrypoint: cannot import absent.needy: no module named tested_nowhere"),
        ("absent.broken:run", "entrypoint: importing absent.broken failed: OSError: no license"),
        ("absent.script:run", "entrypoint: importing absent.script failed: SystemExit: 3"),
        ("absent:run", "entrypoint: absent has no function run"),
        ("absent:number", "entrypoint: absent has no function number"),
    ]:
        assert await refusal(start, entrypoint=entrypoint) == expected
    sys.modules.pop("absent", None)


async def test_entry_points_that_fail(start: Any, entrypoint: Any, spark: SparkSession) -> None:
    """A raising one is told with its trace, a wrong result with its type; none ends the worker."""

    def raising(context: Any) -> Any:
        raise KeyError(context.task)

    with pytest.raises(QueryError) as refused:
        await start(entrypoint=entrypoint(raising))
    assert str(refused.value).startswith("entrypoint: tested:run failed: KeyError: 't'\n")
    assert "in raising" in str(refused.value)
    said = await refusal(start, entrypoint=entrypoint(lambda _context: sys.exit("no license")))
    assert said == "entrypoint: tested:run failed: SystemExit: no license"
    said = await refusal(start, entrypoint=entrypoint(lambda _context: 5))
    assert said == "entrypoint: tested:run returned int, not a DataStreamWriter"

    def starting(context: Any) -> Any:
        frame = context.spark.readStream.format("rate").load()
        return frame.writeStream.format("noop").option("checkpointLocation", context.checkpoint).start()

    said = await refusal(start, entrypoint=entrypoint(starting))
    assert said == "entrypoint: tested:run started its query; return the writer without start()"
    assert spark.streams.active == []


async def test_an_entry_point_without_a_sink(start: Any, entrypoint: Any) -> None:
    """The context's sink says what it needs."""

    def run(options: dict[str, Any]) -> Any:
        return lambda context: context.sink(context.spark.readStream.format("rate").load(), **options)

    said = await refusal(start, entrypoint=entrypoint(run({})))
    assert said == "context.sink: needs url and table, or a sink in the definition"
    said = await refusal(start, entrypoint=entrypoint(run({"url": "sqlite:///x.db"})))
    assert said.startswith("context.sink: options.table")
    to = {"url": "sqlite:///x.db", "table": "t"}
    said = await refusal(start, entrypoint=entrypoint(run(to)), output_mode="complete")
    assert said.startswith("context.sink: output_mode: must be append or update with")
