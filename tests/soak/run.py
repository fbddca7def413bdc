"""The soak: twenty tasks on two workers, a rebalance each minute, and what that leaves behind."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from protocol.errors import RefusedError
from tests.acceptance.group_view import GroupView
from tests.acceptance.processes import Herd as Processes
from tests.acceptance.processes import Manager
from tests.acceptance.waiting import eventually
from tests.delta_sessions import FEW_ROWS
from tests.integration import postgres
from tests.kafka import broker
from tests.soak.feed import Feed
from tests.soak.places import Database, Fault
from tests.soak.readings import descendants, entries, heap_reading, named, process_reading
from tests.soak.tasks import Herd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.soak.tasks import Kind

WORKERS: Final = ("anna", "berta")
MOVES: Final = 4
"""Tasks that change their worker each minute."""
FEED_S: Final = 5.0
LOOK_S: Final = 15.0
MOVE_S: Final = 60.0
HEAP_S: Final = 120.0
CALM_S: Final = 600.0
ENDING_S: Final = 30.0
HEAP_MB: Final = 1024
JARS: Final = broker.JARS.parent / "spark"
REPOSITORY: Final = Path(__file__).parents[2]
_CONF: Final = {
    "spark.driver.memory": f"{HEAP_MB}m",
    "spark.driver.extraJavaOptions": f"-XX:+UseSerialGC -Xms{HEAP_MB}m -XX:+AlwaysPreTouch",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    **FEW_ROWS,
}
"""The heap is all there from the beginning, or what it takes to grow would look like a leak."""

Series = dict[str, list[tuple[float, float]]]


@dataclass
class Outcome:
    """What was seen: figures by the time in seconds, what was there before and after, and what is missing."""

    series: Series = field(default_factory=dict)
    before: dict[str, float] = field(default_factory=dict)
    after: dict[str, float] = field(default_factory=dict)
    faults: dict[str, Fault] = field(default_factory=dict)
    swept: dict[str, int] = field(default_factory=dict)
    left_processes: int = 0
    rows: int = 0
    moves: int = 0
    seconds: float = 0.0


class Soak:
    """All of it, and the clock by which it goes."""

    def __init__(self, folder: Path, herd: Herd, processes: Processes, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._herd = herd
        self._processes = processes
        self._say = say
        self._view = GroupView(processes)
        self._kinds = herd.tasks()
        self._where = {kind.name: WORKERS[n % 2] for n, kind in enumerate(self._kinds)}
        self._jvms: dict[str, int] = {}
        self.outcome = Outcome()

    def open(self) -> None:
        """Bring up both workers, and look at what they are without tasks."""
        for name in WORKERS:
            self._processes.start_worker(name, *_flags())
        self._wait(self._is_full, "both are members")
        self._jvms = {name: named(self._started(name), "java")[0] for name in WORKERS}

    def _is_full(self) -> bool:
        with suppress(RefusedError):  # no such group before the first join
            return sorted(self._view.workers()) == sorted(WORKERS)
        return False

    def warm_up(self) -> None:
        """Every task has run once on either worker; what is there without tasks is only to be told now."""
        self._herd.feed.add()
        for kind in self._kinds:
            self._put(kind)
        self._await_calm("all tasks run")
        for _ in range(len(self._kinds) // MOVES * 2):
            self._move()
            self._herd.feed.add()
            self._await_calm("tasks have moved")

    def rest(self) -> dict[str, float]:
        """Have no task at all, and look at what is left of them."""
        for kind in self._kinds:
            self._view.stop(kind.name)
        self._wait(lambda: all(map(self._view.is_stopped, self._where)), "all tasks are stopped")
        return self._look_at_rest()

    def go_on(self) -> None:
        """After a rest."""
        for kind in self._kinds:
            self._view.resume(kind.name)
        self._await_calm("all tasks run again")

    def soak(self, seconds: float) -> None:
        """Feed, move and look, each in its own time."""
        begin = time.monotonic()
        due = [(0.0, FEED_S, self._feed), (0.0, LOOK_S, self._look), (0.0, HEAP_S, self._look_into_heaps)]
        due.append((MOVE_S, MOVE_S, self._move))
        while (now := time.monotonic() - begin) < seconds:
            due.sort(key=lambda each: each[0])
            at, every, act = due.pop(0)
            if at > now:
                self._wait_out(begin + min(at, seconds))
            act(time.monotonic() - begin)
            due.append((max(at + every, time.monotonic() - begin), every, act))
        self.outcome.seconds = time.monotonic() - begin

    def end(self) -> None:
        """Let everything arrive, then see what is where."""
        self._await_calm("all rows have arrived")
        self.outcome.rows = self._herd.feed.rows
        self.outcome.faults = self._faults()
        self.outcome.after = self.rest()
        self.outcome.swept = self._sweepings()

    def count_left_processes(self, started: list[psutil.Process]) -> None:
        """Of those that there were, a while after the workers are over."""
        _, left = psutil.wait_procs(started, timeout=ENDING_S)
        self.outcome.left_processes = len(left)

    def started(self) -> list[psutil.Process]:
        """All that the workers have started, by more than numbers, which others have after them."""
        return [psutil.Process(pid) for name in WORKERS for pid in self._started(name)]

    def _started(self, worker: str) -> list[int]:
        return descendants(self._processes.workers[worker].process.pid)

    def _feed(self, _at: float) -> None:
        self._herd.feed.add()

    def _move(self, _at: float = 0.0) -> None:
        """The next few tasks of each worker change places, which takes a rebalance."""
        names = [kind.name for kind in self._kinds]
        first = self.outcome.moves * MOVES % len(names)
        for kind in (self._kinds * 2)[first : first + MOVES]:
            one, other = WORKERS
            self._where[kind.name] = other if self._where[kind.name] == one else one
            self._put(kind)
        self.outcome.moves += 1

    def _put(self, kind: Kind) -> None:
        self._view.put(kind.name, {**kind.definition, "worker": self._where[kind.name]})

    def _look(self, at: float) -> None:
        self._look_at_processes(self.outcome.series, at)

    def _look_at_processes(self, into: Series, at: float) -> None:
        for name, pid in self._watched().items():
            if (found := process_reading(pid)) is not None:
                for what, figure in found._asdict().items():
                    _note(into, f"{name} {what}", at, figure)
        for name in WORKERS:
            _note(into, f"{name} python processes", at, len(self._pythons(name)))
        for what in ("tmp", "checkpoints"):
            _note(into, f"entries of {what}", at, entries(self._folder / what))

    def _look_into_heaps(self, at: float) -> None:
        self._look_at_heaps(self.outcome.series, at)
        twice = {task: fault.twice for task, fault in self._faults().items() if fault.twice}
        rows, moves = self._herd.feed.rows, self.outcome.moves
        self._say(f"{at:6.0f} s: {rows:,} rows, {moves} rebalances, twice {twice or 0}")

    def _look_at_heaps(self, into: Series, at: float) -> None:
        for name, pid in self._jvms.items():
            found = heap_reading(pid)
            _note(into, f"{name} jvm live heap", at, found.live)
            for what, count in found.counts.items():
                _note(into, f"{name} jvm {what}", at, count)

    def _look_at_rest(self) -> dict[str, float]:
        """Of Python's processes Spark keeps some for a minute."""
        self._wait(lambda: not any(map(self._pythons_at_work, WORKERS)), "Python processes are gone")
        found: Series = {}
        self._look_at_processes(found, 0.0)
        self._look_at_heaps(found, 0.0)
        return {name: points[-1][1] for name, points in found.items()}

    def _watched(self) -> dict[str, int]:
        workers = {name: self._processes.workers[name].process.pid for name in WORKERS}
        jvms = {f"{name} jvm": pid for name, pid in self._jvms.items()}
        return {"manager": self._processes.manager.process.pid, **workers, **jvms}

    def _pythons(self, worker: str) -> list[int]:
        return named(descendants(self._jvms[worker]), "python")

    def _pythons_at_work(self, worker: str) -> bool:
        """Spark forks them from one that stays."""
        return len(self._pythons(worker)) > 1

    def _faults(self) -> dict[str, Fault]:
        return {kind.name: kind.fault(self._herd.feed.rows) for kind in self._kinds}

    def _await_calm(self, what: str) -> None:
        def is_calm() -> bool:
            return self._view.settled(len(WORKERS)) and not any(map(any, self._faults().values()))

        try:
            self._wait(is_calm, what)
        except AssertionError as late:
            late.add_note(str({task: fault for task, fault in self._faults().items() if any(fault)}))
            raise

    def _wait(self, look: Callable[[], bool], what: str) -> None:
        eventually(look, what, alive=self._processes.daemons, within_s=CALM_S)

    def _wait_out(self, until: float) -> None:
        """On the processes, none of which may end."""
        eventually(
            lambda: time.monotonic() >= until, "it is time", alive=self._processes.daemons, within_s=CALM_S
        )

    def _sweepings(self) -> dict[str, int]:
        """What sinks and checkpoints would leave if nobody swept them."""
        outboxes = sum(1 for _ in (self._folder / "lake").glob("*.outbox*/*/*"))
        hidden = sum(1 for _ in (self._folder / "checkpoints").rglob(".*.tmp*"))
        return {"in outboxes": outboxes, "temporary files of checkpoints": hidden}


