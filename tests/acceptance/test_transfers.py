"""A task goes to and fro between two groups, and each time a manager is killed at another step of the way."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from cli.client.admin_client import AdminClient, UnreachableError, path_of
from protocol.errors import RefusedError
from protocol.messages.tasks import CreateTaskRequest, TaskListResponse, TaskResponse
from protocol.messages.transfers import StartTransferRequest, TransferResponse
from protocol.states import TransferStep
from tests.acceptance.processes import Daemon, Manager, worker_args
from tests.acceptance.waiting import eventually
from tests.integration.postgres import running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from protocol.messages.tasks import TaskView
    from tests.integration.postgres import Server

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(1500)]

DYING = """
import os
import signal
from pathlib import Path

from cli.main import main
from manager.core.stored_rows import TransferRow
from manager.storage.sql_storage import SqlStorage

commit = SqlStorage.commit


def strike(changes, when):
    try:
        step, moment = Path("die_at").read_text().split()
    except FileNotFoundError:
        return
    if moment == when and any(isinstance(row, TransferRow) and row.step.value == step for row in changes):
        Path("died").write_text(str(os.getpid()))
        Path("die_at").unlink()
        os.kill(os.getpid(), signal.SIGKILL)


async def dying(self, changes, *args, **more):
    strike(changes, "before")
    await commit(self, changes, *args, **more)
    strike(changes, "after")


SqlStorage.commit = dying
main()
"""
"""A manager that kills itself where `die_at` says: before or after a step of a transfer becomes durable."""

STEPS = ("STOPPING", "STOPPED", "ARRIVED", "GIVEN", "STARTED", "DONE")
DEATHS = [(step, moment) for step in STEPS for moment in ("before", "after")]
GROUPS = ("a", "b")
TASK = "copy"
ROWS_A_FILE = 20
FLAGS = ("--initial-rebalance-delay-ms", "500", "--lease-ms", "3000")


class Herds:
    """Two groups with a worker each, two managers that share them, and a table that one task fills."""

    def __init__(self, folder: Path, postgres: Server) -> None:
        self.folder = folder
        self.rows = 0
        (folder / "incoming").mkdir()
        (folder / "dying.py").write_text(DYING)
        database = postgres.new_database("postgresql+asyncpg")
        self.managers = [
            Manager(folder, *FLAGS, name=name, database=database, program=("dying.py",))
            for name in ("m1", "m2")
        ]
        urls = [manager.url for manager in self.managers]
        self.client = AdminClient(urls, timeout_s=10)
        self.workers = [
            Daemon(f"worker-{group}", worker_args(f"w{group}", ",".join(urls), group, folder), folder)
            for group in GROUPS
        ]

    def stop(self) -> None:
        for daemon in [*self.workers, *self.managers]:
            daemon.stop()

    def until(self, look: Callable[[], Any], what: str) -> Any:
        """Wait for it; a manager that has died is started again meanwhile."""

        def patiently() -> Any:
            for manager in self.managers:
                if manager.process.poll() is not None:
                    manager.stop()
                    manager.start()
            with suppress(RefusedError, UnreachableError):
                return look()
            return None

        return eventually(patiently, what, alive=self.workers)

    def land(self) -> None:
        """Another file of numbers, whole."""
        numbers = range(self.rows, self.rows + ROWS_A_FILE)
        hidden = self.folder / "incoming" / ".new"
        hidden.write_text("".join(json.dumps({"n": n}) + "\n" for n in numbers))
        hidden.rename(self.folder / "incoming" / f"{self.rows:06}.json")
        self.rows += ROWS_A_FILE

    def create(self, group: str) -> bool:
        """The task that copies all of them, a file a batch."""
        definition = {
            "source": {
                "format": "json",
                "schema": "n LONG",
                "options": {"path": str(self.folder / "incoming"), "maxFilesPerTrigger": 1},
            },
            "sink": {
                "format": "sql",
                "options": {"url": f"sqlite:///{self.folder}/sink.db", "table": "rows"},
            },
            "trigger": {"processing_time": "200 milliseconds"},
        }
        body = CreateTaskRequest(task=TASK, definition=msgspec.Raw(msgspec.json.encode(definition)))
        self.client.call("POST", path_of("groups", group, "tasks"), body, into=TaskResponse)
        return True

    def tasks(self, group: str) -> dict[str, TaskView]:
        found = self.client.get(path_of("groups", group, "tasks"), TaskListResponse).tasks
        return {task.task: task for task in found}

    def workers_are_there(self) -> bool:
        """Both groups have their worker, so that neither is unknown."""
        groups = [self.client.get(path_of("groups", group), msgspec.Raw) for group in GROUPS]
        return all(msgspec.json.decode(group)["members"] for group in groups)

    def copied(self) -> Counter[int]:
        """How often each number is in the table."""
        with closing(sqlite3.connect(self.folder / "sink.db")) as db, suppress(sqlite3.OperationalError):
            return Counter(n for (n,) in db.execute("SELECT n FROM rows"))
        return Counter()

    def transfer(self, name: str, source: str, target: str) -> TransferResponse:
        """Ask for it, again if the answer was lost, and see it done."""
        body = StartTransferRequest(source=source, target=target, tasks=(TASK,), id=name)
        self.until(
            lambda: self.client.call("POST", path_of("transfers"), body, into=TransferResponse), "it begins"
        )

        def over() -> TransferResponse | None:
            seen = self.client.get(path_of("transfers", name), TransferResponse)
            assert seen.step is not TransferStep.CANCELLED
            return seen if seen.step is TransferStep.DONE else None

        done: TransferResponse = self.until(over, f"transfer {name} is over")
        return done


@pytest.fixture
def herds(tmp_path: Path) -> Iterator[Herds]:
    with running() as postgres:
        herds = Herds(tmp_path, postgres)
        try:
            yield herds
        finally:
            herds.stop()


def goes_over(herds: Herds, name: str, source: str, target: str) -> int:
    """Has the task go over while rows come in, and sees all of them; returns its token."""
    herds.land()
    herds.transfer(name, source, target)
    herds.land()
    herds.until(lambda: len(herds.copied()) == herds.rows, f"all rows are copied after {name}")
    left = herds.until(lambda: [herds.tasks(source)], "the group is read")
    there: dict[str, TaskView] = herds.until(lambda: herds.tasks(target), "the group is read")
    assert left == [{}]
    return there[TASK].token


def test_a_kill_at_each_step_loses_no_row_and_writes_none_twice(herds: Herds) -> None:
    """Before and after each step became durable; the task runs in one group, under ever higher tokens."""
    herds.until(herds.workers_are_there, "both workers have joined")
    herds.until(lambda: herds.create("a"), "the task is there")
    herds.land()
    herds.until(lambda: len(herds.copied()) == herds.rows, "the first rows are copied")
    source, target = GROUPS
    tokens = [herds.until(lambda: herds.tasks("a"), "the group is read")[TASK].token]
    for step, moment in DEATHS:
        (herds.folder / "died").unlink(missing_ok=True)
        (herds.folder / "die_at").write_text(f"{step} {moment}")
        tokens.append(goes_over(herds, f"{step}-{moment}", source, target))
        assert (herds.folder / "died").exists(), f"nobody died {moment} {step}"
        source, target = target, source
    assert tokens == sorted(set(tokens))
    assert herds.copied() == dict.fromkeys(range(herds.rows), 1)
