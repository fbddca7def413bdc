from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from msgspec import structs

from protocol.messages.resources import WorkerResources
from tests.contracts.checkpoints import refuses_one_that_is_behind
from worker.query_engine import QueryError
from worker.spark.engine import SparkEngine
from worker.spark.settings import SparkSettings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.connect_server import ConnectServer

ONCE = {"available_now": True}
NOOP = {"format": "noop"}
TYPES = "SELECT id, carrier, delay, timestamp_micros(id) AS at, date_from_unix_date(0) AS day FROM source"


async def test_rows_and_what_is_told_of_them(start: Any, flights: Any, database: Any) -> None:
    """Owner after owner appends from where the one before was; the worker knows what the server did."""
    flights.add(files=2)
    first = await start(token=1, source=flights.source, sink=database.sink(), trigger=ONCE)
    assert await first.ended() is None
    assert first.progress().batch_id == 1
    assert {key: first.progress().metrics[key] for key in ("rows", "total_rows", "sink_rows")} == {
        "rows": 10,
        "total_rows": 20,
        "sink_rows": 20,
    }
    flights.add()
    second = await start(token=2, source=flights.source, sink=database.sink(), trigger=ONCE)
    assert await second.ended() is None
    assert database.ids() == flights.ids
    with pytest.raises(QueryError, match="is fenced: its token 1 is older than 2") as refused:
        await start(token=1, source=flights.source, sink=database.sink())
    assert refused.value.fenced


async def test_what_a_query_with_a_state_costs(start: Any, flights: Any) -> None:
    """All that Spark's records have is told from there, too; what its stages spill is not."""
    flights.add(files=2)
    source = flights.source | {"watermark": {"column": "at", "delay": "10 minutes"}}
    source["schema"] += ", at TIMESTAMP"
    query = await start(source=source, sql="SELECT DISTINCT id, at FROM source", sink=NOOP, trigger=ONCE)
    assert await query.ended() is None
    progress = query.progress()
    assert progress.metrics["state"].keys() == {"rows", "bytes", "memory_bytes"}
    assert progress.metrics["state"]["rows"] > 0
    assert sum(progress.metrics["phases_ms"].values()) > 0
    costs = progress.totals.costs
    assert (costs.late_rows, costs.late_batches, costs.spilled_bytes) == (0, None, None)


async def test_a_worker_does_not_tell_what_a_server_takes(remote: SparkEngine) -> None:
    """That is another machine, for all it knows."""
    assert await remote.resources("g") == WorkerResources()


async def test_a_checkpoint_that_does_not_know_how_far_the_task_has_come(
    remote: SparkEngine, start: Any, spec: Any, flights: Any, database: Any
) -> None:
    """It is refused for good before its fence is raised: the former token may still write."""
    await refuses_one_that_is_behind(remote, start, spec, flights, database)


@pytest.mark.parametrize(("option", "is_told"), [("True", False), ("false", True)])
async def test_an_entry_point_whose_checkpoint_lags_behind(*, option: str, is_told: bool, start: Any) -> None:
    """It sets that at its writer, and so nobody is told that the checkpoint has to have come so far."""
    options = {"asyncProgressTrackingEnabled": option}
    query = await start(entrypoint="tested_on_server:lagging", options=options)
    assert (query.checkpoint is not None) == is_told


async def test_a_large_batch_into_postgresql(start: Any, flights: Any, postgres: str) -> None:
    """It is staged where it is computed; dates, instants and numbers arrive as they are, each key once."""
    flights.add(rows=25_000)
    options = {"url": postgres, "table": "connected", "mode": "upsert", "key": ["id"]}
    sink = {"format": "sql", "options": options}
    query = await start(source=flights.source, sql=TYPES, sink=sink, trigger=ONCE)
    assert await query.ended() is None
    engine = sa.create_engine(sa.make_url(postgres).set(drivername="postgresql+psycopg"))
    with engine.connect() as connection:
        stored = connection.exec_driver_sql("SELECT * FROM connected ORDER BY id").all()
    engine.dispose()
    assert [row.id for row in stored] == flights.ids
    at = datetime(1970, 1, 1, microsecond=3, tzinfo=UTC)
    assert tuple(stored[3]) == (3, "UA", 1.5, at, date(1970, 1, 1))


async def test_a_guarded_query_with_state(start: Any, flights: Any, database: Any) -> None:
    """On the server, too, a repeated batch is computed though its rows are not wanted: its state goes on."""
    flights.add(files=3)
    options = {"url": f"sqlite:///{database.path}", "path": str(flights.folder)}
    definition = {"entrypoint": "tested_on_server:counted", "output_mode": "update", "trigger": ONCE}
    first = await start(token=1, **definition, options={**options, "crash": 1})
    assert (await first.ended()).cause.startswith("OSError: the power is gone")
    second = await start(token=2, **definition, options=options)
    assert await second.ended() is None
    assert sorted(database.query("SELECT carrier, n FROM counts")) == [("AA", 10), ("B6", 10), ("UA", 10)]


