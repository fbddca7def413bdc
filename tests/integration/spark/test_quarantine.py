"""Rows that cannot be read, violate an expectation or are refused are put aside; none is lost."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.spark.quarantined_flights import (
    ASIDE,
    KNOWN,
    LINES,
    ONCE,
    SCHEMA,
    SMALL,
    TABLE,
    raw_rows,
    rows_in,
    source,
)
from worker.left_out import LeftOut
from worker.query_engine import QueryError
from worker.sinks.sql import SqlSink
from worker.spark.batches.batch_steps import Reading

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("sql", [None, "SELECT id, carrier, delay FROM source WHERE id <> 77"])
async def test_each_row_goes_to_its_place_in_one_transaction(
    start: Any, tmp_path: Path, database: Any, sql: str | None
) -> None:
    """The sink's, the quarantine beside it, or nowhere, and is counted."""
    database.query(TABLE)
    query = await start(
        source=source(tmp_path / "in", *LINES),
        sql=sql,
        expect=[KNOWN, SMALL],
        on_error="quarantine",
        sink=database.sink(),
        trigger=ONCE,
    )
    assert await query.ended() is None
    assert database.ids() == [1, 4]
    found = raw_rows(database)
    assert sorted(found, key=lambda row: row[0]) == [
        ("refused", "sink", '{"id":2,"carrier":"B6","delay":1.0}'),
        ("unreadable", "source", LINES[1]),
        ("unreadable", "source", LINES[3]),
        ("violation", "known", '{"id":-3,"carrier":"UA"}'),
        ("violation", "known", '{"id":-1000,"carrier":"AA","delay":"NaN"}'),
    ]
    files = [
        json.loads(origin)["file"] for reason, *_, origin in database.query(ASIDE) if reason == "unreadable"
    ]
    assert {file.rpartition("/")[2] for file in files} == {"0.json"}
    assert query._output.left_out == LeftOut(
        dropped=1, quarantined=5, reasons={"known": 2, "small": 1, "unreadable": 2, "refused": 1}
    )


