"""What a batch and a claim cost at a table's 100th and 10,000th commit, fenced and by Spark's own sink.

Beside the time, which listing a folder of ever more files makes longer for both, it is counted what a batch
does: jobs of Spark's, bytes that the JVM reads and writes. A batch that went through the history would read
more of it, the longer it is.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psutil

from benchmarks.tools.figures import Curve, ResultLine, growth
from benchmarks.tools.flight_rows import flights_source
from benchmarks.tools.lake_history import grow
from benchmarks.tools.lake_sides import FORMATS, GROUP, Side, engine, session
from worker.sinks.factory import open_sink
from worker.sinks.fence import Owner

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from worker.spark.engine import SparkEngine

SIZES = (100, 1_000, 5_000, 10_000)
FEW = (100, 1_000)
ROWS = 300
BATCHES = 10
WARM = 4
"""Batches of each run that are not counted: the first ones read the table's state."""
LOOK_S = 0.005
TASK = "grow"


class Cost(NamedTuple):
    """Of one batch, or of all until now."""

    seconds: float
    jobs: float
    read: float
    written: float


@dataclass(frozen=True, slots=True)
class Counters:
    """Of the JVM that both sides run in."""

    jvm: psutil.Process
    scheduler: Any

    @classmethod
    def open(cls) -> Counters:
        """Of the engine's Spark."""
        spark: Any = session()
        pid = int(spark._jvm.java.lang.ProcessHandle.current().pid())  # noqa: SLF001 - where PySpark keeps it
        return cls(psutil.Process(pid), spark._jsparkSession.sparkContext().dagScheduler())  # noqa: SLF001 - likewise

    def now(self) -> Cost:
        """Until now."""
        moved: Any = self.jvm.io_counters()
        return Cost(time.time(), self.scheduler.numTotalJobs(), moved.read_chars, moved.write_chars)


def measure() -> list[ResultLine | Curve]:
    """All sizes."""
    return _measured(SIZES)


def quick() -> list[ResultLine | Curve]:
    """The small ones."""
    return _measured(FEW)


def _measured(sizes: tuple[int, ...]) -> list[ResultLine | Curve]:
    with tempfile.TemporaryDirectory() as scratch:
        return asyncio.run(_in_folder(Path(scratch), sizes))


async def _in_folder(folder: Path, sizes: tuple[int, ...]) -> list[ResultLine | Curve]:
    spark = engine(folder)
    await spark.open()
    try:
        return [line for lake in FORMATS async for line in _lines(spark, folder, lake, sizes)]
    finally:
        await spark.close()


async def _lines(
    spark: SparkEngine, folder: Path, lake: str, sizes: tuple[int, ...]
) -> AsyncIterator[ResultLine | Curve]:
    sides = tuple(Side(spark, folder, lake, is_fenced) for is_fenced in (True, False))
    source = flights_source(folder / f"{lake}-all", ROWS, BATCHES * (len(sizes) + 1))
    show = _hidden(source, folder / f"{lake}-shown")
    costs: dict[str, list[Cost]] = {side.kind: [] for side in sides}
    claims = []
    for turn, size in enumerate((0, *sizes)):
        show(turn)
        for side in sides:
            if size:
                await asyncio.to_thread(grow, side, TASK, size, session())
            cost = await _run(side, source, 10 * turn + 1, turn * BATCHES)
            if size:
                costs[side.kind].append(cost)
        claims.append(await asyncio.to_thread(_claim_s, sides[0], 10 * turn + 2))
    for line in _told(lake, sizes, costs, claims[1:]):
        yield line


def _hidden(source: dict[str, Any], shown: Path) -> Callable[[int], None]:
    """Have the source read from a folder that is empty yet; what is returned shows it the files of a turn."""
    files = sorted(Path(source["options"]["path"]).iterdir())
    shown.mkdir()
    source["options"]["path"] = str(shown)

    def show(turn: int) -> None:
        for file in files[turn * BATCHES : (turn + 1) * BATCHES]:
            os.link(file, shown / file.name)

    return show


async def _run(side: Side, source: dict[str, Any], token: int, first: int) -> Cost:
    """Of a batch, the median or mean of those after the warm ones."""
    counters = await asyncio.to_thread(Counters.open)
    running = asyncio.ensure_future(side.run(TASK, source, token))
    warm = side.checkpoint(TASK) / "commits" / str(first + WARM - 1)
    while not warm.exists() and not running.done():
        await asyncio.wait([running], timeout=LOOK_S)
    begun = await asyncio.to_thread(counters.now)
    await running
    ended = await asyncio.to_thread(counters.now)
    ends = side.batch_ends(TASK)[first + WARM - 1 :]
    each = [(now - then) / (BATCHES - WARM) for now, then in zip(ended, begun, strict=True)]
    return Cost(statistics.median(then - now for now, then in pairwise(ends)), *each[1:])


def _claim_s(side: Side, token: int) -> float:
    """Seconds of a claim, in a session that has not seen the table."""
    spark = session()
    owner = Owner(GROUP, f"{side.lake}_{TASK}", token)
    sink = open_sink(side.sink_definition(TASK), owner, lambda: spark)
    if sink is None:
        raise RuntimeError("the sink is not fenced")
    begun = time.perf_counter()
    sink.claim()
    return time.perf_counter() - begun


def _kb(count: float) -> str:
    return f"{count / 1000:,.0f}"


def _told(
    lake: str, sizes: tuple[int, ...], costs: dict[str, list[Cost]], claims: list[float]
) -> list[ResultLine | Curve]:
    ours, theirs = costs["fenced"], costs["plain"]
    lines: list[ResultLine | Curve] = []
    for size, mine, other, claim in zip(sizes, ours, theirs, claims, strict=True):
        note = (
            f"{1000 * mine.seconds:.0f} against {1000 * other.seconds:.0f} ms;"
            f" jobs {mine.jobs:.1f} against {other.jobs:.1f}; kB read {_kb(mine.read)} against"
            f" {_kb(other.read)}, written {_kb(mine.written)} against {_kb(other.written)};"
            f" a claim {1000 * claim:.0f} ms"
        )
        what = f"{lake}: time of a batch after {size:,} commits, against Spark's own sink"
        lines.append(ResultLine(what, None, mine.seconds / other.seconds, 0, "times", note))
    more, against = (
        growth("", 1.0, sizes, [max(each.read, 1) for each in found]).measured for found in (ours, theirs)
    )
    what = f"{lake}: growth with commits of what a batch reads"
    note = f"Spark's own sink: {against:.2f}"
    lines.append(ResultLine(what, None, more, 0, "exponent", note))
    series = {
        kind: [(float(size), 1000 * cost.seconds) for size, cost in zip(sizes, found, strict=True)]
        for kind, found in costs.items()
    }
    lines.append(Curve(f"{lake}: time of a batch with commits", "commits", "ms", series))
    return lines
