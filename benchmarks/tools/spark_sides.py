"""A worker and a plain script, each a process with a Spark of its own, that are given the same queries.

Both are timed by their checkpoints. Spark's settings, its jars and the options of its JVM are the same.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import psutil

from benchmarks.tools.figures import summary
from benchmarks.tools.flight_rows import COLUMNS
from benchmarks.tools.servers import manager
from cli.client.admin_client import AdminClient, path_of
from protocol.messages.base import Response

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import ExitStack
    from pathlib import Path

GROUP = "bench"
MEGABYTE = 1_000_000
PATIENCE_S = 240.0
LEAST_BATCHES = 10
"""That are worth timing."""
ENDED = "ended"
"""Said of a process that is gone."""
Source: TypeAlias = dict[str, Any]
"""What a task's definition has as its source; its columns are those of the flights."""


@dataclass(slots=True)
class Run:
    """Some queries that were run at once: what was said of each, and the folders of their checkpoints.

    `processor_s` are the seconds of processor time that the process and all it has started took.
    """

    folders: dict[str, Path]
    said: dict[str, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))
    processor_s: float = 0.0

    @property
    def first_batches(self) -> list[float]:
        """Seconds to the commit of each query's first batch."""
        return [_committed(place, 0) - self.said[task]["granted"] for task, place in self.folders.items()]

    @property
    def seconds(self) -> float:
        """From the first commit of all to the last."""
        firsts = [_committed(place, 0) for place in self.folders.values()]
        return max(_committed(place, _last(place)) for place in self.folders.values()) - min(firsts)

    @property
    def batch_s(self) -> float:
        """Seconds a batch, of whichever query, while all of them ran.

        From the moment when the last of them had committed its first batch until one had committed its last.
        """
        commits = [_commits(place) for place in self.folders.values()]
        begin, end = max(each[0] for each in commits), min(each[-1] for each in commits)
        done = sum(begin < at <= end for each in commits for at in each)
        if done < LEAST_BATCHES:
            raise RuntimeError(f"{done} batches were done while all queries ran: give each more of them")
        return (end - begin) / done


