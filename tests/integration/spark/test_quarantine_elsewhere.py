"""Rows that are put aside at another place than the sink's: a step before the sink, and none is lost."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.spark.quarantined_flights import (
    KNOWN,
    LINES,
    ONCE,
    SMALL,
    TABLE,
    rows_in,
    source,
)
from worker.left_out import LeftOut
from worker.query_engine import QueryError
from worker.sinks.errors import SinkError
from worker.sinks.files import FilesSink
from worker.spark.batches.sifted_batch import SiftedBatch

if TYPE_CHECKING:
    from pathlib import Path


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
