"""Tasks over the flights that are stopped, reset and resumed through the command line, as processes."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from cli.client.admin_client import path_of
from cli.demo.data import flights
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.tasks import ResetTaskRequest, ResetTaskResponse, TaskReset, TaskStatusResponse
from protocol.states import TaskState
from tests.acceptance.group_view import GROUP, GroupView
from tests.acceptance.processes import sparkherd
from tests.acceptance.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.acceptance.processes import Herd

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(1200)]

ROWS_A_FILE = 500
ENTRYPOINT = """
from pathlib import Path
import sqlalchemy as sa

def copy(context):
    engine = sa.create_engine(context.options["url"])
    context.fence.claim(engine)
    hold, told = Path(context.options["hold"]), Path(context.options["told"])

    def put(batch, batch_id):
        rows = [row.asDict() for row in batch.collect()]
        if hold.exists():
            told.write_text("waits")
            hold.read_text()
        try:
            with engine.begin() as connection:
                if context.fence.guard(connection):
                    connection.execute(sa.text("INSERT INTO copied VALUES (:n, :carrier)"), rows)
        except Exception as error:
            told.write_text(f"refused: {error}")
            raise

    reader = context.spark.readStream.schema("n LONG, carrier STRING").option("maxFilesPerTrigger", 1)
    return context.foreach_batch(reader.json(context.options["path"]), put)
"""
"""Copies flights as the SQL sink does; while there is a pipe `hold`, each batch waits for a word from it."""


@dataclass(frozen=True)
class Hold:
    """Where batches wait, and what became of the last one that did."""

    pipe: Path
    told: Path

    def tells(self, what: str) -> bool:
        """Whether a batch has come so far."""
        return self.told.exists() and self.told.read_text().startswith(what)

    def let_go(self) -> None:
        """No batch waits any more."""
        self.pipe.write_text("go on")
        self.pipe.unlink()


class Play:
    """A herd whose tasks copy the flights, numbered, from a folder into tables."""

    def __init__(self, herd: Herd) -> None:
        self.herd = herd
        self.view = GroupView(herd)
        self.incoming = herd.folder / "incoming"
        self.incoming.mkdir()
        self.rows = 0

    def land(self, files: int) -> None:
        """More flights arrive, a file at a time, each whole."""
        carriers = [flight["carrier"] for flight in flights(self.rows + files * ROWS_A_FILE)]
        for _ in range(files):
            numbers = range(self.rows, self.rows + ROWS_A_FILE)
            lines = "".join(json.dumps({"n": n, "carrier": carriers[n]}) + "\n" for n in numbers)
            hidden = self.incoming / ".new"
            hidden.write_text(lines)
            at = 1_400_000_000 + self.rows
            os.utime(hidden, (at, at))
            hidden.rename(self.incoming / f"{self.rows:06}.json")
            self.rows += ROWS_A_FILE

    def create(self, table: str, **options: Any) -> None:
        """A task that copies into `table`, a file a batch."""
        source = {"path": str(self.incoming), "maxFilesPerTrigger": 1}
        sink = {"url": f"sqlite:///{self.database}", "table": table, **options}
        definition = {
            "source": {"format": "json", "schema": "n LONG, carrier STRING", "options": source},
            "sink": {"format": "sql", "options": sink},
            "trigger": {"processing_time": "200 milliseconds"},
        }
        self.view.create(table, definition)

    @property
    def database(self) -> Path:
        return self.herd.folder / "sink.db"

    def copies(self, table: str) -> list[int]:
        """How often each flight is in a table, by its number."""
        with closing(sqlite3.connect(self.database)) as db, suppress(sqlite3.OperationalError):
            numbers = Counter(n for (n,) in db.execute(f"SELECT n FROM {table}"))
            return [numbers[n] for n in range(self.rows)]
        return []

    def holds(self, table: str, copies: int) -> None:
        """Wait until a table has every flight that often, and see that it never has one more often."""

        def look() -> bool:
            found = self.copies(table)
            assert max(found, default=0) <= copies
            return found == [copies] * self.rows

        eventually(look, f"{table} has every flight {copies} times", alive=self.herd.daemons)

    def create_held(self) -> Hold:
        """A task that copies into the table `copied` by an entry point, each batch of which can be held."""
        folder = self.herd.folder
        (folder / "held.py").write_text(ENTRYPOINT)
        with closing(sqlite3.connect(self.database)) as db, db:
            db.execute("CREATE TABLE copied (n INTEGER, carrier TEXT)")
        hold = Hold(folder / "hold", folder / "told")
        os.mkfifo(hold.pipe)
        options = {"url": f"sqlite:///{self.database}", "path": str(self.incoming)}
        options |= {"hold": str(hold.pipe), "told": str(hold.told)}
        self.view.create("copied", {"entrypoint": "held:copy", "options": options, "fenced": True})
        return hold

    def do(self, verb: str, *args: str) -> tuple[int, str]:
        """`sparkherd tasks VERB`: exit code and what it said."""
        where = ("--group", GROUP, "--manager", self.herd.manager.url)
        done = sparkherd("tasks", verb, *where, *args, cwd=self.herd.folder)
        return done.returncode, done.stdout + done.stderr

    def stop(self, *tasks: str) -> None:
        """Stop tasks; nobody runs them any more."""
        code, said = self.do("stop", *tasks, "--wait")
        assert code == 0, said
        assert all(map(self.is_stopped, tasks))

    def is_stopped(self, task: str) -> bool:
        found = self.view.tasks()[task]
        return found.owner is None and found.state == TaskState.STOPPED.value

    def reset(self, task: str) -> int:
        """Reset a task; returns the token that fences what was before."""
        code, said = self.do("reset", task, "--yes", "--json")
        assert code == 0, said
        return int(json.loads(said)["token"])

    def empty(self, table: str, token: int) -> None:
        """Empty a table and raise its task's fence in one transaction, as docs/tasks.md has it."""
        with closing(sqlite3.connect(self.database)) as db, db:
            where = f"group_id = '{GROUP}' AND task = '{table}'"
            db.execute(f"UPDATE sparkherd_fence SET token = {token} WHERE {where}")
            db.execute(f"DELETE FROM {table}")