async def test_files_and_sinks_of_spark_s_own(start: Any, flights: Any, tmp_path: Path) -> None:
    """Fenced files are published on the server; Spark's own sinks do without sparkherd there."""
    flights.add(files=2)
    fenced = {"format": "fenced_files", "options": {"path": str(tmp_path / "fenced"), "format": "json"}}
    query = await start("fenced", source=flights.source, sink=fenced, trigger=ONCE)
    assert await query.ended() is None
    assert query.progress().metrics["sink_rows"] == 20
    assert _lines(tmp_path / "fenced") == 20
    own = {"format": "json", "options": {"path": str(tmp_path / "own")}}
    query = await start("own", source=flights.source, sink=own, trigger=ONCE)
    assert await query.ended() is None
    assert _lines(tmp_path / "own") == 20


def _lines(folder: Path) -> int:
    return sum(len(file.read_text().splitlines()) for file in folder.rglob("part-*.json"))


async def test_a_statement_that_is_no_query(start: Any, flights: Any, database: Any, tmp_path: Path) -> None:
    """It is refused before the server executes any of it; what is wrong in a query is told with its place."""
    flights.add()
    made = tmp_path / "made"
    for statement in (
        f"CREATE TABLE made USING json LOCATION '{made}' AS SELECT 1",
        f"EXECUTE IMMEDIATE \"INSERT OVERWRITE DIRECTORY '{made}' USING json SELECT 1\"",
        f"WITH a AS (SELECT 1) INSERT OVERWRITE DIRECTORY '{made}' USING json SELECT * FROM a",
        "SELEC id FROM source",
    ):
        with pytest.raises(QueryError, match=r"^sql: is no query: \[PARSE_SYNTAX_ERROR\]"):
            await start(source=flights.source, sql=statement, sink=database.sink())
    assert not made.exists()
    with pytest.raises(QueryError, match=r"^sql: gives options to a table by WITH"):
        await start(source=flights.source, sql="SELECT * FROM t WITH (a 'b')", sink=database.sink())
    with pytest.raises(QueryError, match=r"^\[UNRESOLVED_COLUMN.*; line 2 pos 0"):
        await start(source=flights.source, sql="SELECT\nnope FROM source", sink=database.sink())


async def test_sql_names_no_files(start: Any, flights: Any, database: Any, tmp_path: Path) -> None:
    """The session's settings hold on the server, too; which functions there are is the server's own."""
    flights.add()
    (tmp_path / "secret").write_text("hunter2")
    sql = f"SELECT f.* FROM source JOIN text.`{tmp_path}/secret` AS f"
    with pytest.raises(QueryError, match=r"--spark-conf spark\.sql\.runSQLOnFiles=true") as refused:
        await start(source=flights.source, sql=sql, sink=database.sink())
    assert refused.value.permanent


async def test_a_task_moves_between_kinds_of_workers(
    *,
    engine: SparkEngine,
    remote: SparkEngine,
    flights: Any,
    database: Any,
    spec: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On the server, then in a JVM of the worker's own, and back: one checkpoint, no row lost or twice."""
    root = engine._settings.checkpoint_root
    other = SparkEngine(structs.replace(remote._settings, checkpoint_root=root), lambda: True)
    await other.open()
    for token, each in enumerate((other, engine, other), start=1):
        flights.add(files=2)
        if each is engine:
            monkeypatch.delenv("SPARK_CONNECT_MODE_ENABLED")
        else:
            monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
        definition = spec("t", token, source=flights.source, sink=database.sink(), trigger=ONCE)
        assert await (await each.start(definition)).ended() is None
        assert database.ids() == flights.ids
    await other.close()


@pytest.mark.parametrize(
    ("parameters", "conf", "said"),
    [
        ("", {"spark.driver.memory": "1g"}, "--spark-conf spark.driver.memory: cannot be set for a session"),
        (
            "",
            {"sparkherd.heir.9": "x"},
            "--spark-conf sparkherd.heir.9: names that begin with sparkherd. are",
        ),
        ("", {"spark.sql.warehouse.dir": "x"}, "--spark-conf spark.sql.warehouse.dir: cannot be set"),
        ("/;token=s3cret", {}, "does not answer: UNAVAILABLE"),  # it asks for TLS, which this server has not
    ],
)
@pytest.mark.usefixtures("remote")
async def test_a_server_that_cannot_be_worked_with(
    server: ConnectServer, parameters: str, conf: dict[str, str], said: str
) -> None:
    """The worker does not start; one line says why, and has no token in it."""
    settings = SparkSettings(app_name="no", checkpoint_root="no", remote=server.url + parameters, conf=conf)
    engine = SparkEngine(settings, lambda: True)
    with pytest.raises(QueryError) as refused:
        await engine.open()
    assert said in str(refused.value)
    assert "s3cret" not in str(refused.value)
    assert "\n" not in str(refused.value)
    await engine.close()


async def test_a_share_of_the_server_is_refused_before_anything_is_written(
    start: Any, flights: Any, database: Any
) -> None:
    """No client can set a pool there, and a weight that does nothing would be found out too late."""
    flights.add()
    with pytest.raises(QueryError, match=r"^scheduling: has no effect on a Spark Connect server") as refused:
        await start(source=flights.source, sink=database.sink(), scheduling={"weight": 8})
    assert refused.value.permanent
    assert not database.path.exists()
