"""Rows of a quarantine that somebody has written by hand are shown with what they have, or passed over."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from definition.quarantine import DEFAULT_TABLE
from definition.sinks.sql import SqlOptions
from definition.tables import read_table_name
from protocol.messages.quarantine import QuarantineAnswer, ReportQuarantineRequest
from worker.left_out import LeftOut
from worker.sinks.aside import Aside, Beside, Limits
from worker.sinks.base import Field
from worker.sinks.database import connect, transaction
from worker.sinks.fence import Owner
from worker.sinks.quarantine.sql_store import SqlStore
from worker.sinks.quarantine.store import Choice
from worker.sinks.sql import SqlSink
from worker.spark.quarantine.requests import told

OWNER = Owner("g", "t", 1)
BROKEN = Aside("unreadable", ("source",), "no JSON", "line", b"{", {"file": "a.json"})
BARE = "(group_id, task, resets, batch_id, nth, reason, form) VALUES ('g', 't', 0, 7, 0, 'refused', 'row')"
KEY = "(group_id, task, resets, batch_id, nth, reason, form) VALUES ('g', 't'"
TIMES = ("NULL", "'1800-01-01 00:00:00'", "'infinity'", "'294000-01-01 00:00:00'")


@pytest.fixture
def store(url: str, batch: Any) -> Any:
    """With one row that a task has put aside."""
    sink = SqlSink(SqlOptions(url=url, table="t"), OWNER, Beside(DEFAULT_TABLE, Limits(9, 1.0)))
    sink.claim()
    sink.prepare([Field("id", "integer")])
    made = batch(0, [(1,)])
    made.aside, made.left_out = (BROKEN,), LeftOut(quarantined=1)
    sink.write(made)
    sink.close()
    store = SqlStore(connect(url, OWNER), read_table_name(DEFAULT_TABLE), OWNER)
    yield store
    store.close()


def listed(store: SqlStore) -> tuple[list[Any], int, int]:
    """As the manager reads it."""
    found = store.find(Choice(), 10)
    rows = tuple(map(told, found.rows))
    report = ReportQuarantineRequest(
        member_id="m", quarantine="q", result=QuarantineAnswer(rows=rows, total=found.total)
    )
    read = msgspec.json.decode(msgspec.json.encode(report), type=ReportQuarantineRequest).result
    assert read is not None
    return list(read.rows), found.total, found.strange


def test_what_a_row_has_is_shown(store: SqlStore, peek: Any) -> None:
    """Beside one that a task has put aside."""
    peek.run(f"INSERT INTO {DEFAULT_TABLE} {BARE}")
    [bare, whole], total, strange = listed(store)
    assert (bare.id, bare.at_ms, bare.token, bare.name, bare.error, bare.raw) == ("0-7-0", 0, 0, "", "", "")
    assert (whole.raw, whole.origin, whole.token) == ("{", {"file": "a.json"}, 1)
    assert whole.at_ms > 1_700_000_000_000
    assert (total, strange) == (2, 0)


@pytest.mark.parametrize("time", TIMES)
def test_whatever_time_a_row_has_it_is_shown(store: SqlStore, peek: Any, time: str) -> None:
    """Also one that Python has not."""
    peek.run(f"UPDATE {DEFAULT_TABLE} SET put_aside_at = {time}")
    [row], _, _ = listed(store)
    assert row.id == "0-0-0"


@pytest.mark.parametrize(
    "change",
    [
        "raw = 'a text', token = 'none', put_aside_at = 'yesterday', name = 5, error = x'00ff', origin = 7",
        'raw = 12, origin = \'{"offset": true, "partition": 99999999999999999999}\', put_aside_at = 12',
    ],
)
def test_whatever_kinds_of_values_a_row_has_it_is_shown(
    store: SqlStore, peek: Any, url: str, change: str
) -> None:
    """SQLite keeps anything anywhere."""
    if url.startswith("sqlite"):
        peek.run(f"UPDATE {DEFAULT_TABLE} SET {change}")
        [row], _, _ = listed(store)
        assert (row.origin, row.raw) == ({}, "a text" if "text" in change else "")


@pytest.mark.parametrize(
    "key", ["0, 8, 0, 'mine', 'row'", "0, 8, 0, 'refused', NULL", "-1, 8, 0, 'refused', 'row'"]
)
def test_what_is_no_row_is_passed_over(store: SqlStore, peek: Any, key: str) -> None:
    """It is counted, for the note; nobody plays it again."""
    peek.run(f"INSERT INTO {DEFAULT_TABLE} {KEY}, {key})")
    rows, total, strange = listed(store)
    assert ([row.id for row in rows], total, strange) == (["0-0-0"], 1, 1)
    assert [row.id for row in store.take(Choice(), "1/1", 10)] == ["0-0-0"]


def test_a_row_that_nobody_can_name_is_passed_over(store: SqlStore, peek: Any, url: str) -> None:
    """Where the table lets somebody write one."""
    if url.startswith("sqlite"):
        peek.run(f"CREATE TABLE copy AS SELECT * FROM {DEFAULT_TABLE}", f"DROP TABLE {DEFAULT_TABLE}")
        peek.run(f"ALTER TABLE copy RENAME TO {DEFAULT_TABLE}")
        peek.run(f"INSERT INTO {DEFAULT_TABLE} {KEY}, 0, NULL, 0, 'refused', 'row')")
        peek.run(f"INSERT INTO {DEFAULT_TABLE} {KEY}, 0, 'six', 0, 'refused', 'row')")
        peek.run(f"INSERT INTO {DEFAULT_TABLE} {KEY}, 0, 5.5, 0, 'refused', 'row')")
        rows, _, strange = listed(store)
        assert ([row.id for row in rows], strange) == (["0-0-0"], 2)


def test_a_row_whose_bytes_are_a_text_is_moved_as_it_was_read(store: SqlStore, peek: Any, url: str) -> None:
    """As people mend them who forget the CAST."""
    if url.startswith("sqlite"):
        peek.run(f"UPDATE {DEFAULT_TABLE} SET raw = 'mended'")
        rows = store.find(Choice(), 10).rows
        engine = connect(url, OWNER)
        with transaction(engine) as connection:
            store.remove(connection, rows)
        engine.dispose()
        assert peek(f"SELECT * FROM {DEFAULT_TABLE}") == []
