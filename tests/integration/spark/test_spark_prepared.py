"""What is made ready of a query before it is granted, and what its start makes of that."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.contracts.query_engine import made_ready
from worker.query_engine import QueryError
from worker.spark.prepared import PreparedStart

if TYPE_CHECKING:
    from worker.query_engine import QuerySpec
    from worker.spark.engine import SparkEngine
    from worker.spark.prepared import PlannedQuery

RATE = {"format": "rate-micro-batch", "options": {"rowsPerBatch": 5}}
ONCE = {"available_now": True}


async def prepared(engine: SparkEngine, spec: QuerySpec) -> PreparedStart:
    """What is made ready for it, whole."""
    made = await made_ready(engine, spec)
    assert isinstance(made, PreparedStart)
    await asyncio.wait({made.making})
    return made


def parts(made: PreparedStart) -> PlannedQuery:
    """Those of its plan, which stay there."""
    found = made.making.result()._parts
    assert found is not None
    return found


def is_there(place: str) -> bool:
    """Whether there is a file or folder."""
    return Path(place).exists()


async def run(engine: SparkEngine, spec: QuerySpec, made: PreparedStart) -> Any:
    """A query that has come to its end."""
    query = await engine.start(spec, prepared=made)
    assert await query.ended() is None
    return query


async def test_a_query_runs_in_the_session_that_it_was_planned_in(
    engine: SparkEngine, spec: Any, database: Any
) -> None:
    """With the plan that is there, under the token that it was granted with."""
    sink = database.sink("doubled", mode="upsert", key=["value"])
    sql = "SELECT value, value * 2 AS twice FROM source"
    wanted = spec("t", 7, source=RATE, sql=sql, sink=sink, spark_conf={"spark.sql.ansi.enabled": "false"})
    made = await prepared(engine, wanted)
    planned = parts(made)
    assert planned.found is not None
    query = await engine.start(wanted, prepared=made)
    while query.progress() is None:
        await asyncio.to_thread(query._handle.is_resting)
    await query.stop(30)
    assert query._session.spark is planned.session.spark
    assert query._session.spark.conf.get("spark.sql.ansi.enabled") == "false"
    rows = database.query("SELECT value, twice FROM doubled ORDER BY value")
    assert rows[:5] == [(n, 2 * n) for n in range(5)]
    assert database.query("SELECT token FROM sparkherd_fence") == [(7,)]


async def test_making_ready_changes_nothing(engine: SparkEngine, spec: Any, database: Any) -> None:
    """No table, no file of the sink's, no folder of the checkpoint's."""
    wanted = spec("t", 1, source=RATE, sink=database.sink())
    made = await prepared(engine, wanted)
    place = parts(made).session.checkpoint.place
    assert [is_there(each) for each in (place, str(database.path))] == [False, False]
    made.discard()


async def test_files_are_looked_at_by_the_start(
    engine: SparkEngine, spec: Any, flights: Any, database: Any
) -> None:
    """Their folder may come to have others, or come to be, before the task is granted."""
    source = {**flights.source, "options": {"path": f"{flights.folder}/later"}}
    wanted = spec("t", 1, source=source, sink=database.sink(), trigger=ONCE)
    made = await prepared(engine, wanted)
    assert parts(made).found is None
    flights.add()
    (flights.folder / "later").mkdir()
    for file in flights.folder.glob("*.json"):
        file.rename(flights.folder / "later" / file.name)
    await run(engine, wanted, made)
    assert database.ids() == flights.ids


async def test_a_secret_that_has_changed_meanwhile_is_the_one_that_counts(
    engine: SparkEngine, spec: Any, flights: Any, database: Any, secrets_folder: Path
) -> None:
    """The start looks it up itself, and leaves alone what was planned with another."""
    secret = secrets_folder / "moved-sink"
    secret.write_text(f"sqlite:///{database.path.parent}/former.db")
    flights.add()
    sink = {"format": "sql", "options": {"url": "${file:moved-sink}", "table": "flights"}}
    wanted = spec("t", 1, source=flights.source, sink=sink, trigger=ONCE)
    made = await prepared(engine, wanted)
    session = parts(made).session
    secret.write_text(f"sqlite:///{database.path}")
    query = await run(engine, wanted, made)
    assert query._session.spark is not session.spark
    assert database.ids() == flights.ids
    assert not is_there(f"{database.path.parent}/former.db")


async def test_what_cannot_be_planned_is_told_by_the_start(
    engine: SparkEngine, spec: Any, database: Any
) -> None:
    """In its words, as if nobody had tried before."""
    wanted = spec("t", 1, source=RATE, sql="SELECT nothing FROM source", sink=database.sink())
    made = await prepared(engine, wanted)
    assert made.making.exception() is not None
    with pytest.raises(QueryError, match="nothing"):
        await engine.start(wanted, prepared=made)


async def test_the_code_of_an_entry_point_is_not_run_for_it(
    engine: SparkEngine, spec: Any, entrypoint: Any
) -> None:
    """There is nothing else to be made ready for it."""
    called: list[object] = []
    wanted = spec("t", 1, entrypoint=entrypoint(called.append))
    assert await made_ready(engine, wanted) is None
    assert called == []


@pytest.mark.parametrize(
    ("sql", "is_planned"),
    [
        ("SELECT value, (SELECT 1) AS one FROM source WHERE value IN (1, 2)", True),
        ("SELECT a.value FROM (SELECT * FROM Source) a", True),
        ("SELECT value, k FROM source JOIN (VALUES (1), (2)) AS v(k) ON value = k", True),
        ("SELECT value FROM source JOIN dims ON value = k", False),
        ("SELECT value FROM source WHERE value IN (SELECT k FROM dims)", False),
        ("WITH dims AS (SELECT 1 AS k) SELECT value FROM source JOIN dims ON value = k", False),
        ("SELECT value FROM source JOIN range(5) ON value = id", False),
    ],
)
async def test_what_else_its_sql_names_is_looked_at_by_the_start(
    *, engine: SparkEngine, spec: Any, database: Any, sql: str, is_planned: bool
) -> None:
    """A table may be another by then, or its files gone; its catalog may not answer."""
    wanted = spec("t", 1, source=RATE, sql=sql, sink=database.sink())
    made = await prepared(engine, wanted)
    assert (parts(made).found is not None) == is_planned
    made.discard()
