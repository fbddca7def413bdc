"""Queries of a real worker against the same ones in a plain script, each in a Spark of its own, in turn.

How soon the first batch is committed, counted from when the claim is granted, or when the script begins; and
how many rows a second one, ten and fifty of them get through together, from the first commit to the last.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Any

import psutil

from benchmarks.tools.figures import Curve, ResultLine, growth, summary
from benchmarks.tools.flight_rows import COLUMNS, SCHEMA, flights_source
from benchmarks.tools.servers import manager
from cli.client.admin_client import AdminClient, path_of
from protocol.messages.base import Response

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

GROUP = "bench"
STARTS = 20
START_GOAL = 1.25
BATCHES = 4
ROWS = 3_000
RUNS = {1: 3, 10: 2, 50: 1}
"""By the number of tasks: the more there are, the more batches a run has."""
GOAL = 1 / 0.9
MEMORY_GOAL = 1.1
MEGABYTE = 1_000_000
PATIENCE_S = 240.0
START_REASON = (
    "a plain query has no fence to raise and no checkpoint to look through before it starts, two durable"
    " transactions and some files"
)
RATE_REASON = "what `rows` has of one query: reading each batch's plan, asking the fence, planning the limit"
MEMORY_REASON = "how much of its heap a JVM has touched: that differs by 100 MB from run to run"
STEPS = ("granted", "planned", "checked", "started")
OF_A_BATCH = ("latestOffset", "queryPlanning", "walCommit", "addBatch", "commitOffsets")


@dataclass(slots=True)
class Run:
    """Some queries that were run at once: what was said of each, and the folders of their checkpoints."""

    folders: dict[str, Path]
    said: dict[str, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))

    @property
    def first_batches(self) -> list[float]:
        """Seconds to the commit of each query's first batch."""
        return [_committed(place, 0) - self.said[task]["granted"] for task, place in self.folders.items()]

    @property
    def seconds(self) -> float:
        """From the first commit of all to the last."""
        firsts = [_committed(place, 0) for place in self.folders.values()]
        return max(_committed(place, BATCHES - 1) for place in self.folders.values()) - min(firsts)


class Side:
    """One of the two: a process with a Spark, and what it says."""

    def __init__(self, stack: ExitStack, folder: Path, *command: str) -> None:
        folder.mkdir()
        self._folder = folder
        self._said: Queue[list[str]] = Queue()
        self._process = process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        stack.callback(process.wait)
        stack.callback(process.kill)
        Thread(target=self._listen, daemon=True).start()
        self._wait("joining", 1, {})

    def run(self, tasks: Sequence[str], source: str) -> Run:
        """All of `tasks` at once, until they are over."""
        run = Run({task: self._checkpoint(task) for task in tasks})
        self._begin(tasks, source)
        self._wait("spent", len(tasks), run.said)
        return run

    def resident(self) -> tuple[float, float, float]:
        """Megabytes of the process, of its JVM, and of Spark's Python; what is shared is shared out."""
        process = psutil.Process(self._process.pid)
        others = {"java": 0.0, "python": 0.0}
        for one in process.children(recursive=True):
            others["java" if "java" in one.name() else "python"] += _megabytes(one)
        return _megabytes(process), others["java"], others["python"]

    def _begin(self, tasks: Sequence[str], source: str) -> None:
        raise NotImplementedError

    def _checkpoint(self, task: str) -> Path:
        return self._folder / GROUP / task

    def _database(self, task: str) -> str:
        return str(self._folder / f"{task}.db")

    def _wait(self, step: str, count: int, said: dict[str, dict[str, Any]]) -> None:
        while count:
            told, task, value = self._said.get(timeout=PATIENCE_S)
            said.setdefault(task, {})[told] = json.loads(value)
            count -= told == step

    def _listen(self) -> None:
        for line in self._process.stdout or ():
            self._said.put(line.split())


class Worker(Side):
    """A worker, given tasks by its manager."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        url = stack.enter_context(manager("--initial-rebalance-delay-ms", "0")).url
        self._client = AdminClient([url])
        super().__init__(stack, folder, "-m", "benchmarks.tools.spark_worker", url, GROUP, str(folder))

    def _begin(self, tasks: Sequence[str], source: str) -> None:
        for task in tasks:
            body = {"task": task, "definition": self._definition(task, source)}
            self._client.call("POST", path_of("groups", GROUP, "tasks"), body, into=Response)

    def _definition(self, task: str, source: str) -> dict[str, Any]:
        options = {"path": source, "nullValue": "NA", "maxFilesPerTrigger": 1}
        return {
            "source": {"format": "csv", "schema": SCHEMA, "options": options},
            "sql": f"SELECT {', '.join(COLUMNS)} FROM source",
            "sink": {
                "format": "sql",
                "options": {"url": f"sqlite:///{self._database(task)}", "table": "bench"},
            },
            "trigger": {"available_now": True},
        }


class Plain(Side):
    """A script, told on its standard input."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        super().__init__(stack, folder, "-m", "benchmarks.peers.spark_plain")

    def _begin(self, tasks: Sequence[str], source: str) -> None:
        jobs = [
            {
                "task": task,
                "source": source,
                "database": self._database(task),
                "checkpoint": str(self._checkpoint(task)),
            }
            for task in tasks
        ]
        if self._process.stdin:
            self._process.stdin.write(json.dumps(jobs) + "\n")
            self._process.stdin.flush()


