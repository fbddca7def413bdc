"""What a JVM for each task costs (`--isolate`), against one that all tasks of a worker share, in turn.

How soon the first batch of a task is committed, alone and of four that are started at once; and what worker,
JVMs and Spark's Python hold in memory while they run.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from benchmarks.tools.figures import ResultLine, summary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

RUNS = {1: 5, 4: 3}
"""Pairs, by the number of tasks that are started at once."""
QUICK_RUNS = {1: 2, 4: 2}
MEGABYTE = 1_000_000
NAMES = ("isolated", "shared")


class Side:
    """A worker's engine as a process (`tools/isolation_side.py`)."""

    def __init__(self, stack: ExitStack, kind: str, folder: Path) -> None:
        folder.mkdir()
        self._process = process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.tools.isolation_side", kind, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        stack.callback(process.wait)
        stack.callback(process.kill)
        self._heard()

    def run(self, tasks: int) -> tuple[Mapping[str, float], float]:
        """Start so many tasks and stop them; seconds, and the megabytes they took meanwhile."""
        told = self._ask(f"start {tasks}")
        megabytes = self._megabytes()
        self._ask("stop")
        return told, megabytes

    def _ask(self, order: str) -> dict[str, float]:
        if self._process.stdin:
            self._process.stdin.write(f"{order}\n")
            self._process.stdin.flush()
        return self._heard()

    def _heard(self) -> dict[str, float]:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line.startswith("{"):
            raise RuntimeError(f"the engine ended or said {line!r}")
        told: dict[str, float] = json.loads(line)
        return told

    def _megabytes(self) -> float:
        """What is shared between processes is shared out."""
        worker = psutil.Process(self._process.pid)
        return sum(map(_megabytes, [worker, *worker.children(recursive=True)]))


def _megabytes(process: Any) -> float:
    try:
        return float(process.memory_full_info().pss) / MEGABYTE
    except psutil.NoSuchProcess:  # Spark's launcher, which has become a JVM or has ended
        return 0.0


def measure(runs: Mapping[int, int] = RUNS) -> Iterator[ResultLine]:
    """Each number of tasks on both sides in turn, after one run of each that nobody counts."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sides = {name: Side(stack, name, folder / name) for name in NAMES}
        for side in sides.values():
            side.run(1)
        for tasks, times in runs.items():
            yield from _lines(tasks, [_pair(sides, tasks, turn) for turn in range(times)])


def quick() -> Iterator[ResultLine]:
    """Fewer pairs."""
    return measure(QUICK_RUNS)


def _pair(sides: Mapping[str, Side], tasks: int, turn: int) -> dict[str, tuple[Mapping[str, float], float]]:
    """Who begins changes from pair to pair."""
    order = NAMES if turn % 2 == 0 else NAMES[::-1]
    return {name: sides[name].run(tasks) for name in order}


def _lines(tasks: int, pairs: list[dict[str, tuple[Mapping[str, float], float]]]) -> Iterator[ResultLine]:
    what = "a task's start" if tasks == 1 else f"{tasks} tasks' start at once"
    for step, name in (("first_batch", "to first batch committed"), ("started", "until the query runs")):
        isolated, shared = ([pair[side][0][step] for pair in pairs] for side in NAMES)
        note = f"shared JVM: {statistics.median(shared):.2f} s; {_ratio(isolated, shared):.1f} times"
        yield ResultLine(f"--isolate: {what}, {name}", None, *summary(isolated), "s", note)
    isolated, shared = ([pair[side][1] for pair in pairs] for side in NAMES)
    note = f"shared JVM: {statistics.median(shared):,.0f} MB; {_ratio(isolated, shared):.1f} times"
    yield ResultLine(f"--isolate: memory with {tasks} task(s)", None, *summary(isolated), "MB", note)


def _ratio(isolated: list[float], shared: list[float]) -> float:
    """The median of the pairs'."""
    return statistics.median(ours / theirs for ours, theirs in zip(isolated, shared, strict=True))