@pytest.fixture
def play(herd: Herd) -> Play:
    play = Play(herd)
    play.land(files=4)
    return play


def _members(view: GroupView) -> set[str]:
    with suppress(RefusedError):  # no such group before the first join
        return set(view.workers())
    return set()


def test_tasks_that_begin_anew(herd: Herd, play: Play) -> None:
    """What is read again is twice in an appended table unless it was emptied, and once in an upserted one."""
    herd.start_worker("anna")
    eventually(lambda: _members(play.view) == {"anna"}, "anna is a member", alive=herd.daemons)
    tables: dict[str, dict[str, Any]] = {
        "appended": {},
        "emptied": {},
        "upserted": {"mode": "upsert", "key": ["n"]},
    }
    for table, options in tables.items():
        play.create(table, **options)
    for table in tables:
        play.holds(table, 1)
    code, said = play.do("reset", "appended", "--yes")
    assert (code, "INVALID_REQUEST: target: task appended is to be RUNNING" in said) == (1, True)
    before = play.view.tasks()
    play.stop(*tables)
    told = {table: play.reset(table) for table in tables}
    play.empty("emptied", told["emptied"])
    assert play.do("resume", *tables)[0] == 0
    play.land(files=1)
    play.holds("emptied", 1)
    play.holds("upserted", 1)
    old = [2] * (play.rows - ROWS_A_FILE) + [1] * ROWS_A_FILE
    eventually(lambda: play.copies("appended") == old, "all is appended again", alive=herd.daemons)
    after = play.view.tasks()
    for table in tables:
        assert before[table].token < told[table] < after[table].token
        assert (before[table].reset, after[table].reset) == (None, TaskReset(told[table]))
        assert (herd.folder / "checkpoints" / GROUP / f"{table}~{told[table]}").is_dir()
    assert (
        f"begun anew (reset {told['appended']}) at the earliest offsets" in play.do("status", "appended")[1]
    )


def test_an_owner_that_was_frozen_through_a_reset(herd: Herd, play: Play) -> None:
    """Not under its hands; what it writes once it is thawed, into a table emptied meanwhile, is refused."""
    frozen = herd.start_worker("anna", "--session-timeout-ms", "15000", "--allow-entrypoint", "held")
    eventually(lambda: _members(play.view) == {"anna"}, "anna is a member", alive=herd.daemons)
    hold = play.create_held()
    eventually(lambda: hold.tells("waits"), "anna is in a batch", alive=herd.daemons)
    frozen.process.send_signal(signal.SIGSTOP)
    client, task = herd.manager.client(), path_of("groups", GROUP, "tasks", "copied")
    client.call("PUT", f"{task}/stop", into=TaskStatusResponse)
    with pytest.raises(RefusedError, match="task copied is still being stopped") as refused:
        client.call("POST", f"{task}/reset", ResetTaskRequest(), into=ResetTaskResponse)
    assert refused.value.failure.code is ErrorCode.REBALANCE_IN_PROGRESS
    eventually(lambda: play.is_stopped("copied"), "anna's session is over", alive=herd.daemons)
    play.empty("copied", play.reset("copied"))
    frozen.process.send_signal(signal.SIGCONT)
    hold.let_go()
    eventually(lambda: hold.tells("refused"), "anna's batch is refused", alive=herd.daemons)
    assert play.copies("copied") == [0] * play.rows
    assert play.do("resume", "copied")[0] == 0
    play.holds("copied", 1)
