"""Checks of definitions with a real Spark: what is found, what is shown, and that nothing is changed."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from definition.document import parse_definition
from telemetry.foreign_errors import first_line_of
from tests.fakes.foreign_errors import RAISED, kind_of
from worker.query_engine import CheckSpec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from protocol.messages.checks import CheckResult
    from protocol.messages.tasks import Problem
    from tests.integration.spark.conftest import Database, Flights
    from worker.spark.engine import SparkEngine

    Check = Callable[..., Awaitable[CheckResult]]

NOOP = {"format": "noop"}


@pytest.fixture
def check(engine: SparkEngine) -> Check:
    async def look(rows: int = 10, begin: Any = "beginning", **definition: Any) -> CheckResult:
        document = parse_definition(json.dumps(definition).encode())
        return await engine.check(CheckSpec("g", document, rows, begin))

    return look


def said(found: tuple[Problem, ...]) -> list[tuple[str, str]]:
    return [(each.path, each.message) for each in found]


async def test_columns_and_the_first_rows_of_files(
    check: Check, flights: Flights, database: Database
) -> None:
    """Of a sound definition: types, ten rows in the order of the files, no problem, and no database made."""
    flights.add(files=3)
    found = await check(
        source=flights.source, sql="SELECT id, delay FROM source WHERE id > 2", sink=database.sink()
    )
    assert [(each.name, each.type) for each in found.columns or ()] == [("id", "bigint"), ("delay", "double")]
    assert found.rows == tuple((n, n / 2) for n in range(3, 13))
    assert found.problems == ()
    assert said(found.notes) == [
        ("sink.options.url", "the file is not there: it would be made, and the table")
    ]
    assert not database.path.exists()


async def test_the_last_rows_of_files(check: Check, flights: Flights) -> None:
    """The newest files' ends, oldest first, as they would be written; and which files that were."""
    flights.add(files=12, rows=3)
    found = await check(rows=4, begin="end", source=flights.source, sink=NOOP)
    assert [row[0] for row in found.rows] == [32, 33, 34, 35]
    assert ("source", "the rows are of 10 of its 12 files") in said(found.notes)


async def test_what_the_table_lacks(check: Check, flights: Flights, database: Database) -> None:
    """A column that is not there, and one that has to be filled; the table stays as it was."""
    flights.add()
    with closing(sqlite3.connect(database.path)) as connection:
        connection.execute("CREATE TABLE flights (id BIGINT, gate TEXT NOT NULL)")
    before = database.path.read_bytes()
    found = await check(
        source=flights.source,
        sql="SELECT id, delay FROM source",
        sink=database.sink(mode="upsert", key=["id"]),
    )
    assert said(found.problems) == [
        ("sink.options.table", "the table flights has no column delay, which the query yields"),
        ("sink.options.table", "the table flights requires gate, which the query does not yield"),
        ("sink.options.table", "the table flights has no unique index on id, the key of this upsert"),
    ]
    assert len(found.rows) == 10
    assert database.path.read_bytes() == before
    assert [each.name for each in database.path.parent.glob("out.db*")] == ["out.db"]


async def test_types_that_no_column_has(check: Check, flights: Flights, database: Database) -> None:
    """With what to write instead."""
    flights.add()
    found = await check(
        source=flights.source, sql="SELECT array(id) AS ids FROM source", sink=database.sink()
    )
    [(path, message)] = said(found.problems)
    assert path == "sink"
    assert "select to_json(ids) AS ids instead" in message
    assert found.rows[0] == ([0],)


async def test_every_source_that_fails_is_named(check: Check, flights: Flights) -> None:
    """One that cannot be read does not keep others from being looked at; a connector has its package."""
    flights.add()
    sources = {
        "a": {"format": "json", "schema": "id LONG", "options": {"path": str(flights.folder / "absent")}},
        "b": {"format": "carrierpigeon", "options": {"path": "x"}},
        "c": flights.source,
    }
    found = await check(sources=sources, sql="SELECT * FROM c", sink=NOOP)
    problems = dict(said(found.problems))
    assert "[PATH_NOT_FOUND]" in problems["sources.a"]
    assert "--packages GROUP:ARTIFACT:VERSION of carrierpigeon" in problems["sources.b"]
    assert (found.columns, found.rows, len(problems)) == (None, (), 2)


async def test_sql_that_spark_refuses(check: Check, flights: Flights) -> None:
    """A column that is not there, and what is no query."""
    flights.add()
    found = await check(source=flights.source, sql="SELECT nothing FROM source", sink=NOOP)
    [(path, message)] = said(found.problems)
    assert path == "sql"
    assert "[UNRESOLVED_COLUMN" in message
    found = await check(source=flights.source, sql="SELECT java_method('x', 'y') FROM source", sink=NOOP)
    assert "move it to an entry point" in found.problems[0].message