async def test_lines_of_csv_are_put_aside_as_they_came(start: Any, tmp_path: Path, database: Any) -> None:
    """The header is none of them."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.csv").write_text('id,carrier,delay\n1,UA,1.5\nx,UA,2\n2,"A,A",\n3\n')
    query = await start(
        source={
            "format": "csv",
            "schema": SCHEMA,
            "options": {"path": str(folder), "header": "true"},
        },
        on_error="quarantine",
        sql="SELECT id FROM source",
        sink=database.sink(),
        trigger=ONCE,
    )
    assert await query.ended() is None
    assert database.ids() == [1, 2]
    assert sorted(raw for *_, raw in raw_rows(database)) == ["3", "x,UA,2"]


async def test_a_batch_without_a_good_row_is_put_aside_as_a_whole(
    start: Any, tmp_path: Path, database: Any
) -> None:
    """And nothing comes to the sink."""
    query = await start(
        source=source(tmp_path / "in", "a", "b", "c"),
        on_error="quarantine",
        sink=database.sink(),
        trigger=ONCE,
    )
    assert await query.ended() is None
    assert (database.ids(), len(raw_rows(database))) == ([], 3)


async def test_sql_that_needs_no_row_leaves_none_unnoticed(start: Any, tmp_path: Path, database: Any) -> None:
    """Spark does not even count then what it need not compute."""
    query = await start(
        source=source(tmp_path / "in", *LINES),
        sql="SELECT id FROM source WHERE 1 = 0",
        on_error="quarantine",
        sink=database.sink(),
        trigger=ONCE,
    )
    assert await query.ended() is None
    assert (database.ids(), len(raw_rows(database))) == ([], 2)


async def test_rows_that_cannot_be_read_are_found_where_nothing_had_to_be_read(
    start: Any, tmp_path: Path, database: Any
) -> None:
    """Of a join with nothing, Spark does not even look at the stream, and counts no rows."""
    (tmp_path / "names").mkdir()
    (tmp_path / "names" / "a.json").write_text("")
    names = {
        "format": "json",
        "schema": "carrier STRING",
        "options": {"path": str(tmp_path / "names")},
        "static": True,
    }
    query = await start(
        sources={"s": source(tmp_path / "in", *LINES), "n": names},
        sql="SELECT /*+ SHUFFLE_REPLICATE_NL(n) */ s.* FROM s JOIN n ON s.carrier = n.carrier",
        on_error="quarantine",
        sink=database.sink(),
        trigger=ONCE,
    )
    assert await query.ended() is None
    assert (database.ids(), len(raw_rows(database))) == ([], 2)


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT id, count(*) AS n FROM source GROUP BY id", "the node Aggregate"),
        ("SELECT DISTINCT id FROM source", "the node Distinct"),
        ("SELECT a.id FROM source a JOIN source b ON a.id = b.id", "more than once"),
        ("WITH s AS (SELECT id FROM source) SELECT a.id FROM s a JOIN s b ON a.id = b.id", "more than once"),
        ("SELECT id FROM source UNION ALL SELECT id FROM source", "the node Union"),
    ],
)
async def test_a_result_that_is_not_row_by_row_is_refused(
    start: Any, tmp_path: Path, database: Any, sql: str, told: str
) -> None:
    """Before anything is read."""
    with pytest.raises(QueryError) as refused:
        await start(
            source=source(tmp_path / "in", *LINES), sql=sql, on_error="quarantine", sink=database.sink()
        )
    assert refused.value.path == "on_error"
    assert told in refused.value.cause


async def test_rows_may_be_joined_with_what_does_not_stream(
    start: Any, tmp_path: Path, database: Any
) -> None:
    """Each by itself; not those that only the other side has."""
    names = tmp_path / "names"
    names.mkdir()
    (names / "a.json").write_text('{"code": "UA", "name": "United"}\n{"code": "ZZ", "name": "No"}\n')
    static = {
        "format": "json",
        "schema": "code STRING, name STRING",
        "options": {"path": str(names)},
        "static": True,
    }

    async def run(kind: str, folder: str) -> Any:
        return await start(
            sources={"flights": source(tmp_path / folder, *LINES), "names": static},
            sql=f"SELECT f.id, n.name FROM flights f {kind} JOIN names n ON f.carrier = n.code",
            on_error="quarantine",
            sink=database.sink(table=folder),
            trigger=ONCE,
        )

    query = await run("LEFT", "lefts")
    assert await query.ended() is None
    rows = database.query("SELECT id, name FROM lefts ORDER BY id")
    assert rows == [(-1000, None), (-3, "United"), (1, "United"), (2, None), (4, "United"), (1000, "United")]
    with pytest.raises(QueryError, match="joins the stream in a way"):
        await run("RIGHT", "rights")


async def test_a_poison_batch_fails_with_the_error_and_three_rows(
    start: Any, tmp_path: Path, database: Any
) -> None:
    """And nothing of it is anywhere."""
    query = await start(
        source=source(tmp_path / "in", *LINES),
        on_error="quarantine",
        quarantine={"max_quarantined_per_batch": 1},
        sink=database.sink(),
        trigger=ONCE,
    )
    ended = await query.ended()
    assert "2 of 8 rows would be put aside, more than quarantine.max_quarantined_per_batch (1)" in ended.cause
    assert "source: is no line of json" in ended.cause
    assert "0.json" in ended.cause
    assert (database.ids(), raw_rows(database)) == ([], [])


@pytest.mark.usefixtures("way")
async def test_a_batch_without_a_bad_row_is_computed_once(
    start: Any, tmp_path: Path, database: Any, monkeypatch: Any
) -> None:
    """That there is none is counted in passing."""
    looks: list[int] = []

    def look(_frame: Any, most: int) -> list[Any]:
        looks.append(most)
        return []

    monkeypatch.setattr("worker.spark.batches.sifted_batch.unreadable", look)
    query = await start(
        source=source(tmp_path / "in", *(line for line in LINES if '{"id": 1' in line)),
        sql="SELECT id FROM source",
        on_error="quarantine",
        sink=database.sink(),
        trigger=ONCE,
    )
    assert await query.ended() is None
    assert (database.ids(), looks) == ([1, 1000], [])


async def test_lines_of_csv_in_folders_that_come_later_are_read(
    start: Any, tmp_path: Path, database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark moves a folder's column behind all others; none of ours may come to stand at its place."""
    is_written, write = threading.Event(), SqlSink.write

    def noted(sink: SqlSink, batch: Any) -> Any:
        written = write(sink, batch)
        is_written.set()
        return written

    monkeypatch.setattr(SqlSink, "write", noted)
    folder = tmp_path / "in"
    folder.mkdir()
    given = {"format": "csv", "schema": "id BIGINT, day STRING", "options": {"path": str(folder)}}
    await start(source=given, on_error="quarantine", sink=database.sink())
    (tmp_path / "a.csv").write_text("1\nx\n2\n")
    (folder / "day=2026-03-01").mkdir()
    (tmp_path / "a.csv").rename(folder / "day=2026-03-01" / "a.csv")
    assert await asyncio.to_thread(is_written.wait, 120)
    assert database.query("SELECT id, day FROM flights ORDER BY id") == [(1, "2026-03-01"), (2, "2026-03-01")]
    assert [raw for *_, raw in raw_rows(database)] == ["x"]


