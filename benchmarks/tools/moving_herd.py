"""A manager and real workers as processes, whose tasks are made to move, and how long these stand still."""

from __future__ import annotations

import signal
from collections import Counter
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from benchmarks.tools.moved_queries import CONF, TASKS, definition
from benchmarks.tools.standstill import watching
from cli.client.admin_client import path_of
from definition.sinks.sql import FENCE_TABLE
from protocol.messages.base import Response
from tests.acceptance.group_view import GROUP, GroupView
from tests.acceptance.processes import Daemon, Manager
from tests.acceptance.waiting import eventually
from worker.sinks.fence_table import FenceTable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import ExitStack
    from pathlib import Path

    from benchmarks.tools.standstill import Gap

PATIENCE_S: Final = 600.0


class MovingHerd:
    """Workers with default settings, by their names, and the tasks that they share."""

    def __init__(self, stack: ExitStack, folder: Path, database: str, remote: str | None = None) -> None:
        """A manager, and no worker yet.

        Args:
            stack: ends all of it.
            folder: for what its processes write.
            database: a URL of PostgreSQL's that workers and this process understand.
            remote: the Spark Connect server that all workers use; without it each has a Spark of its own.
        """
        folder.mkdir()
        conf = [word for key, value in CONF.items() for word in ("--spark-conf", f"{key}={value}")]
        self._spark = conf if remote is None else ["--spark-remote", remote]
        self._stack = stack
        self._folder = folder
        self._database = database
        self._manager = Manager(folder)
        stack.callback(self._manager.stop)
        self._view = GroupView(self._manager.client())
        self._workers: dict[str, Daemon] = {}
        _create_fence(database)
        url = sa.make_url(database).set(drivername="postgresql").render_as_string(hide_password=False)
        self._watch = stack.enter_context(watching(url, FENCE_TABLE))

    def start(self, name: str, *flags: str) -> None:
        """One more worker, or a new one in the place of one that is gone; `flags` are added to its own."""
        args = ["worker", "--manager", self._manager.url, "--group", GROUP, "--client-id", name]
        args += ["--checkpoint-root", str(self._folder / "checkpoints")]
        self._workers[name] = worker = Daemon(name, [*args, *self._spark, *flags], self._folder)
        self._stack.callback(worker.stop)

    def create_tasks(self, tasks: Sequence[str] = TASKS) -> None:
        """Those of them."""
        for task in tasks:
            self._view.create(task, definition(task, self._database))

    def drain(self, name: str, *, undo: bool = False) -> None:
        """Have its tasks moved away; or have it take some again, with a JVM that has run queries."""
        path = path_of("groups", GROUP, "members", self._view.workers()[name], "drain")
        self._manager.client().call("DELETE" if undo else "POST", path, into=Response)

    def stop(self, name: str) -> None:
        """In order, as an operator does."""
        self._workers.pop(name).terminate()

    def kill(self, name: str) -> None:
        """SIGKILL."""
        self._workers.pop(name).kill()

    def freeze(self, name: str) -> Daemon:
        """SIGSTOP; what is frozen is to be killed when it was waited for."""
        worker = self._workers.pop(name)
        worker.process.send_signal(signal.SIGSTOP)
        return worker

    def settle(self, busy: int) -> list[Gap]:
        """Until so many workers share the tasks evenly and each has written a batch; the gaps meanwhile."""
        daemons = [self._manager, *self._workers.values()]
        eventually(lambda: self._is_settled(busy), "the herd settles", alive=daemons, within_s=PATIENCE_S)
        return self._watch.taken()

    def _is_settled(self, busy: int) -> bool:
        tasks = self._view.tasks()
        shares = Counter(task.owner for task in tasks.values())
        return (
            None not in shares
            and len(shares) == busy
            and max(shares.values()) - min(shares.values()) <= 1
            and self._view.settled(len(self._workers))
            and self._watch.tokens() == {name: task.token for name, task in tasks.items()}
        )


def _create_fence(database: str) -> None:
    """The workers' own table, so that it can be looked at from the beginning."""
    engine = sa.create_engine(database)
    with engine.begin() as connection:
        FenceTable().create(connection)
    engine.dispose()