async def test_what_only_streaming_refuses(check: Check, flights: Flights) -> None:
    """An aggregate without a watermark in append mode: the rows are shown all the same."""
    flights.add(files=2)
    counted = "SELECT carrier, count(*) AS n FROM source GROUP BY carrier ORDER BY carrier"
    found = await check(source=flights.source, sql=counted, sink=NOOP, output_mode="complete")
    assert said(found.problems) == []
    assert found.rows == (("AA", 7), ("B6", 6), ("UA", 7))
    found = await check(source=flights.source, sql=counted.partition(" ORDER")[0], sink=NOOP)
    [(path, message)] = said(found.problems)
    assert path == "output_mode"
    assert "streaming aggregations without watermark" in message
    assert len(found.rows) == 3


async def test_a_source_that_only_streams_has_columns_and_no_rows(check: Check) -> None:
    """Which is said."""
    found = await check(source={"format": "rate"}, sink=NOOP)
    assert [each.name for each in found.columns or ()] == ["timestamp", "value"]
    assert found.rows == ()
    assert ("source", "rate can only be streamed, so there are no rows to show") in said(found.notes)


async def test_a_static_source_is_joined_with(check: Check, flights: Flights, tmp_path: Path) -> None:
    """As the task would."""
    flights.add()
    (tmp_path / "names.csv").write_text("UA,United\nAA,American\nB6,JetBlue\n")
    names = {
        "format": "csv",
        "schema": "code STRING, name STRING",
        "options": {"path": str(tmp_path / "names.csv")},
        "static": True,
    }
    sql = "SELECT id, name FROM flights JOIN names ON carrier = code"
    found = await check(rows=3, sources={"flights": flights.source, "names": names}, sql=sql, sink=NOOP)
    assert sorted(found.rows) == [(0, "United"), (1, "American"), (2, "JetBlue")]


KINDS = """
SELECT CAST(1 AS BIGINT) AS a, 9223372036854775807 AS b, CAST(1.10 AS DECIMAL(10, 2)) AS c,
 CAST(1234567890123456789.5 AS DECIMAL(38, 1)) AS d, double('NaN') AS e, date'2026-01-02' AS f,
 timestamp'2026-01-02 03:04:05.000006' AS g, X'00ff' AS h, map('x', array(1, NULL)) AS i, NULL AS j,
 named_struct('p', 'é"', 'q', true) AS k, repeat('x', 2000) AS l, array_repeat('abc', 1000) AS m,
 interval '1' day AS n, 'id' AS `a.b c`
FROM source LIMIT 1
"""


async def test_values_of_all_kinds(check: Check, flights: Flights) -> None:
    """Numbers that a script could not hold are texts, long ones are cut."""
    flights.add()
    found = await check(source=flights.source, sql=KINDS.replace("LIMIT 1", ""), sink=NOOP, rows=1)
    [row] = found.rows
    *values, long_text, long_list, interval, name = row
    assert values == [
        *(1, "9223372036854775807", 1.1, "1234567890123456789.5", "NaN", "2026-01-02"),
        *("2026-01-02T03:04:05.000006Z", "AP8=", {"x": [1, None]}, None, {"p": 'é"', "q": True}),
    ]
    assert long_text == "x" * 999 + "…"
    assert (len(long_list), long_list[:6], long_list[-1]) == (1000, '["abc"', "…")
    assert (interval, name) == ("INTERVAL '1' DAY", "id")
    assert ("", "2 long values are cut, and end with …") in said(found.notes)


