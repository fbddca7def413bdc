"""Queries of a real worker against the same ones in a plain script, each in a Spark of its own, in turn.

How soon the first batch is committed, counted from when the claim is granted, or when the script begins; and
how many rows a second one, ten and fifty of them get through together, from the first commit to the last.
"""

from __future__ import annotations

import statistics
import tempfile
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.tools.figures import Curve, ResultLine, growth, summary
from benchmarks.tools.flight_rows import flights_source
from benchmarks.tools.spark_sides import (
    PlainSide,
    WorkerSide,
    in_turn,
    median_seconds,
    spread_of,
    told_memory,
    told_rates,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.tools.spark_sides import Pair, Run, Sides, Source

STARTS = 20
START_GOAL = 1.25
BATCHES = 4
ROWS = 3_000
RUNS = {1: 3, 10: 2, 50: 1}
"""By the number of tasks: the more there are, the more batches a run has."""
GOAL = 1 / 0.9
MEMORY_GOAL = 1.1
START_REASON = (
    "a plain query has no fence to raise and no checkpoint to look through before it starts, two durable"
    " transactions and some files"
)
RATE_REASON = "what `rows` has of one query: reading each batch's plan, asking the fence, planning the limit"
MEMORY_REASON = "how much of its heap a JVM has touched: that differs by 100 MB from run to run"
STEPS = ("granted", "planned", "checked", "started")
OF_A_BATCH = ("latestOffset", "queryPlanning", "walCommit", "addBatch", "commitOffsets")


def measure() -> Iterator[ResultLine | Curve]:
    """The starts, then all together."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sides = WorkerSide(stack, folder / "worker"), PlainSide(stack, folder / "plain")
        one = flights_source(folder / "one", ROWS, batches=1)
        in_turn(sides, "warm", 2, [one])
        yield _starts(in_turn(sides, "start", STARTS, [one]))
        yield from _together(sides, flights_source(folder / "some", ROWS, batches=BATCHES))


def _starts(pairs: Sequence[Pair]) -> ResultLine:
    """From the grant to the first commit, and where the time goes."""
    ours = [pair.ours.first_batches[0] for pair in pairs]
    theirs = [pair.theirs.first_batches[0] for pair in pairs]
    deciles = statistics.quantiles(ours, n=10)
    note = (
        f"{1000 * statistics.median(ours):.0f} ms, 9 of 10 within {1000 * deciles[-1]:.0f} ms;"
        f" plain {1000 * statistics.median(theirs):.0f} ms; of ours {_before([pair.ours for pair in pairs])},"
        f" {_first([pair.ours for pair in pairs])}; of plain's {_first([pair.theirs for pair in pairs])}"
    )
    ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    what = "Spark: claim granted to first batch committed, against a plain query's start"
    return ResultLine(what, START_GOAL, *summary(ratios), "times", note, START_REASON)


def _before(runs: Sequence[Run]) -> str:
    """Milliseconds of each step until the query is started, the medians."""
    said = [run.said[task] for run in runs for task in run.folders]
    planned, checked, started = (
        statistics.median(1000 * (each[then] - each[now]) for each in said) for now, then in pairwise(STEPS)
    )
    return f"fence, table and plan {planned:.0f}, checkpoint {checked:.0f}, start {started:.0f}"


def _first(runs: Sequence[Run]) -> str:
    """What Spark tells of the first micro-batch: milliseconds of its steps, the medians."""
    spent = [run.said[task]["spent"] for run in runs for task in run.folders]
    parts = {step: statistics.median(each.get(step, 0) for each in spent) for step in OF_A_BATCH}
    within = ", ".join(f"{step} {ms:.0f}" for step, ms in parts.items())
    return f"first micro-batch {sum(parts.values()):.0f} ({within}) ms"


def _together(sides: Sides, source: Source) -> Iterator[ResultLine | Curve]:
    """More and more tasks; a task's own share of what they get through together is in the note."""
    seconds: dict[int, tuple[float, float]] = {}
    for tasks, runs in RUNS.items():
        pairs = in_turn(sides, "together", runs, [source] * tasks)
        seconds[tasks] = median_seconds(pairs)
        what = f"Spark: time of {tasks} task(s) on one worker, {ROWS:,} rows a batch, against plain queries"
        note = told_rates(pairs, tasks, (BATCHES - 1) * ROWS)
        yield ResultLine(what, GOAL, *spread_of([pair.ratio for pair in pairs]), "times", note, RATE_REASON)
        what = f"Spark: resident memory after {tasks} task(s) at once, against plain queries"
        memory, note = told_memory(sides)
        yield ResultLine(what, MEMORY_GOAL, memory, 0, "times", note, MEMORY_REASON)
    sizes, costs = list(seconds), [ours for ours, _ in seconds.values()]
    yield growth("Spark: growth of time with tasks on one worker", 1.1, sizes, costs)
    series = {
        "sparkherd": [(tasks, ours) for tasks, (ours, _) in seconds.items()],
        "plain": [(tasks, theirs) for tasks, (_, theirs) in seconds.items()],
    }
    yield Curve("tasks on one worker", "tasks", "seconds", series)
