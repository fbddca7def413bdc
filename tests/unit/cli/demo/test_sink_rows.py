"""How many flights of each task are in the sink."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from cli.demo.plan import DELAYS, FLIGHTS, DemoTask, Plan
from cli.demo.sink_rows import SinkRows
from cli.demo.sql_sink import SqlSink

if TYPE_CHECKING:
    from pathlib import Path

PLAN = Plan(
    (
        DemoTask("low", {}, FLIGHTS, (0, 1)),
        DemoTask("high", {}, FLIGHTS, (2, 3)),
        DemoTask("delays", {}, DELAYS, ("UA", "AA")),
    ),
    flights_by="kafka_partition",
    rows=8,
)


def change(sink: Path, *statements: str) -> None:
    """What a task writes."""
    with closing(sqlite3.connect(sink)) as db, db:
        for statement in statements:
            db.execute(statement)


def test_rows_are_counted_by_task(tmp_path: Path) -> None:
    """What was counted before is not read again, and still counts; of delays, the flights in them."""
    sink = tmp_path / "flights.db"
    rows = SinkRows(SqlSink(tmp_path), PLAN)
    change(
        sink,
        "CREATE TABLE flights (kafka_partition)",
        "CREATE TABLE delays (carrier, flights)",
        "INSERT INTO flights VALUES (0), (1), (1), (3)",
        "INSERT INTO delays VALUES ('UA', 2), ('UA', 1), ('ZZ', 50)",
    )
    assert rows.by_task() == {"low": 3, "high": 1, "delays": 3}
    change(sink, "INSERT INTO flights VALUES (2), (0)", "UPDATE delays SET flights = 5 WHERE flights = 2")
    assert rows.by_task() == {"low": 4, "high": 2, "delays": 6}
    assert rows.by_task() == {"low": 4, "high": 2, "delays": 6}


def test_nothing_is_there_before_the_first_batch(tmp_path: Path) -> None:
    """No database, or none of its tables yet."""
    sink = tmp_path / "flights.db"
    rows = SinkRows(SqlSink(tmp_path), PLAN)
    assert rows.by_task() == {"low": 0, "high": 0, "delays": 0}
    assert not sink.exists()
    change(sink, "CREATE TABLE delays (carrier, flights)", "INSERT INTO delays VALUES ('AA', 7)")
    assert rows.by_task() == {"low": 0, "high": 0, "delays": 7}
