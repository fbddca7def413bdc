"""What it costs to look at each row: expectations, and a quarantine to which nothing goes.

The same query is run with and without them, in one Spark, timed by its checkpoints from the commit of the
first batch to that of the last.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from benchmarks.tools.figures import ResultLine, summary
from benchmarks.tools.flight_rows import COLUMNS, flights_lines
from definition.document import parse_definition
from worker.query_engine import QuerySpec
from worker.spark.engine import SparkEngine
from worker.spark.settings import SparkSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

RUNS = 5
BATCHES = 16
ROWS_A_BATCH = (3_000, 30_000)
WITH_EXPECTATIONS = 1 / 0.9
WITH_QUARANTINE = 1 / 0.97
EXPECT = [
    {"name": "known", "where": "flight IS NOT NULL", "on_violation": "drop"},
    {"name": "plausible", "where": "coalesce(dep_delay, 0) < 100000", "on_violation": "quarantine"},
    {"name": "carrier", "where": "length(carrier) = 2", "on_violation": "quarantine"},
]
"""Which all rows meet."""


class Setup(NamedTuple):
    """What all queries have."""

    engine: SparkEngine
    folder: Path
    source: dict[str, Any]


class Case(NamedTuple):
    """What is added to a definition, and how many times the time without it may take."""

    name: str
    what: str
    added: dict[str, Any]
    sink: str
    goal: float


CASES = (
    Case("expect", "three expectations, into SQLite", {"expect": EXPECT}, "sql", WITH_EXPECTATIONS),
    Case("aside", "on_error: quarantine, into SQLite", {"on_error": "quarantine"}, "sql", WITH_QUARANTINE),
    Case(
        "elsewhere",
        "on_error: quarantine elsewhere, into files",
        {"on_error": "quarantine"},
        "fenced_files",
        WITH_QUARANTINE,
    ),
)

_READING = (
    "a line is read as text, seen to be UTF-8 and taken apart, for 1.3 to 1.4 times the processor time"
    " of Spark's own reader, or 2.5 times without sparkherd-json.jar (make jars);"
    " the SQL is planned in each batch besides the stream, with some 60 calls into the JVM"
)
REASONS: dict[str, str] = {
    "aside": _READING,
    "elsewhere": _READING,
    "expect": "Spark computes a mask for each row, and Python looks at it in each that comes to the sink",
}
"""By the name of a case."""


def measure() -> list[ResultLine]:
    """The time of the same rows with each and without."""
    with tempfile.TemporaryDirectory() as scratch:
        return asyncio.run(_measure(Path(scratch)))


async def _measure(folder: Path) -> list[ResultLine]:
    conf = {"spark.sql.shuffle.partitions": "1", "spark.driver.memory": "1g"}
    settings = SparkSettings(app_name="bad-rows", checkpoint_root=str(folder / "checkpoints"), conf=conf)
    engine = SparkEngine(settings, lambda: True)
    await engine.open()
    try:
        return [line async for line in _lines(engine, folder)]
    finally:
        await engine.close()


async def _lines(engine: SparkEngine, folder: Path) -> AsyncIterator[ResultLine]:
    for rows in ROWS_A_BATCH:
        source = flights_lines(folder / f"in-{rows}", rows, BATCHES)
        for case in CASES:
            ratios = await _ratios(Setup(engine, folder, source), case, rows)
            what = f"time of a query with {case.what}, {rows:,} rows a batch, against without"
            yield ResultLine(what, case.goal, *summary(ratios), "times", reason=REASONS.get(case.name, ""))


async def _ratios(setup: Setup, case: Case, rows: int) -> list[float]:
    """In turn, the first pair to warm up."""
    ratios = []
    for run in range(RUNS + 1):
        name = f"{case.name}_{rows}_{run}"
        without = await _seconds(setup, case, f"{name}_without", {})
        ratios.append(await _seconds(setup, case, name, case.added) / without)
    return ratios[1:]


async def _seconds(setup: Setup, case: Case, name: str, added: dict[str, Any]) -> float:
    engine, folder, source = setup
    definition = {
        "source": source,
        "sql": f"SELECT {', '.join(COLUMNS)} FROM source",
        "sink": _sink(folder, case, name),
        "trigger": {"available_now": True},
        **added,
    }
    if added and case.sink != "sql":
        place = {"path": str(folder / "aside" / name)}
        definition["quarantine"] = {"format": "fenced_files", "options": place}
    query = await engine.start(QuerySpec("bench", name, 1, parse_definition(msgspec.json.encode(definition))))
    if error := await query.ended():
        raise error
    commits = folder / "checkpoints" / "bench" / name / "commits"
    return (commits / str(BATCHES - 1)).stat().st_mtime - (commits / "0").stat().st_mtime


def _sink(folder: Path, case: Case, name: str) -> dict[str, Any]:
    if case.sink == "sql":
        options = {"url": f"sqlite:///{folder / 'sink.db'}", "table": name}
    else:
        options = {"path": str(folder / "out" / name)}
    return {"format": case.sink, "options": options}
