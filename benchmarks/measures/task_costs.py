"""What it costs to tell what tasks cost: figures of each batch with a state, and looks at the worker itself.

The same query, 300 rows a batch, is run with the figures and without, in one Spark, in turn; a few
thousandths of the time are less than two runs differ by, so what the figures take is timed itself, too.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

import msgspec
import psutil

from benchmarks.tools.figures import ResultLine, summary
from benchmarks.tools.flight_rows import flights_lines
from definition.document import parse_definition
from worker.costs import NO_COSTS
from worker.query_engine import QuerySpec
from worker.resources import LOOK_EVERY_S
from worker.spark import progress
from worker.spark.classic.handle import JavaHandle
from worker.spark.engine import SparkEngine
from worker.spark.settings import SparkSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RUNS = 5
BATCHES = 16
ROWS = 300
LOOKS = 20
SHARE = 0.02
NOISE = (
    "beside other work two runs of the same differ by more; what the figures take themselves is told below"
)
SQL = "SELECT carrier, count(*) AS flights, max(dep_delay) AS latest FROM source GROUP BY carrier"
GROUP = "bench"


class Run(NamedTuple):
    """How long the batches of one run took, what was spent on figures, and processor time, in seconds."""

    batches_s: float
    figures_s: float
    processor_s: float


class Watch:
    """Adds up the time that functions take."""

    def __init__(self) -> None:
        self.took_s = 0.0

    def over(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, timed."""

        def timed(*args: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*args)
            finally:
                self.took_s += time.perf_counter() - began

        return timed


def measure() -> list[ResultLine]:
    """A batch with its figures against one without, what they take, and what a look at the worker takes."""
    with tempfile.TemporaryDirectory() as scratch:
        return asyncio.run(_measure(Path(scratch)))


async def _measure(folder: Path) -> list[ResultLine]:
    conf = {"spark.sql.shuffle.partitions": "1", "spark.driver.memory": "1g"}
    settings = SparkSettings(app_name="task-costs", checkpoint_root=str(folder / "checkpoints"), conf=conf)
    engine = SparkEngine(settings, lambda: True)
    await engine.open()
    try:
        source = flights_lines(folder / "in", ROWS, BATCHES)
        pairs = [await _pair(engine, folder, source, number) for number in range(RUNS + 1)][1:]
        looks = [await _look(engine) for _ in range(LOOKS)][1:]
    finally:
        await engine.close()
    ratios = [told.batches_s / silent.batches_s for told, silent in pairs]
    processor = [told.processor_s / silent.processor_s for told, silent in pairs]
    shares = [told.figures_s / told.batches_s for told, _ in pairs]
    batch = f"a batch of {ROWS} rows with a state"
    return [
        ResultLine(
            f"time of {batch} with its figures, against without",
            *(1 + SHARE, *summary(ratios), "times"),
            reason=NOISE,
        ),
        ResultLine(
            f"processor time of {batch} with its figures, against without",
            *(1 + SHARE, *summary(processor), "times"),
            reason=NOISE,
        ),
        ResultLine(f"what the figures take of the time of {batch}", SHARE, *summary(shares), "of it"),
        ResultLine(
            f"what looks at a worker's JVM, processes and disk take, one in {LOOK_EVERY_S:g} s",
            SHARE,
            *summary([look / LOOK_EVERY_S for look in looks]),
            "of the time",
        ),
    ]


async def _pair(engine: SparkEngine, folder: Path, source: dict[str, Any], number: int) -> tuple[Run, Run]:
    """With and without; which comes first changes."""
    with_first = number % 2 == 0
    runs = {}
    for is_told in (with_first, not with_first):
        name = f"run_{number}_{'told' if is_told else 'silent'}"
        with _told() if is_told else _silent() as watch:
            before = _processor_s()
            took_s = await _seconds(engine, folder, source, name)
            runs[is_told] = Run(took_s, watch.took_s, _processor_s() - before)
    return runs[True], runs[False]


def _processor_s() -> float:
    """Of this process and its JVM so far; other work on the machine changes it less than time."""
    own = psutil.Process()
    times = [each.cpu_times() for each in (own, *own.children(recursive=True))]
    return float(sum(each.user + each.system for each in times))


@contextmanager
def _told() -> Iterator[Watch]:
    """Figures as a worker tells them, timed."""
    watch = Watch()
    with ExitStack() as stack:
        for place, name in ((progress, "costs_of"), (progress, "metrics_of"), (JavaHandle, "spilled_bytes")):
            stack.enter_context(patch.object(place, name, watch.over(getattr(place, name))))
        yield watch


@contextmanager
def _silent() -> Iterator[Watch]:
    """No figures."""
    with (
        patch.object(progress, "costs_of", lambda *_: NO_COSTS),
        patch.object(progress, "metrics_of", lambda _: {}),
        patch.object(JavaHandle, "spilled_bytes", lambda _: None),
    ):
        yield Watch()


async def _seconds(engine: SparkEngine, folder: Path, source: dict[str, Any], name: str) -> float:
    definition = {
        "source": source,
        "sql": SQL,
        "output_mode": "update",
        "sink": {"format": "noop"},
        "trigger": {"available_now": True},
    }
    parsed = parse_definition(msgspec.json.encode(definition))
    query = await engine.start(QuerySpec(GROUP, name, 1, parsed))
    if error := await query.ended():
        raise error
    commits = folder / "checkpoints" / GROUP / name / "commits"
    return (commits / str(BATCHES - 1)).stat().st_mtime - (commits / "0").stat().st_mtime


async def _look(engine: SparkEngine) -> float:
    began = time.perf_counter()
    await engine.resources(GROUP)
    return time.perf_counter() - began