async def test_secrets_are_resolved_and_never_told(
    check: Check, flights: Flights, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in a problem nor in a row; and what is missing is named."""
    secret = "hunter2-of-checks"
    monkeypatch.setenv("TESTED_SECRET", secret)
    flights.add()
    sink = {
        "format": "sql",
        "options": {"url": "postgresql://u:${env:TESTED_SECRET}@127.0.0.1:1/x", "table": "t"},
    }
    found = await check(source=flights.source, sql=f"SELECT '{secret}' AS s FROM source", sink=sink, rows=1)
    [(path, message)] = said(found.problems)
    assert path == "sink"
    assert "127.0.0.1" in message
    assert secret not in repr(found)
    assert found.rows == (("***",),)
    sink["options"]["url"] = "postgresql://u:${env:TESTED_ABSENT}@h/x"  # type: ignore[index]
    found = await check(source=flights.source, sink=sink)
    assert said(found.problems) == [("sink.options.url", "${env:TESTED_ABSENT} is not set on this worker")]
    named = {**flights.source, "options": {**flights.source["options"], "a b": "${env:TESTED_ABSENT}"}}
    found = await check(source=named, sink=NOOP)
    assert said(found.problems) == [
        ('source.options["a b"]', "${env:TESTED_ABSENT} is not set on this worker")
    ]


async def test_a_check_that_is_given_up_computes_no_more(
    check: Check, engine: SparkEngine, flights: Flights
) -> None:
    """Spark drops its job, and the next check begins when nothing of it runs any more."""
    flights.add()
    slow = "SELECT sum(r.id % 7) AS s FROM source CROSS JOIN range(100000000000) AS r"
    steps: list[str] = []
    computing = asyncio.Event()

    def at(step: str) -> None:
        steps.append(step)
        if step == "Spark, for rows of the sources":
            computing.set()

    document = {"source": flights.source, "sql": slow, "sink": NOOP, "output_mode": "complete"}
    spec = CheckSpec("g", parse_definition(json.dumps(document).encode()), 10, "beginning")
    running = asyncio.ensure_future(engine.check(spec, at))
    await computing.wait()
    running.cancel()
    found = await check(source=flights.source, sink=NOOP)
    assert len(found.rows) == 10
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_files_are_found_as_the_source_finds_them(check: Check, tmp_path: Path) -> None:
    """By its own options of Hadoop's, without which nobody knows where they are."""
    (tmp_path / "1.json").write_text('{"id": 1}\n')
    options = {
        "path": "viewfs://theirs/in",
        "fs.viewfs.mounttable.theirs.link./in": f"file:{tmp_path}",
        "fs.viewfs.impl.disable.cache": "true",
    }
    found = await check(source={"format": "json", "schema": "id LONG", "options": options}, sink=NOOP)
    assert (found.problems, found.rows) == ((), ((1,),))


@pytest.mark.parametrize("place", ["", "/p=*"])
async def test_lines_that_are_put_aside_are_not_shown(
    check: Check, tmp_path: Path, database: Database, place: str
) -> None:
    """Nor any part of one; the columns of folders are those that the task has."""
    for part, line in (("01", '{"id": 1}{"id": 5}'), ("2", '{"id": 2}')):
        (tmp_path / "in" / f"p={part}").mkdir(parents=True)
        (tmp_path / "in" / f"p={part}" / "1.json").write_text(f'{line}\n{{"id": 3}}\n\n')
    options = {"path": f"{tmp_path}/in{place}", "basePath": f"{tmp_path}/in"}
    definition = {
        "source": {"format": "json", "schema": "p STRING, id LONG", "options": options},
        "sink": database.sink(),
    }
    strict = await check(on_error="quarantine", **definition)
    assert (strict.problems, strict.columns) == ((), (await check(rows=0, **definition)).columns)
    assert sorted(strict.rows or ()) == [(2, "2"), (3, "01"), (3, "2")]


async def test_a_schema_means_what_the_task_s_own_settings_say(
    check: Check, tmp_path: Path, start: Any, catch_up: Any, database: Database
) -> None:
    """Spark reads it by the settings of the thread's session, whichever session it is for."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("2026-01-02T03:04:05\n")
    definition = {
        "source": {"format": "csv", "schema": "at TIMESTAMP", "options": {"path": str(tmp_path / "in")}},
        "spark_conf": {"spark.sql.timestampType": "TIMESTAMP_NTZ"},
    }
    found = await check(**definition, sink=NOOP)
    assert [(each.name, each.type) for each in found.columns or ()] == [("at", "timestamp_ntz")]
    assert found.rows == (("2026-01-02T03:04:05.000000",),)
    sql = "SELECT typeof(at) AS kind FROM source"
    await catch_up(await start(**definition, sql=sql, sink=database.sink()))
    assert database.query("SELECT kind FROM flights") == [("timestamp_ntz",)]


async def test_no_database_calls_java_in_a_check(check: Check, flights: Flights) -> None:
    """Derby comes with Spark; a check refuses what a task would, and shows no rows."""
    flights.add()
    options = {"url": "jdbc:derby:memory:checked;create=true", "query": "SELECT 1 AS x FROM sysibm.sysdummy1"}
    sources = {
        "flights": flights.source,
        "told": {"format": "jdbc", "static": True, "options": options},
    }
    found = await check(sources=sources, sql="SELECT told.x FROM flights CROSS JOIN told", sink=NOOP)
    [(path, message)] = said(found.problems)
    assert path == "sources.told.options.url"
    assert message.startswith("is of jdbc:derby, whose driver may run Java")
    assert (found.columns, found.rows) == (None, ())


async def test_a_quarantine_that_gives_nothing_back_is_noted(
    check: Check, flights: Flights, tmp_path: Path
) -> None:
    """It is no problem: the rows are safe there."""
    flights.add()
    sink, place = (
        {"format": "fenced_files", "options": {"path": str(tmp_path / at)}} for at in ("out", "bad")
    )
    expect = [{"name": "known", "where": "id >= 0", "on_violation": "quarantine"}]
    found = await check(source=flights.source, expect=expect, sink=sink, quarantine=place)
    assert found.problems == ()
    assert any(path == "quarantine.format" and "nor discarded" in text for path, text in said(found.notes))


@pytest.mark.parametrize("error", RAISED, ids=kind_of)
async def test_whatever_a_sink_raises_that_is_plugged_in_is_told_of_it(
    check: Check, flights: Flights, database: Database, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """And the columns are known all the same."""

    def fails(*_: Any) -> None:
        raise error

    flights.add()
    monkeypatch.setattr("worker.spark.checks.check.inspect_sink", fails)
    found = await check(source=flights.source, sink=database.sink("t"))
    assert [(path, text.partition("\n")[0]) for path, text in said(found.problems)] == [
        ("sink", first_line_of(error))
    ]
    assert found.columns