class Side:
    """One of the two: a process with a Spark, and what it says."""

    def __init__(self, stack: ExitStack, folder: Path, *command: str) -> None:
        folder.mkdir()
        self._folder = folder
        self._said: Queue[list[str]] = Queue()
        self._errors = folder / "stderr"
        with self._errors.open("w") as errors:
            self._process = process = subprocess.Popen(
                [sys.executable, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        stack.callback(process.wait)
        stack.callback(process.kill)
        Thread(target=self._listen, daemon=True).start()
        self._wait("joining", 1, {})

    def run(self, sources: Mapping[str, Source]) -> Run:
        """A query for each source, by its task's name, all at once, until they are over."""
        run = Run({task: self._checkpoint(task) for task in sources})
        before = self._processor_s()
        self._begin(sources)
        self._wait("spent", len(sources), run.said)
        run.processor_s = self._processor_s() - before
        self._forget(list(sources))
        return run

    def resident(self) -> tuple[float, float, float]:
        """Megabytes of the process, of its JVM, and of Spark's Python; what is shared is shared out."""
        process = psutil.Process(self._process.pid)
        others = {"java": 0.0, "python": 0.0}
        for one in process.children(recursive=True):
            others["java" if "java" in one.name() else "python"] += _megabytes(one)
        return _megabytes(process), others["java"], others["python"]

    def database(self, task: str) -> Path:
        """The file of SQLite's that a task writes to."""
        return self._folder / f"{task}.db"

    def _begin(self, sources: Mapping[str, Source]) -> None:
        raise NotImplementedError

    def _forget(self, tasks: Sequence[str]) -> None:
        """They are over: what is kept of them is to cost nothing while the other side runs."""

    def _checkpoint(self, task: str) -> Path:
        return self._folder / GROUP / task

    def _processor_s(self) -> float:
        process = psutil.Process(self._process.pid)
        times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
        return float(sum(each.user + each.system for each in times))

    def _wait(self, step: str, count: int, said: dict[str, dict[str, Any]]) -> None:
        while count:
            told, task, value = self._said.get(timeout=PATIENCE_S)
            if told == ENDED:
                raise RuntimeError(f"{self._errors}: {self._errors.read_text()[-2000:]}")
            said.setdefault(task, {})[told] = json.loads(value)
            count -= told == step

    def _listen(self) -> None:
        for line in self._process.stdout or ():
            self._said.put(line.split())
        self._said.put([ENDED, "-", "0"])


class WorkerSide(Side):
    """A worker, given tasks by its manager; their sink is the fenced one."""

    def __init__(self, stack: ExitStack, folder: Path, *jars: str) -> None:
        url = stack.enter_context(manager("--initial-rebalance-delay-ms", "0")).url
        self._client = AdminClient([url])
        super().__init__(stack, folder, "-m", "benchmarks.tools.spark_worker", url, GROUP, str(folder), *jars)

    def _begin(self, sources: Mapping[str, Source]) -> None:
        for task, source in sources.items():
            body = {"task": task, "definition": self._definition(task, source)}
            self._client.call("POST", path_of("groups", GROUP, "tasks"), body, into=Response)

    def _forget(self, tasks: Sequence[str]) -> None:
        for task in tasks:
            self._client.call("DELETE", path_of("groups", GROUP, "tasks", task), into=Response)

    def _definition(self, task: str, source: Source) -> dict[str, Any]:
        url = f"sqlite:///{self.database(task)}"
        return {
            "source": source,
            "sql": f"SELECT {', '.join(COLUMNS)} FROM source",
            "sink": {"format": "sql", "options": {"url": url, "table": "bench"}},
            "trigger": {"available_now": True},
        }


class PlainSide(Side):
    """`peers/spark_plain.py`, told on its standard input."""

    def __init__(self, stack: ExitStack, folder: Path, *jars: str) -> None:
        super().__init__(stack, folder, "-m", "benchmarks.peers.spark_plain", *jars)

    def _begin(self, sources: Mapping[str, Source]) -> None:
        jobs = [
            {
                "task": task,
                "source": source,
                "database": str(self.database(task)),
                "checkpoint": str(self._checkpoint(task)),
            }
            for task, source in sources.items()
        ]
        if self._process.stdin:
            self._process.stdin.write(json.dumps(jobs) + "\n")
            self._process.stdin.flush()


Sides: TypeAlias = tuple[WorkerSide, PlainSide]


class Pair(NamedTuple):
    """The same queries on both sides, the worker's first."""

    ours: Run
    theirs: Run

    @property
    def ratio(self) -> float:
        """Of the seconds."""
        return self.ours.seconds / self.theirs.seconds

    @property
    def batch_ratio(self) -> float:
        """Of the seconds a batch while all queries ran."""
        return self.ours.batch_s / self.theirs.batch_s

    @property
    def processor_ratio(self) -> float:
        """Of the processor time, which other work on the machine changes less."""
        return self.ours.processor_s / self.theirs.processor_s


def in_turn(sides: Sides, name: str, runs: int, sources: Sequence[Source]) -> list[Pair]:
    """`runs` pairs with a task for each of `sources`; who begins changes from pair to pair."""
    pairs = []
    for run in range(runs):
        named = {f"{name}-{len(sources)}-{run}-{at}": source for at, source in enumerate(sources)}
        order = sides if run % 2 == 0 else sides[::-1]
        done = {type(side): side.run(named) for side in order}
        pairs.append(Pair(done[WorkerSide], done[PlainSide]))
    return pairs


def median_seconds(pairs: Sequence[Pair]) -> tuple[float, float]:
    """The worker's, and the script's."""
    ours, theirs = zip(*((pair.ours.seconds, pair.theirs.seconds) for pair in pairs), strict=True)
    return statistics.median(ours), statistics.median(theirs)


def told_rates(pairs: Sequence[Pair], tasks: int, rows: int) -> str:
    """What they get through, for a note; `rows` are those of one task between its first and last commit."""
    ours, theirs = (tasks * rows / seconds for seconds in median_seconds(pairs))
    return f"{ours:,.0f} against {theirs:,.0f} rows a second, {ours / tasks:,.0f} a task"


def told_batch_rates(pairs: Sequence[Pair], rows: int) -> str:
    """What they get through while all queries run, for a note; `rows` are those of one batch."""
    ours, theirs = (
        rows / statistics.median(side.batch_s for side in sides)
        for sides in zip(*((pair.ours, pair.theirs) for pair in pairs), strict=True)
    )
    return f"{ours:,.0f} against {theirs:,.0f} rows a second"


def spread_of(ratios: Sequence[float]) -> tuple[float, float]:
    """The median with its spread, as far as there is one."""
    return summary(ratios) if len(ratios) > 1 else (ratios[0], 0.0)


def told_memory(sides: Sides) -> tuple[float, str]:
    """The worker's against the script's, and megabytes of each for a note."""
    ours, theirs = (side.resident() for side in sides)
    told = [" + ".join(f"{each:,.0f}" for each in side) for side in (ours, theirs)]
    return sum(ours) / sum(theirs), f"{' against '.join(told)} MB: Python, JVM, Spark's Python workers"


def _megabytes(process: psutil.Process) -> float:
    resident: int = process.memory_full_info().pss
    return resident / MEGABYTE


def _last(checkpoint: Path) -> int:
    return max(int(each.name) for each in (checkpoint / "commits").iterdir() if each.name.isdecimal())


def _commits(checkpoint: Path) -> list[float]:
    """When each batch was committed."""
    return [_committed(checkpoint, batch) for batch in range(_last(checkpoint) + 1)]


def _committed(checkpoint: Path, batch: int) -> float:
    return (checkpoint / "commits" / str(batch)).stat().st_mtime