@pytest.mark.parametrize("bad", ["lines", "violations"])
async def test_bad_rows_of_too_many_bytes_fail_their_batch_and_do_not_come_to_the_driver(
    *, start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: str
) -> None:
    """Only those three that the cause shows do."""
    for module in ("worker.sinks.aside", "worker.spark.batches.sifted_batch"):
        monkeypatch.setattr(f"{module}.MOST_BYTES", 1000)
    lines = ["no json " * 20] * 10 if bad == "lines" else [f'{{"id": -{"1" * 15}}}'] * 100
    files = {"format": "fenced_files", "options": {"path": str(tmp_path / "out"), "format": "json"}}
    query = await start(
        source=source(tmp_path / "in", '{"id": 1}', *lines),
        expect=[KNOWN],
        on_error="quarantine",
        sink=files,
        quarantine={**files, "options": {"path": str(tmp_path / "aside")}, "max_quarantined_ratio": 1.0},
        trigger=ONCE,
    )
    cause = (await query.ended()).cause
    assert (
        f"{len(lines)} of {len(lines) + 1} rows would be put aside, which have more than 1,000 bytes" in cause
    )
    assert rows_in(tmp_path / "out") == []


@pytest.mark.parametrize(
    ("sql", "is_kept"),
    [
        ("SELECT upper(carrier) AS carrier, id FROM source WHERE id <> 5", True),
        ("WITH good AS (SELECT * FROM source) SELECT id, carrier FROM good WHERE id <> 5", False),
        ("SELECT id, uuid() AS carrier FROM source WHERE id <> 5", False),
        ("SELECT id, carrier FROM source WHERE id <> (SELECT 5)", False),
    ],
)
@pytest.mark.usefixtures("way")
async def test_a_plan_is_kept_from_batch_to_batch_if_it_is_the_same_each_time(
    start: Any, tmp_path: Path, database: Any, monkeypatch: pytest.MonkeyPatch, sql: str, *, is_kept: bool
) -> None:
    """Of each batch come its own rows, and its own random values; what cannot be read is counted in each."""
    folder, made, result = tmp_path / "in", [], Reading.result

    def counting(reading: Reading, frame: Any) -> Any:
        made.append(1)
        return result(reading, frame)

    monkeypatch.setattr(Reading, "result", counting)
    for number in range(4):
        given = source(folder, f'{{"id":{number},"carrier":"a{number}"}}', f"no {number}", '{"id":5}')
    given["options"]["maxFilesPerTrigger"] = 1
    query = await start(source=given, sql=sql, on_error="quarantine", sink=database.sink(), trigger=ONCE)
    assert await query.ended() is None
    assert (len(made) == 1) is is_kept
    assert is_kept or len(made) >= 4
    assert sorted(database.ids()) == [0, 1, 2, 3]
    assert len({carrier for (carrier,) in database.query("SELECT carrier FROM flights")}) == 4
    assert sorted(raw for *_, raw in raw_rows(database)) == [f"no {number}" for number in range(4)]
    assert query._output.left_out == LeftOut(quarantined=4, reasons={"unreadable": 4})
