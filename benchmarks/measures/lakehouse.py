"""Rows and commits a second into Delta and Iceberg by the fenced sinks, against Spark's own of the format.

Both in one JVM and in turn, on the same files, with the same log store and catalog, and timed by their
checkpoints: from the commit of the first batch to that of the last.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psutil

from benchmarks.tools.figures import ResultLine, summary
from benchmarks.tools.flight_rows import flights_source
from benchmarks.tools.lake_sides import FORMATS, Side, engine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from worker.spark.engine import SparkEngine

GOAL = 1 / 0.95


class Size(NamedTuple):
    """Batches of so many rows, how many of them a run has, and how many pairs of runs are timed."""

    rows: int
    batches: int
    pairs: int


SIZES = (Size(300, 24, 6), Size(3_000, 24, 5), Size(30_000, 16, 5), Size(300_000, 6, 3))
SMALL = (Size(300, 12, 3), Size(3_000, 8, 3))
REASONS = {
    "delta": "a fenced batch comes through foreachBatch, which plans it once more and has Python begin it and"
    " it is looked up afterwards; both sinks have Delta compute the table's state for the number that they"
    " compare: without one, a batch of 300 rows took 235 ms by foreachBatch, and 450 by Spark's own sink",
    "iceberg": "Spark's foreachBatch alone, with the same append in it and no fence, took 174 ms where its"
    " own took 153 (300 rows a batch), and the fence 4 more",
}
"""Why the fenced sink may take longer than its goal, as far as was found."""
WARM = 3
"""Runs of each side before, of the smallest size: what the JVM has to compile it compiles once."""


def measure() -> list[ResultLine]:
    """All sizes."""
    return _measured(SIZES)


def quick() -> list[ResultLine]:
    """Without the large ones."""
    return _measured(SMALL)


def _measured(sizes: tuple[Size, ...]) -> list[ResultLine]:
    with tempfile.TemporaryDirectory() as scratch:
        return asyncio.run(_in_folder(Path(scratch), sizes))


async def _in_folder(folder: Path, sizes: tuple[Size, ...]) -> list[ResultLine]:
    spark = engine(folder)
    await spark.open()
    try:
        return [line for lake in FORMATS async for line in _lines(spark, folder, lake, sizes)]
    finally:
        await spark.close()


async def _lines(
    spark: SparkEngine, folder: Path, lake: str, sizes: tuple[Size, ...]
) -> AsyncIterator[ResultLine]:
    sides = tuple(Side(spark, folder, lake, is_fenced) for is_fenced in (True, False))
    for size in sizes:
        source = flights_source(folder / f"{lake}-{size.rows}", size.rows, size.batches)
        warm = WARM if size is sizes[0] else 1
        await _pairs(sides, f"warm_{size.rows}", source, warm)
        found = await _pairs(sides, f"r_{size.rows}", source, size.pairs)
        yield _line(lake, size, found)


class Taken(NamedTuple):
    """Seconds of one batch, and processor time of a whole run with its start, the worker's and its JVM's."""

    batch_s: float
    processor_s: float


async def _pairs(
    sides: tuple[Side, ...], name: str, source: dict[str, Any], pairs: int
) -> list[tuple[Taken, ...]]:
    """What each side took; who begins changes from pair to pair."""
    found = []
    for run in range(pairs):
        task = f"{name}_{run}"
        taken = {}
        for side in sides if run % 2 == 0 else sides[::-1]:
            before = _processor_s()
            await side.run(task, source)
            taken[side] = Taken(_batch_s(side.batch_ends(task)), _processor_s() - before)
        found.append(tuple(taken[side] for side in sides))
    return found


def _batch_s(ends: list[float]) -> float:
    return (ends[-1] - ends[0]) / (len(ends) - 1)


def _processor_s() -> float:
    process = psutil.Process()
    times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
    return float(sum(each.user + each.system for each in times))


def _line(lake: str, size: Size, found: list[tuple[Taken, ...]]) -> ResultLine:
    ours, theirs = (statistics.median(each.batch_s for each in side) for side in zip(*found, strict=True))
    processor = statistics.median(mine.processor_s / other.processor_s for mine, other in found)
    note = (
        f"{size.rows / ours:,.0f} against {size.rows / theirs:,.0f} rows a second;"
        f" {1 / ours:.2f} against {1 / theirs:.2f} commits a second;"
        f" processor time with the start {processor:.2f} times"
    )
    what = f"{lake}: time of a batch of {size.rows:,} rows by the fenced sink, against Spark's own"
    ratios = [mine.batch_s / other.batch_s for mine, other in found]
    return ResultLine(what, GOAL, *summary(ratios), "times", note, REASONS[lake])
