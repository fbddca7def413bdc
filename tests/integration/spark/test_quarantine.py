"""Rows that cannot be read, violate an expectation or are refused are put aside; none is lost."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from worker.left_out import LeftOut
from worker.query_engine import QueryError
from worker.sinks.errors import SinkError
from worker.sinks.files import FilesSink
from worker.sinks.sql import SqlSink
from worker.spark.batches.batch_steps import Reading
from worker.spark.batches.sifted_batch import SiftedBatch

if TYPE_CHECKING:
    from pathlib import Path

ONCE = {"available_now": True}
TABLE = "CREATE TABLE flights (id BIGINT PRIMARY KEY, carrier TEXT CHECK (carrier <> 'B6'), delay DOUBLE)"
KNOWN = {"name": "known", "where": "id >= 0", "on_violation": "quarantine"}
SMALL = {"name": "small", "where": "id < 1000", "on_violation": "drop"}
ASIDE = "SELECT reason, name, raw, origin FROM sparkherd_quarantine ORDER BY batch_id, nth"
SCHEMA = "id BIGINT, carrier STRING, delay DOUBLE"
LINES = [
    '{"id": 1, "carrier": "UA", "delay": 1.0}',
    '{"id": "one"}',
    '{"id": 2, "carrier": "B6", "delay": 1.0}',
    "no json",
    '{"id": -3, "carrier": "UA"}',
    '{"id": 1000, "carrier": "UA"}',
    '{"id": 4, "carrier": "UA"}',
    '{"id": -1000, "carrier": "AA", "delay": "NaN"}',
]
"""Good ones are 1 and 4; two cannot be read, two violate an expectation, one is dropped, one is refused."""


def source(folder: Path, *lines: str, **fields: Any) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    (folder / f"{len(list(folder.iterdir()))}.json").write_text("\n".join(lines) + "\n")
    return {"format": "json", "schema": SCHEMA, "options": {"path": str(folder)}, **fields}


def raw_rows(database: Any) -> list[tuple[str, str, str]]:
    return [(reason, name, bytes(raw).decode()) for reason, name, raw, _ in database.query(ASIDE)]


@pytest.fixture(params=["collected", "staged"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a batch comes to the driver in one piece, or is staged by executors."""
    if request.param == "staged":
        monkeypatch.setattr("worker.sinks.sql.INLINE_ROWS", 0)


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


async def test_elsewhere_rows_are_put_aside_before_the_others_are_written(
    start: Any, tmp_path: Path, database: Any
) -> None:
    """Into files, beside a sink of files; a batch's rows are few, and in one of them."""
    database.query(TABLE)
    query = await start(
        source=source(tmp_path / "in", *LINES),
        sql="SELECT * FROM source",
        expect=[KNOWN, SMALL],
        on_error="quarantine",
        sink={"format": "fenced_files", "options": {"path": str(tmp_path / "out"), "format": "json"}},
        quarantine={
            "format": "fenced_files",
            "options": {"path": str(tmp_path / "aside"), "format": "json"},
        },
        trigger=ONCE,
    )
    assert await query.ended() is None
    assert sorted(row["id"] for row in rows_in(tmp_path / "out")) == [1, 2, 4]
    assert len(list((tmp_path / "aside").rglob("part-*.json"))) == 1
    aside = rows_in(tmp_path / "aside")
    assert sorted((row["reason"], row["name"], row["nth"]) for row in aside) == [
        ("unreadable", "source", 0),
        ("unreadable", "source", 1),
        ("violation", "known", 2),
        ("violation", "known", 3),
    ]
    assert {row["put_aside_at"][:2] for row in aside} == {"20"}
    assert query._output.left_out == LeftOut(4 - 3, 4, {"known": 2, "small": 1, "unreadable": 2})


