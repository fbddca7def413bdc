"""Three managers on a real PostgreSQL, their workers, and queries that write down who they are."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cli.client.admin_client import AdminClient, UnreachableError, path_of
from protocol.errors import RefusedError
from protocol.messages.groups import CoordinatorResponse
from tests.acceptance.group_view import GROUP
from tests.acceptance.processes import Daemon, Manager, worker_args

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.postgres import Server

ASK_S = 3.0
"""How long an admin waits for a manager, which may be frozen."""

QUERIES = '''
"""Queries that note in a file, batch by batch, which run of which query they are."""


def ticking(context):
    numbers = context.spark.readStream.format("rate").option("rowsPerSecond", 1).load()

    def note(batch, batch_id):
        run = batch.sparkSession.sparkContext.getLocalProperty("spark.jobGroup.id")
        with open(context.options["path"], "a") as file:
            file.write(f"{run} {batch_id}\\n")

    return context.foreach_batch(numbers, note).trigger(processingTime="2 seconds")
'''


@dataclass
class Cluster:
    """All of it; `stop` ends what is left."""

    folder: Path
    postgres: Server
    managers: dict[str, Manager] = field(default_factory=dict)
    workers: dict[str, Daemon] = field(default_factory=dict)

    def start_managers(self, names: tuple[str, ...]) -> None:
        """On one database."""
        database = self.postgres.new_database("postgresql+asyncpg")
        for name in names:
            flags = ("--initial-rebalance-delay-ms", "5000")
            self.managers[name] = Manager(self.folder, *flags, name=name, database=database)

    def start_workers(self, names: tuple[str, ...]) -> None:
        """They are told the URLs of all managers."""
        (self.folder / "queries.py").write_text(QUERIES)
        for name in names:
            args = worker_args(name, self.urls, GROUP, self.folder)
            args += ["--allow-entrypoint", "queries"]
            self.workers[name] = Daemon(name, args, self.folder)

    @property
    def urls(self) -> str:
        """Of all managers, as users give them."""
        return ",".join(manager.url for manager in self.managers.values())

    @property
    def daemons(self) -> list[Daemon]:
        """Everything that should run."""
        return [*self.managers.values(), *self.workers.values()]

    def client(self, timeout_s: float = ASK_S) -> AdminClient:
        """An admin's client of them all."""
        return AdminClient(self.urls.split(","), timeout_s=timeout_s)

    def owner(self) -> str | None:
        """The manager that has the group, if all who answer agree."""
        told = {name: self._owner_by(manager) for name, manager in self.managers.items()}
        urls = set(told.values()) - {None}
        return next((n for n, m in self.managers.items() if {m.url} == urls), None)

    def _owner_by(self, manager: Manager) -> str | None:
        with suppress(RefusedError, UnreachableError):
            path = f"{path_of('coordinator')}?group={GROUP}"
            return AdminClient([manager.url], timeout_s=ASK_S).get(path, CoordinatorResponse).coordinator.url
        return None

    def stop(self) -> None:
        """Workers first, so that they can leave."""
        for daemon in reversed(self.daemons):
            daemon.stop()


def runs_of(folder: Path, tasks: tuple[str, ...]) -> dict[str, list[tuple[str, int]]]:
    """What each query noted: its run, and the batch."""
    noted = {}
    for task in tasks:
        path = folder / f"{task}.runs"
        lines = path.read_text().splitlines() if path.exists() else []
        noted[task] = [(run, int(batch)) for run, batch in map(str.split, lines)]
    return noted


def now_ms() -> int:
    """As managers stamp heartbeats."""
    return time.time_ns() // 1_000_000
