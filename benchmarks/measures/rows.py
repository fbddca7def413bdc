"""Rows a second through the fenced SQL sink, against the same inserts in a plain `foreachBatch`.

Both are timed by their checkpoints: from the commit of the first batch to that of the last.
"""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import psycopg
from pyspark.sql import SparkSession

from benchmarks.tools.figures import ResultLine, growth, summary
from benchmarks.tools.flight_rows import COLUMNS, SCHEMA, TYPES, flights_source
from definition.document import parse_definition
from tests.integration.postgres import running
from worker.query_engine import QuerySpec
from worker.spark.engine import SparkEngine
from worker.spark.settings import SparkSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame

RUNS = 5
BATCHES = 16
ROWS_A_BATCH = (300, 3_000, 30_000)
GOAL = 1 / 0.9
SMALL_REASON = (
    "of 332 ms for a batch of 3,000 rows (plain: 312; medians of 120 batches in turn) 3 go into reading the"
    " plan from the checkpoint, 3 into asking the fence first (since then that is done once a claim), 7 into"
    " counting partitions and planning the limit, 3 into encoding, 4 into the fence beside the rows; Spark's"
    " own checkpoint takes 170, and varies by more than all of these"
)
REASONS = {
    300: SMALL_REASON,
    3_000: SMALL_REASON,
    30_000: "a Python process beside the executor takes, encodes and stages the rows in 520 ms, 30 more bring"
    " them into the table; plain collects them in 360 and makes tuples of them and inserts those in 170",
}
"""By the rows of a batch."""


@dataclass(frozen=True, slots=True)
class Place:
    """A database, and how anybody would insert into it."""

    name: str
    url: str
    connect: Callable[[], Any]
    placeholder: str

    def insert(self, connection: Any, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """All rows in one transaction."""
        values = ", ".join([self.placeholder] * len(COLUMNS))
        cursor = connection.cursor()
        cursor.executemany(f"INSERT INTO {table} VALUES ({values})", rows)
        connection.commit()


def measure() -> list[ResultLine]:
    """Time for the same rows, fenced against plain, at three sizes of a batch."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with running() as postgres:
            return asyncio.run(_measure(folder, postgres.url))


async def _measure(folder: Path, postgres: str) -> list[ResultLine]:
    conf = {"spark.sql.shuffle.partitions": "1", "spark.driver.memory": "1g"}
    settings = SparkSettings(app_name="rows", checkpoint_root=str(folder / "checkpoints"), conf=conf)
    engine = SparkEngine(settings, lambda: True)
    await engine.open()
    try:
        return [line async for line in _lines(engine, folder, postgres)]
    finally:
        await engine.close()


async def _lines(engine: SparkEngine, folder: Path, postgres: str) -> Any:
    sources = {rows: flights_source(folder / f"in-{rows}", rows, BATCHES) for rows in ROWS_A_BATCH}
    for place in _places(folder, postgres):
        medians = []
        for rows, source in sources.items():
            ratios, fenced = await _compare(engine, folder, place, source)
            medians.append(statistics.median(fenced))
            what = f"time of a query into {place.name}, {rows:,} rows a batch, against plain"
            yield ResultLine(what, GOAL, *summary(ratios), "times", reason=REASONS.get(rows, ""))
        yield growth(
            f"growth of that time with the rows of a batch, {place.name}", 1.0, ROWS_A_BATCH, medians
        )


async def _compare(
    engine: SparkEngine, folder: Path, place: Place, source: dict[str, Any]
) -> tuple[list[float], list[float]]:
    """In turn, the first pair to warm up: the ratios, and the seconds of the fenced ones."""
    plain, fenced = [], []
    for run in range(RUNS + 1):
        name = f"r{run}_{Path(source['options']['path']).name.replace('-', '_')}"
        plain.append(await asyncio.to_thread(_plain, _session(), folder, place, source, name))
        fenced.append(await _fenced(engine, folder, place, source, name))
    return [ours / theirs for ours, theirs in zip(fenced[1:], plain[1:], strict=True)], fenced[1:]


def _session() -> SparkSession:
    """A session of the engine's own Spark: both kinds of query are to run in the very same JVM."""
    return SparkSession.builder.getOrCreate().newSession()


def _plain(spark: SparkSession, folder: Path, place: Place, source: dict[str, Any], name: str) -> float:
    """A query as anybody would write it: each batch collected and inserted."""
    table = f"plain_{name}"
    with closing(place.connect()) as connection:
        connection.execute(f"CREATE TABLE {table} ({TYPES})")
        connection.commit()
        connection.close()
    frame = spark.readStream.format("csv").schema(SCHEMA).options(**source["options"]).load()
    kept: list[Any] = []

    def insert(batch: DataFrame, _batch_id: int) -> None:
        if not kept:
            kept.append(place.connect())
        place.insert(kept[0], table, [tuple(row) for row in batch.collect()])

    writer = frame.writeStream.foreachBatch(insert).trigger(availableNow=True)
    checkpoint = folder / "plain" / place.name / name
    writer.option("checkpointLocation", str(checkpoint)).start().awaitTermination()
    kept[0].close()
    return _seconds(checkpoint)


async def _fenced(
    engine: SparkEngine, folder: Path, place: Place, source: dict[str, Any], name: str
) -> float:
    definition = {
        "source": source,
        "sql": f"SELECT {', '.join(COLUMNS)} FROM source",
        "sink": {"format": "sql", "options": {"url": place.url, "table": f"fenced_{name}"}},
        "trigger": {"available_now": True},
    }
    spec = QuerySpec(place.name, name, 1, parse_definition(msgspec.json.encode(definition)))
    query = await engine.start(spec)
    if error := await query.ended():
        raise error
    return _seconds(folder / "checkpoints" / place.name / name)


def _seconds(checkpoint: Path) -> float:
    commits = checkpoint / "commits"
    return (commits / str(BATCHES - 1)).stat().st_mtime - (commits / "0").stat().st_mtime


def _places(folder: Path, postgres: str) -> Iterator[Place]:
    file = folder / "sink.db"

    def open_sqlite() -> sqlite3.Connection:
        connection = sqlite3.connect(file, timeout=60, check_same_thread=False)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        return connection

    yield Place("sqlite", f"sqlite:///{file}", open_sqlite, "?")
    yield Place("postgres", postgres, lambda: psycopg.connect(postgres), "%s")