async def test_elsewhere_a_row_is_in_one_place_whatever_the_time_of_day(start: Any, tmp_path: Path) -> None:
    """It violates or does not, and is not looked at twice: here that changes with each microsecond."""
    folder = tmp_path / "in"
    for number in range(8):
        source(folder, f'{{"id": {number}}}')
    given = source(folder, '{"id": 8}')
    given["options"]["maxFilesPerTrigger"] = 1
    places = {
        name: {"format": "fenced_files", "options": {"path": str(tmp_path / name), "format": "json"}}
        for name in ("out", "aside")
    }
    query = await start(
        source=given,
        sql="SELECT id, unix_micros(now()) % 2 AS odd FROM source",
        on_error="quarantine",
        expect=[{"name": "even", "where": "odd = 0", "on_violation": "quarantine"}],
        sink=places["out"],
        quarantine={**places["aside"], "max_quarantined_ratio": 1.0},
        trigger=ONCE,
    )
    assert await query.ended() is None
    there = [row["id"] for row in rows_in(tmp_path / "out")]
    there += [json.loads(base64.b64decode(row["raw"]))["id"] for row in rows_in(tmp_path / "aside")]
    assert sorted(there) == list(range(9))


@pytest.mark.parametrize("ratio", [0.1, 0.11])
async def test_elsewhere_all_rows_of_a_batch_count_for_the_ratio(
    start: Any, tmp_path: Path, ratio: float
) -> None:
    """Those that are written, too."""
    lines = [f'{{"id": {number}}}' for number in range(900)] + ["bad"] * 101
    places = {
        name: {"format": "fenced_files", "options": {"path": str(tmp_path / name), "format": "json"}}
        for name in ("out", "aside")
    }
    query = await start(
        source=source(tmp_path / "in", *lines),
        on_error="quarantine",
        sink=places["out"],
        quarantine={**places["aside"], "max_quarantined_ratio": ratio},
        trigger=ONCE,
    )
    ended = await query.ended()
    if ratio == 0.1:
        assert "101 of 1,001 rows would be put aside" in ended.cause
    else:
        assert (ended, len(rows_in(tmp_path / "out"))) == (None, 900)


def rows_in(folder: Path) -> list[dict[str, Any]]:
    """Of all files of JSON lines that Spark has written below it."""
    files = [file for file in folder.rglob("part-*.json") if file.name[0] != "_"]
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


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


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[SiftedBatch]:
    """The batches that were looked at before the sink had them."""
    found: list[SiftedBatch] = []
    look = SiftedBatch._look

    def noted(batch: SiftedBatch) -> None:
        found.append(batch)
        look(batch)

    monkeypatch.setattr(SiftedBatch, "_look", noted)
    return found


@pytest.mark.usefixtures("way")
async def test_elsewhere_violations_of_rows_for_a_database_are_found_in_passing(
    start: Any, tmp_path: Path, database: Any, looked: list[SiftedBatch]
) -> None:
    """In one piece, or where executors stage it; either way it is computed once."""
    good_json = [line for line in LINES if "no json" not in line and "one" not in line]
    query = await start(
        source=source(tmp_path / "in", *good_json),
        expect=[KNOWN, SMALL],
        sink=database.sink(),
        quarantine={
            "format": "fenced_files",
            "options": {"path": str(tmp_path / "aside"), "format": "json"},
        },
        trigger=ONCE,
    )
    assert await query.ended() is None
    assert (database.ids(), looked) == ([1, 2, 4], [])
    assert [row["name"] for row in rows_in(tmp_path / "aside")] == ["known", "known"]


