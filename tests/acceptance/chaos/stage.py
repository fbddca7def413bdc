"""The herd of the chaos run: a manager, three workers behind proxies, its tasks, a source, their sinks."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from protocol.errors import RefusedError
from protocol.task_metrics import figure
from tests.acceptance.chaos import program
from tests.acceptance.chaos.bad_rows import JsonRows
from tests.acceptance.chaos.balance import Balance
from tests.acceptance.chaos.delta_lake import DeltaLake
from tests.acceptance.chaos.file_feed import FileFeed
from tests.acceptance.chaos.iceberg_lake import IcebergLake
from tests.acceptance.chaos.kafka_feed import KafkaFeed
from tests.acceptance.chaos.plan import Into, Source
from tests.acceptance.chaos.proxy import Proxy
from tests.acceptance.chaos.put_aside import PutsAside, SiftedDelta, SiftedSql, Told
from tests.acceptance.chaos.rows import CsvRows
from tests.acceptance.chaos.sql_sinks import SqlSinks
from tests.acceptance.group_view import GROUP, GroupView
from tests.acceptance.processes import Daemon, Herd, Manager
from tests.acceptance.waiting import eventually
from worker.lag.offset_log import offsets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.acceptance.chaos.feed import Feed
    from tests.acceptance.chaos.flows import Flow

WORKERS = ("anna", "berta", "carla")
SESSION_TIMEOUT_MS = 5000
REFUSED = "write refused"
FEEDS = {Source.FILES: FileFeed, Source.KAFKA: KafkaFeed}
SINKS: Final[Mapping[Into, type[SqlSinks | DeltaLake | IcebergLake]]] = {
    Into.SQL: SqlSinks,
    Into.DELTA: DeltaLake,
    Into.ICEBERG: IcebergLake,
}
SIFTED: Final[Mapping[Into, type[SiftedSql | SiftedDelta]]] = {Into.SQL: SiftedSql, Into.DELTA: SiftedDelta}
"""Those that can be given bad rows, too."""
_BY_LEASE = "by=lease"
_LEASE_OVER = "tasks lost"


class Stage:
    """Everything there is, and how it is doing."""

    def __init__(
        self,
        folder: Path,
        postgres: str,
        source: Source,
        into: Into,
        *,
        fenced: bool = True,
        bad_rows: int | None = None,
    ) -> None:
        """`bad_rows` is the seed of those among the rows, if there are to be any."""
        self.fenced = fenced
        self.sinks = (SINKS if bad_rows is None else SIFTED)[into](folder, postgres, fenced=fenced)
        self.flows = self.sinks.flows
        written = CsvRows() if bad_rows is None else JsonRows(bad_rows)
        self.feed: Feed = FEEDS[source](folder / "source", self.flows, written)
        self.resets: dict[str, int] = {}
        manager = Manager(folder, "--initial-rebalance-delay-ms", "1000")
        self.herd = Herd(folder, manager)
        self.view = GroupView(self.herd)
        self.proxies = {name: Proxy(manager.url) for name in WORKERS}
        self._program = (program.__file__, program.FENCED if fenced else program.UNFENCED)

    def open(self) -> None:
        """Bring up the workers and tasks; the first rows are through when this returns."""
        for name in WORKERS:
            self.herd.start_worker(
                name,
                *("--session-timeout-ms", str(SESSION_TIMEOUT_MS)),
                *(*self.feed.worker_flags, *self.sinks.worker_flags(name)),
                manager=self.proxies[name].url,
                program=self._program,
            )
        self.feed.open()
        self.feed.add()
        self.wait(self._is_full, "all are members")
        for flow in self.flows:
            self.view.create(flow.name, self.definition(flow))
        self.await_calm("all tasks run and have done all there is")

    def definition(self, flow: Flow) -> dict[str, Any]:
        """The flow's task as it is to be now."""
        definition = flow.definition(self.feed.source(flow), self.sinks.definition(flow))
        return {**definition, **self.sinks.rules(flow)}

    def close(self) -> None:
        """Stop all of it."""
        self.herd.stop()
        for proxy in self.proxies.values():
            proxy.close()
        self.feed.close()
        self.sinks.close()

    def wait(self, look: Callable[[], bool], what: str) -> None:
        """Until `look` says yes; the death of any process ends it."""
        eventually(look, what, alive=self.herd.daemons)

    def await_calm(self, what: str) -> None:
        """Until it is calm; if it never is, rows may be missing, and the error says how many where."""
        try:
            self.wait(self.is_calm, what)
        except AssertionError as late:
            late.add_note("\n".join(f"{place}: {balance}" for place, balance in self.balance().items()))
            raise

    def is_calm(self) -> bool:
        """Whether everybody is there, every task runs where it is assigned, and all rows have arrived."""
        self.feed.check()
        return (
            self._is_full()
            and self.view.settled(len(WORKERS))
            and all(self.sinks.has_all_of(flow) for flow in self.flows)
        )

    def _is_full(self) -> bool:
        with suppress(RefusedError):  # no such group before the first join
            return sorted(self.view.workers()) == sorted(WORKERS)
        return False

    def tasks_of(self, worker: str) -> list[str]:
        """What it owns."""
        member = self.view.workers().get(worker)
        return [name for name, task in self.view.tasks().items() if member and task.owner == member]

    def owner_of(self, task: str) -> str:
        """The name of the worker that owns it."""
        return next(worker for worker in WORKERS if task in self.tasks_of(worker))

    def tokens(self) -> dict[str, int]:
        """The tasks' present ones."""
        return {name: task.token for name, task in self.view.tasks().items()}

    def is_in_batch(self, worker_tasks: list[str]) -> bool:
        """Whether one of the tasks has begun a batch that is not committed, by its checkpoint."""
        return any(
            _last(self._log(task, "offsets")) > _last(self._log(task, "commits")) for task in worker_tasks
        )

    def last_planned(self, task: str) -> int:
        """The number of the last batch that the task has begun, by its checkpoint."""
        return _last(self._log(task, "offsets"))

    def has_committed(self, task: str, batch: int) -> bool:
        """Whether some owner of the task has finished the batch, by its checkpoint."""
        return (self._log(task, "commits") / str(batch)).exists()

    def read_up_to(self, flow: Flow) -> dict[int, int]:
        """The offsets behind the last finished batch of a flow that reads Kafka, by its checkpoint."""
        last = _last(self._log(flow.name, "commits"))
        entry = self._log(flow.name, "offsets") / str(last)
        return {} if last < 0 else (offsets_of(entry.read_text())[0] or {})[flow.name]

    def _log(self, task: str, log: str) -> Path:
        """In the task's present checkpoint: each reset begins another one."""
        name = f"{task}~{self.resets[task]}" if task in self.resets else task
        return self.herd.folder / "checkpoints" / GROUP / name / log

    def balance(self) -> dict[str, Balance]:
        """By place."""
        found: dict[str, Balance] = {}
        for flow in self.flows:
            for place, balance in self.sinks.balances(flow).items():
                found[place] = found.get(place, Balance()) + balance
        return found

    def due(self) -> dict[str, int]:
        """Rows fed so far, by the place where they have to be."""
        found: Counter[str] = Counter()
        for flow in self.flows:
            found.update(self.sinks.due(flow))
        return dict(found)

    def faults_of_told(self) -> list[str]:
        """What tasks say of rows that they have left out, and cannot be."""
        if not isinstance(self.sinks, PutsAside):
            return []
        metrics = {name: task.metrics for name, task in self.view.tasks().items()}
        told = {
            name: Told(*(int(figure(each, what) or 0) for what in Told._fields))
            for name, each in metrics.items()
        }
        faults = [self.sinks.fault_of_told(flow, told[flow.name]) for flow in self.flows]
        return [fault for fault in faults if fault]

    def summaries(self) -> list[str]:
        """What source and sinks have come to, for people."""
        bad_rows = self.sinks.bad_rows() if isinstance(self.sinks, PutsAside) else ""
        return [self.feed.summary(), self.sinks.summary(), bad_rows]

    def ends_of_leases(self, worker: str) -> int:
        """How often the worker has found its tasks lost."""
        return self.herd.workers[worker].log().count(_LEASE_OVER)

    def refusals(self) -> tuple[int, int]:
        """Writes of zombies that a fence refused, and those that their own lease did."""
        lines = [
            line
            for worker in self.herd.workers.values()
            for line in worker.log().splitlines()
            if REFUSED in line
        ]
        by_lease = sum(_BY_LEASE in line for line in lines)
        return len(lines) - by_lease, by_lease


def processes_of(worker: Daemon, *, with_jvm: bool) -> list[int]:
    """The worker's process, and with it all that it has started."""
    return [worker.process.pid, *(_descendants(worker.process.pid) if with_jvm else [])]


def jvm_of(worker: Daemon) -> int:
    """The worker's JVM."""
    return next(pid for pid in _descendants(worker.process.pid) if _name(pid) == "java")


def _descendants(pid: int) -> list[int]:
    """Each thread of a process has children of its own."""
    lists = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    return [each for child in map(int, chain(*lists)) for each in (child, *_descendants(child))]


def _name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def _last(log: Path) -> int:
    """The number of a checkpoint log's last entry, -1 if there is none."""
    with suppress(FileNotFoundError):
        return max((int(path.name) for path in log.iterdir() if path.name.isdecimal()), default=-1)
    return -1
