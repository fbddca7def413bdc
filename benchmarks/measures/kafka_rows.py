"""Rows a second from Kafka into the fenced SQL sink of one worker, against the same queries in a script.

Both read the JSON of the same topics, each filled beforehand, in batches of the same bounds; the plain one by
Spark's `from_json` and a `foreachBatch` that inserts a batch's rows in one transaction. Timed while all
queries run: what it takes to start them is another benchmark's (`spark_tasks`). Of fifty the first are over
before the last begin; so these are timed from the first commit of all to the last, with their starts.

Spark's `from_json` makes nulls of what it cannot read, as a task does with `on_error: null`: these are
compared. That a task finds such rows by default is measured beside it.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.tools.figures import ResultLine
from benchmarks.tools.flight_rows import SCHEMA, flights_json
from benchmarks.tools.spark_sides import (
    PlainSide,
    WorkerSide,
    in_turn,
    spread_of,
    told_batch_rates,
    told_memory,
)
from tests.kafka import broker as kafka

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.tools.spark_sides import Sides, Source
    from tests.kafka.broker import Broker

JARS = tuple(str(path) for path in sorted((kafka.JARS.parent / "spark" / "kafka").glob("*.jar")))
GOAL = 1 / 0.95
MEMORY_GOAL = 1.1
PARTITIONS = 2
ROWS = 3_000
LARGE = 30_000
BATCHES = 10
"""Of a task in a run with ten or more; one alone has `ALONE`, and `FEW_LARGE` of large ones."""
ALONE = 40
FEW_LARGE = 12
WARM = 3
"""Runs before: what the JVM has to compile it compiles once."""
RUNS = {1: 5, 10: 3, 50: 2}
WITH_STARTS = 50
"""So many tasks, or more, are timed with their starts."""
REASON = (
    "of 170 ms for a batch of 3,000 rows (medians of 492) 2 go into asking for a limited number of rows,"
    " 2 into encoding, 1 into reading the plan from the checkpoint, 1 into the fence beside the rows"
)
STAGED = (
    "more than 20,000 rows are encoded and staged by Python processes beside the executors, and moved into"
    " the table from there; plain collects them"
)
LOOKING = (
    "a value that is no whole JSON of its schema is found and told with its place: 200,000 rows taken apart"
    " took 0.7 to 0.8 s of processor time that way, 0.4 to 0.5 with Spark's function alone"
)


def measure() -> Iterator[ResultLine]:
    """One, ten and fifty tasks; one with larger batches, too."""
    yield from _measure(RUNS)


def quick() -> Iterator[ResultLine]:
    """Without the fifty."""
    yield from _measure({1: 3, 10: 1})


def _measure(runs: dict[int, int]) -> Iterator[ResultLine]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = stack.enter_context(kafka.running(folder / "kafka"))
        alone = _source(broker, "alone", ALONE * ROWS, ROWS)
        large = _source(broker, "large", FEW_LARGE * LARGE, LARGE)
        some = [_source(broker, f"some-{at}", BATCHES * ROWS, ROWS) for at in range(max(runs))]
        sides = WorkerSide(stack, folder / "worker", *JARS), PlainSide(stack, folder / "plain", *JARS)
        in_turn(sides, "warm", WARM, [alone])
        for tasks, pairs in runs.items():
            yield _together(sides, pairs, [alone] if tasks == 1 else some[:tasks], ROWS)
            yield _memory(sides, tasks)
            if tasks == 1:
                yield _together(sides, pairs, [large], LARGE)
                for source, rows in ((alone, ROWS), (large, LARGE)):
                    yield _together(sides, pairs, [_failing(source)], rows, "fail")


def _together(
    sides: Sides, runs: int, sources: Sequence[Source], rows: int, on_error: str = "null"
) -> ResultLine:
    """The ratio of their times a batch of so many rows."""
    tasks = len(sources)
    pairs = in_turn(sides, f"kafka-{rows}-{on_error}", runs, sources)
    processor, _ = spread_of([pair.processor_ratio for pair in pairs])
    note = f"processor time with the start {processor:.2f} times"
    ratios = [pair.ratio for pair in pairs]
    if tasks < WITH_STARTS:
        ratios = [pair.batch_ratio for pair in pairs]
        note = f"{told_batch_rates(pairs, rows)}; {note}"
    how = f"{rows:,} rows a batch, on_error: {on_error}"
    what = f"Kafka: time of {tasks} task(s) on one worker, {how}, against plain queries"
    why = LOOKING if on_error == "fail" else STAGED if rows == LARGE else REASON
    return ResultLine(what, GOAL, *spread_of(ratios), "times", note, why)


def _failing(source: Source) -> Source:
    """For the worker's side; the plain one knows one way only."""
    return {**source, "value": {**source["value"], "on_error": "fail"}}


def _memory(sides: Sides, tasks: int) -> ResultLine:
    memory, note = told_memory(sides)
    what = f"Kafka: resident memory after {tasks} task(s) at once, against plain queries"
    return ResultLine(what, MEMORY_GOAL, memory, 0, "times", note)


def _source(broker: Broker, name: str, rows: int, a_batch: int) -> Source:
    """A topic with flights, and how it is read."""
    topic = broker.topic(name, partitions=PARTITIONS)
    topic.produce(flights_json(rows))
    value = {"format": "json", "schema": SCHEMA, "on_error": "null"}
    return topic.source(options={"maxOffsetsPerTrigger": a_batch}, value=value)