@pytest.mark.parametrize("collects", [True, False])
async def test_elsewhere_a_row_without_a_key_fails_its_batch_before_others_are_put_aside(
    start: Any, tmp_path: Path, database: Any, monkeypatch: Any, *, collects: bool
) -> None:
    """So the mended definition does that batch; also where each partition hands its rows to the driver."""
    if not collects:
        monkeypatch.setattr("worker.spark.classic.rows.FEW_PARTITIONS", 0)
    given: dict[str, Any] = {
        "source": source(tmp_path / "in", '{"id": -1}', '{"carrier": "UA"}', '{"id": 2}'),
        "expect": [{**KNOWN, "where": "id IS NULL OR id >= 0"}],
        "sink": database.sink(mode="upsert", key=["id"]),
        "quarantine": {
            "format": "fenced_files",
            "options": {"path": str(tmp_path / "aside"), "format": "json"},
        },
        "trigger": ONCE,
    }
    cause = (await (await start("t", 1, **given)).ended()).cause
    assert "the key column id is NULL" in cause
    assert rows_in(tmp_path / "aside") == []
    mended = {**given, "sql": "SELECT * FROM source WHERE id IS NOT NULL"}
    assert await (await start("t", 2, **mended)).ended() is None
    assert (database.ids(), len(rows_in(tmp_path / "aside"))) == ([2], 1)


@pytest.mark.parametrize(("lines", "looks"), [(LINES[:1], 0), (LINES, 1)])
async def test_elsewhere_a_batch_for_files_is_done_once_more_where_it_has_bad_rows(
    start: Any, tmp_path: Path, looked: list[SiftedBatch], lines: list[str], looks: int
) -> None:
    """Spark has saved the others by then; what it has saved is replaced. A good one is computed once."""
    places = {
        name: {"format": "fenced_files", "options": {"path": str(tmp_path / name), "format": "json"}}
        for name in ("out", "aside")
    }
    query = await start(
        source=source(tmp_path / "in", *lines),
        sql="SELECT * FROM source",
        expect=[KNOWN, SMALL],
        on_error="quarantine",
        sink=places["out"],
        quarantine=places["aside"],
        trigger=ONCE,
    )
    assert await query.ended() is None
    written = sorted(row["id"] for row in rows_in(tmp_path / "out"))
    assert (written, len(looked)) == ([1, 2, 4] if looks else [1], looks)
    aside = sorted(row["name"] for row in rows_in(tmp_path / "aside"))
    assert aside == (["known", "known", "source", "source"] if looks else [])


async def test_elsewhere_a_batch_between_the_steps_is_not_done_without_its_quarantine(
    start: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    """Neither with one at another place nor with none; when it is done, the task may have either."""
    lines = tmp_path / "in"
    given: dict[str, Any] = {"source": source(lines, '{"id": 1}', '{"id": -1}'), "trigger": ONCE}
    places = {
        name: {"format": "fenced_files", "options": {"path": str(tmp_path / name), "format": "json"}}
        for name in ("out", "first", "second")
    }
    many = {"max_quarantined_ratio": 1.0}
    without = {**given, "sink": places["out"]}
    first, second = (
        {**without, "expect": [KNOWN], "quarantine": {**places[name], **many}} for name in ("first", "second")
    )
    with monkeypatch.context() as patched:
        patched.setattr(FilesSink, "_publish", _crashing(FilesSink._publish))
        assert (await (await start("t", 1, **first)).ended()).cause == "crashed"
    for token, other in ((2, second), (3, without)):
        with pytest.raises(QueryError, match="rows of batch 0 were put aside at fenced_files") as refused:
            await start("t", token, **other)
        assert (refused.value.path, refused.value.permanent) == ("quarantine", True)
    assert await (await start("t", 4, **first)).ended() is None
    source(lines, '{"id": 2}', '{"id": -2}')
    assert await (await start("t", 5, **second)).ended() is None
    there = {name: sorted(row.get("id", 0) for row in rows_in(tmp_path / name)) for name in places}
    assert there == {"out": [1, 2], "first": [0], "second": [0]}


def _crashing(publish: Any) -> Any:
    """What the sink does last; its quarantine goes on."""

    def published(sink: FilesSink, *batch: Any) -> Any:
        if sink.place.endswith("/out"):
            raise SinkError("crashed")
        return publish(sink, *batch)

    return published


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