def _note(into: Series, name: str, at: float, figure: float) -> None:
    into.setdefault(name, []).append((at, float(figure)))


def _flags() -> list[str]:
    conf = [word for key, value in _CONF.items() for word in ("--spark-conf", f"{key}={value}")]
    jars = [word for name in ("delta", "kafka") for word in ("--jars", str(JARS / name))]
    return [*conf, *jars, "--allow-entrypoint", "tests.soak", "--warm-up-timeout-ms", "60000"]


@contextmanager
def _environment(folder: Path) -> Iterator[None]:
    """Of the daemons: their temporary files are in a folder of their own, their code is this repository's."""
    (folder / "tmp").mkdir()
    before = dict(os.environ)
    os.environ |= {"TMPDIR": str(folder / "tmp"), "PYTHONPATH": str(REPOSITORY)}
    os.environ["JAVA_TOOL_OPTIONS"] = f"-Djava.io.tmpdir={folder / 'tmp'}"
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= before


@contextmanager
def _databases(folder: Path, url: str) -> Iterator[dict[str, tuple[str, Database]]]:
    with ExitStack() as stack:
        urls = {"sqlite": f"sqlite:///{folder / 'sink.db'}", "postgres": url}
        found = {name: (each, Database(_readable(each))) for name, each in urls.items()}
        for _, database in found.values():
            stack.callback(database.close)
        yield found


def _readable(url: str) -> str:
    return url.replace("postgresql:", "postgresql+psycopg:", 1)


def run(folder: Path, seconds: float, say: Callable[[str], None] = print) -> Outcome:
    """All of it, in `folder`; `seconds` is how long tasks are fed, moved and looked at."""
    with ExitStack() as stack:
        server = stack.enter_context(postgres.running())
        kafka = stack.enter_context(broker.running(folder / "kafka"))
        found = stack.enter_context(_databases(folder, server.url))
        topic = kafka.topic("rows", partitions=2)
        urls = {name: url for name, (url, _) in found.items()}
        databases = {name: database for name, (_, database) in found.items()}
        herd = Herd(Feed(folder / "in", topic), topic, folder / "lake", urls, databases)
        stack.enter_context(_environment(folder))
        processes = Processes(folder, Manager(folder, "--initial-rebalance-delay-ms", "1000"))
        soak = Soak(folder, herd, processes, say)
        started: list[psutil.Process] = []
        try:
            soak.open()
            soak.warm_up()
            soak.outcome.before = soak.rest()
            soak.go_on()
            soak.soak(seconds)
            soak.end()
            started = soak.started()
        finally:
            processes.stop()
        soak.count_left_processes(started)
        return soak.outcome