def measure() -> Iterator[ResultLine | Curve]:
    """The starts, then all together."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sides = Worker(stack, folder / "worker"), Plain(stack, folder / "plain")
        one = flights_source(folder / "one", ROWS, batches=1)["options"]["path"]
        _pairs(sides, "warm", 2, 1, one)
        yield _starts(_pairs(sides, "start", STARTS, 1, one))
        yield from _together(sides, flights_source(folder / "some", ROWS, batches=BATCHES)["options"]["path"])


def _pairs(
    sides: tuple[Worker, Plain], name: str, runs: int, tasks: int, source: str
) -> list[tuple[Run, Run]]:
    """In turn: the worker, then the script."""
    names = [[f"{name}-{tasks}-{run}-{task}" for task in range(tasks)] for run in range(runs)]
    return [(sides[0].run(each, source), sides[1].run(each, source)) for each in names]


def _starts(pairs: Sequence[tuple[Run, Run]]) -> ResultLine:
    """From the grant to the first commit, and where the time goes."""
    ours = [ours.first_batches[0] for ours, _ in pairs]
    theirs = [theirs.first_batches[0] for _, theirs in pairs]
    deciles = statistics.quantiles(ours, n=10)
    note = (
        f"{1000 * statistics.median(ours):.0f} ms, 9 of 10 within {1000 * deciles[-1]:.0f} ms;"
        f" plain {1000 * statistics.median(theirs):.0f} ms; of ours {_before([run for run, _ in pairs])},"
        f" {_first([run for run, _ in pairs])}; of plain's {_first([run for _, run in pairs])}"
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


def _together(sides: tuple[Worker, Plain], path: str) -> Iterator[ResultLine | Curve]:
    """More and more tasks; a task's own share of what they get through together is in the note."""
    seconds: dict[int, tuple[float, float]] = {}
    for tasks, runs in RUNS.items():
        pairs = _pairs(sides, "together", runs, tasks, path)
        ours, theirs = zip(*((mine.seconds, other.seconds) for mine, other in pairs), strict=True)
        seconds[tasks] = statistics.median(ours), statistics.median(theirs)
        yield _rate(tasks, ours, theirs)
        yield _memory(tasks, *(side.resident() for side in sides))
    sizes, costs = list(seconds), [ours for ours, _ in seconds.values()]
    yield growth("Spark: growth of time with tasks on one worker", 1.1, sizes, costs)
    series = {
        "sparkherd": [(tasks, ours) for tasks, (ours, _) in seconds.items()],
        "plain": [(tasks, theirs) for tasks, (_, theirs) in seconds.items()],
    }
    yield Curve("tasks on one worker", "tasks", "seconds", series)


def _rate(tasks: int, ours: Sequence[float], theirs: Sequence[float]) -> ResultLine:
    rows = tasks * (BATCHES - 1) * ROWS
    rates = [rows / statistics.median(each) for each in (ours, theirs)]
    note = f"{rates[0]:,.0f} against {rates[1]:,.0f} rows a second, {rates[0] / tasks:,.0f} a task"
    ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    spread = summary(ratios) if len(ratios) > 1 else (ratios[0], 0.0)
    what = f"Spark: time of {tasks} task(s) on one worker, {ROWS:,} rows a batch, against plain queries"
    return ResultLine(what, GOAL, *spread, "times", note, RATE_REASON)


def _memory(tasks: int, ours: Sequence[float], theirs: Sequence[float]) -> ResultLine:
    told = [" + ".join(f"{each:,.0f}" for each in side) for side in (ours, theirs)]
    note = f"{' against '.join(told)} MB: Python, JVM, Spark's Python workers"
    what = f"Spark: resident memory after {tasks} task(s) at once, against plain queries"
    return ResultLine(what, MEMORY_GOAL, sum(ours) / sum(theirs), 0, "times", note, MEMORY_REASON)


def _megabytes(process: psutil.Process) -> float:
    resident: int = process.memory_full_info().pss
    return resident / MEGABYTE


def _committed(checkpoint: Path, batch: int) -> float:
    return (checkpoint / "commits" / str(batch)).stat().st_mtime
