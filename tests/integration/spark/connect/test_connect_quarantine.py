"""What is left out behind a Spark Connect server: by one definition as in a JVM of the worker's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.spark.quarantined_flights import (
    KNOWN,
    LINES,
    ONCE,
    SMALL,
    TABLE,
    raw_rows,
    rows_in,
    source,
)
from worker.left_out import LeftOut
from worker.query_engine import QueryError

if TYPE_CHECKING:
    from tests.integration.spark.conftest import Database

SQL = "SELECT id, carrier, delay FROM source WHERE id <> 77"
UNREADABLE = [("unreadable", "source", line) for line in (LINES[1], LINES[3])]
VIOLATIONS = [
    ("violation", "known", '{"id":-1000,"carrier":"AA","delay":"NaN"}'),
    ("violation", "known", '{"id":-3,"carrier":"UA"}'),
]


def left_out(query: Any) -> LeftOut:
    """What the worker has heard by the gate when the last batch was done: the session is closed by now."""
    found: LeftOut = query.progress().totals.left_out
    return found


@pytest.mark.parametrize("sql", [None, SQL])
async def test_each_row_goes_to_its_place_in_one_transaction(
    start: Any, tmp_path: Path, database: Database, sql: str | None
) -> None:
    """The sink's, the quarantine beside it, or nowhere; the worker hears of the counts by the gate."""
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
    refused = ("refused", "sink", '{"id":2,"carrier":"B6","delay":1.0}')
    assert sorted(raw_rows(database)) == sorted([refused, *UNREADABLE, *VIOLATIONS])
    assert left_out(query) == LeftOut(
        dropped=1, quarantined=5, reasons={"known": 2, "small": 1, "unreadable": 2, "refused": 1}
    )


def elsewhere(tmp_path: Path) -> dict[str, Any]:
    """Files, and what is put aside in other ones."""

    def files(name: str) -> dict[str, Any]:
        return {"format": "fenced_files", "options": {"path": str(tmp_path / name), "format": "json"}}

    return {"sink": files("out"), "quarantine": files("aside")}


def aside_in(folder: Path) -> list[tuple[str, str, int]]:
    return sorted((row["reason"], row["name"], row["batch_id"]) for row in rows_in(folder))


async def test_elsewhere_rows_are_put_aside_before_the_others_are_written(start: Any, tmp_path: Path) -> None:
    """Both by the server, each into files of its own."""
    query = await start(
        source=source(tmp_path / "in", *LINES),
        sql=SQL,
        expect=[KNOWN, SMALL],
        on_error="quarantine",
        **elsewhere(tmp_path),
        trigger=ONCE,
    )
    assert await query.ended() is None
    assert sorted(row["id"] for row in rows_in(tmp_path / "out")) == [1, 2, 4]
    assert aside_in(tmp_path / "aside") == [
        *[("unreadable", "source", 0)] * 2,
        *[("violation", "known", 0)] * 2,
    ]
    assert {row["put_aside_at"][:2] for row in rows_in(tmp_path / "aside")} == {"20"}
    assert left_out(query) == LeftOut(1, 4, {"known": 2, "small": 1, "unreadable": 2})


@pytest.mark.parametrize("place", ["beside", "elsewhere"])
async def test_a_query_that_is_killed_and_started_again_puts_nothing_aside_twice(
    *, start: Any, settings: Any, tmp_path: Path, database: Database, place: str
) -> None:
    """It had written a batch, and died before Spark noted that it has."""
    into = {"sink": database.sink()} if place == "beside" else elsewhere(tmp_path)
    definition: dict[str, Any] = {
        "source": source(tmp_path / "in", *LINES),
        "expect": [KNOWN, SMALL],
        "on_error": "quarantine",
        "trigger": ONCE,
        **into,
    }
    first = await start(token=1, **definition)
    assert await first.ended() is None
    checkpoint = Path(settings.checkpoint(first.spec.group, first.spec.task))
    for name in ("0", ".0.crc"):
        (checkpoint / "commits" / name).unlink()
    source(tmp_path / "in", *LINES)
    second = await start(token=2, **definition)
    assert await second.ended() is None
    if place == "beside":
        assert database.ids() == [1, 1, 2, 2, 4, 4]
        rows = database.query("SELECT reason, name, batch_id FROM sparkherd_quarantine ORDER BY 1, 2, 3")
    else:
        assert sorted(row["id"] for row in rows_in(tmp_path / "out")) == [1, 1, 2, 2, 4, 4]
        rows = aside_in(tmp_path / "aside")
    assert rows == [
        *(("unreadable", "source", batch) for batch in (0, 0, 1, 1)),
        *(("violation", "known", batch) for batch in (0, 0, 1, 1)),
    ]
    assert left_out(second) == LeftOut(1, 4, {"known": 2, "small": 1, "unreadable": 2})


async def test_expectations_alone(start: Any, flights: Any, database: Database) -> None:
    """Whose rows are in the query's own plan; what is dropped is counted, too."""
    flights.add(files=2)
    query = await start(
        source=flights.source,
        expect=[
            {"name": "even", "where": "id % 2 = 0", "on_violation": "drop"},
            {"name": "token_missing", "where": "id < 15", "on_violation": "quarantine"},
        ],
        sink=database.sink(),
        trigger=ONCE,
    )
    assert await query.ended() is None
    assert database.ids() == [n for n in range(15) if n % 2 == 0]
    assert [json.loads(raw)["id"] for *_, raw in raw_rows(database)] == [15, 16, 17, 18, 19]
    assert left_out(query) == LeftOut(7, 5, {"even": 10, "token_missing": 5})


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT id, count(*) AS n FROM source GROUP BY id", "the node Aggregate"),
        ("SELECT DISTINCT id FROM source", "the node Distinct"),
        ("SELECT a.id FROM source a JOIN source b ON a.id = b.id", "more than once"),
        ("WITH s AS (SELECT id FROM source) SELECT a.id FROM s a JOIN s b ON a.id = b.id", "more than once"),
        ("SELECT id FROM source UNION ALL SELECT id FROM source", "the node Union"),
        ("SELECT id, row_number() OVER (ORDER BY id) AS n FROM source", "the node W"),
    ],
)
async def test_a_result_that_is_not_row_by_row_is_refused(
    start: Any, tmp_path: Path, database: Database, sql: str, told: str
) -> None:
    """By what the server explains; before anything is read."""
    with pytest.raises(QueryError) as refused:
        await start(
            source=source(tmp_path / "in", *LINES), sql=sql, on_error="quarantine", sink=database.sink()
        )
    assert refused.value.path == "on_error"
    assert told in refused.value.cause


async def test_rows_may_be_joined_with_what_does_not_stream(
    start: Any, tmp_path: Path, database: Database
) -> None:
    """Each by itself, by names of the query's; not those that only the other side has."""
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
            sql=f"WITH n AS (SELECT * FROM names) SELECT f.id, n.name FROM flights f {kind} JOIN n"
            " ON f.carrier = n.code",
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


async def test_a_poison_batch_fails_with_the_error_and_the_places_of_rows(
    start: Any, tmp_path: Path, database: Database
) -> None:
    """And nothing of it is anywhere; the cause is the worker's, from the server."""
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
