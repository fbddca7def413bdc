"""Rows that a definition does not expect fail their batch or are left out, whatever way a batch takes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from worker.left_out import LeftOut
from worker.query_engine import QueryError

if TYPE_CHECKING:
    from pathlib import Path

ONCE = {"available_now": True}
EARLY = {"name": "early", "where": "id < 15", "on_violation": "drop"}
UNITED = {"name": "united", "where": "carrier = 'UA' -- of three", "on_violation": "drop"}
UP_TO_15 = [n for n in range(15) if n % 3 == 0]


def rows_in(folder: Path) -> list[dict[str, Any]]:
    """Of all files of JSON lines below it."""
    return [json.loads(line) for file in folder.rglob("*.json") for line in file.read_text().splitlines()]


async def test_rows_are_left_out_of_a_batch_in_one_piece(start: Any, flights: Any, database: Any) -> None:
    """Those that violate one, the other and both; the sink has the columns of the query."""
    flights.add(files=3)
    query = await start(source=flights.source, expect=[EARLY, UNITED], sink=database.sink(), trigger=ONCE)
    assert await query.ended() is None
    assert database.ids() == UP_TO_15
    assert [each[1] for each in database.query("PRAGMA table_info(flights)")] == ["id", "carrier", "delay"]


async def test_rows_are_left_out_where_they_are_computed(
    start: Any, flights: Any, database: Any, monkeypatch: Any
) -> None:
    """Of a batch that is too large for the driver."""
    monkeypatch.setattr("worker.sinks.sql.INLINE_ROWS", 5)
    flights.add(files=1, rows=40)
    query = await start(source=flights.source, expect=[EARLY, UNITED], sink=database.sink(), trigger=ONCE)
    assert await query.ended() is None
    assert database.ids() == UP_TO_15


async def test_rows_are_left_out_of_files(start: Any, flights: Any, tmp_path: Any) -> None:
    """Which Spark writes itself."""
    flights.add(files=3)
    sink = {"format": "fenced_files", "options": {"path": str(tmp_path / "out"), "format": "json"}}
    query = await start(source=flights.source, expect=[EARLY, UNITED], sink=sink, trigger=ONCE)
    assert await query.ended() is None
    rows = rows_in(tmp_path / "out")
    assert sorted(row["id"] for row in rows if "id" in row) == UP_TO_15


async def test_rows_are_left_out_of_a_sink_of_spark_s(start: Any, flights: Any, tmp_path: Any) -> None:
    """Which has no batches of ours: Spark itself counts them."""
    flights.add(files=3)
    sink = {"format": "json", "options": {"path": str(tmp_path / "out")}}
    query = await start(source=flights.source, expect=[EARLY, UNITED], sink=sink, trigger=ONCE)
    assert await query.ended() is None
    rows = rows_in(tmp_path / "out")
    assert sorted(row["id"] for row in rows) == UP_TO_15
    assert set(rows[0]) == {"id", "carrier", "delay"}
    last = query._progress.last
    assert last is not None
    assert last.totals.left_out == LeftOut(dropped=25, reasons={"early": 15, "united": 20})


async def test_what_is_null_is_a_violation(start: Any, flights: Any, database: Any) -> None:
    """As it is to WHERE."""
    flights.add(files=1)
    expect = [{"name": "a", "where": "nullif(id, 3) >= 0", "on_violation": "drop"}]
    query = await start(source=flights.source, expect=expect, sink=database.sink(), trigger=ONCE)
    assert await query.ended() is None
    assert database.ids() == [n for n in flights.ids if n != 3]


@pytest.mark.parametrize("sink", ["sql", "noop"])
async def test_a_violation_fails_its_batch(start: Any, flights: Any, database: Any, sink: str) -> None:
    """With the expectation's name; what was written before stays."""
    flights.add(files=3)
    expect = [EARLY | {"where": "id != 2"}, {"name": "low", "where": "id < 15"}]
    into = database.sink() if sink == "sql" else {"format": "noop"}
    query = await start(source=flights.source, expect=expect, sink=into, trigger=ONCE)
    ended = await query.ended()
    assert isinstance(ended, QueryError)
    assert "expect[1]: low is violated by a row: id < 15" in ended.cause.splitlines()[0]
    if sink == "sql":
        assert database.ids() == [n for n in range(10) if n != 2]


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("delai > 0", "delai"),
        ("delay", "FILTER_NOT_BOOLEAN"),
        ("id > (SELECT", "PARSE_SYNTAX_ERROR"),
        ("true) OR (true", "PARSE_SYNTAX_ERROR"),
        ("count(*) > 1", "INVALID_WHERE_CONDITION"),
        ("java_method('java.lang.System', 'exit', 1) IS NULL", "java_method"),
    ],
)
async def test_what_is_no_condition(start: Any, flights: Any, database: Any, where: str, told: str) -> None:
    """Refused before anything is read, with the place in the definition."""
    flights.add()
    expect = [EARLY, {"name": "b", "where": where, "on_violation": "drop"}]
    with pytest.raises(QueryError) as refused:
        await start(source=flights.source, expect=expect, sink=database.sink(), trigger=ONCE)
    assert refused.value.path == "expect[1].where"
    assert told in str(refused.value)


async def test_a_column_of_the_mask_s_name(start: Any, flights: Any, database: Any) -> None:
    """In whatever letters, which Spark does not tell apart."""
    flights.add()
    with pytest.raises(QueryError, match="names that begin with _sparkherd_ are reserved"):
        await start(
            source=flights.source,
            sql="SELECT id, 1 AS _Sparkherd_Violations FROM source",
            expect=[EARLY],
            sink=database.sink(),
            trigger=ONCE,
        )


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"sql": "SELECT id AS _Sparkherd_violations FROM source"}, "sql"),
        ({"sql": "SELECT id AS _sparkherd_aside FROM source", "on_error": "quarantine"}, "sql"),
        ({"schema": "id BIGINT, _sparkherd_corrupt STRING", "on_error": "quarantine"}, "source"),
        ({"schema": "id BIGINT, _sparkherd_aside STRING"}, "source"),
    ],
)
async def test_a_name_of_a_hidden_column_is_refused_at_the_start(
    start: Any, flights: Any, database: Any, fields: dict[str, Any], path: str
) -> None:
    """And not by a batch that loses the column, or fails for it."""
    flights.add(files=1)
    schema = {name: fields.pop(name) for name in ("schema",) if name in fields}
    with pytest.raises(QueryError, match="_sparkherd_") as refused:
        await start(source={**flights.source, **schema}, sink=database.sink(), trigger=ONCE, **fields)
    assert (refused.value.path, refused.value.permanent) == (path, True)
