"""Workers on Spark Connect servers: one is killed or frozen, and its queries go on without it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cli.client.admin_client import path_of
from protocol.errors import RefusedError
from protocol.messages.base import Response
from tests import connect_server
from tests.acceptance.group_view import GROUP, GroupView, ticking
from tests.acceptance.processes import Manager
from tests.acceptance.waiting import eventually
from worker.spark.connect.sessions import SessionClosedError, asking, end_session, open_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.connect.session import SparkSession

    from tests.acceptance.processes import Herd
    from tests.connect_server import ConnectServer

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(1200)]

MODULE = Path(__file__).parents[1] / "integration" / "spark" / "connect" / "tested_on_server.py"
FILES, ROWS = 12, 20
TAKEN = "took over a query as it runs"
SLOW = "SELECT id, reflect('java.lang.Thread', 'sleep', 10L) AS never FROM source"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ConnectServer]]:
    """Two, whose Python finds the module of entry points."""
    folders = [tmp_path_factory.mktemp("server") for _ in range(2)]
    with (
        connect_server.running(folders[0], MODULE.parent) as first,
        connect_server.running(folders[1], MODULE.parent) as second,
    ):
        yield [first, second]


class Flow:
    """Two tasks over the same files: one into the sink `sql`, one through an entry point's own fence."""

    def __init__(self, herd: Herd) -> None:
        self.stage = herd.folder / "stage"
        self.stage.mkdir()
        for name in ("reached", "go_on"):
            os.mkfifo(self.stage / name)
        self._folder = herd.folder / "in"
        self._folder.mkdir()
        self._database = herd.folder / "sink.db"
        self.everything: list[int] = []
        for _ in range(FILES):
            self.add()

    def add(self) -> None:
        """One more file, there at once."""
        ids = range(len(self.everything), len(self.everything) + ROWS)
        hidden = self._folder / ".new"
        hidden.write_text("".join(json.dumps({"id": number}) + "\n" for number in ids))
        hidden.rename(self._folder / f"{len(self.everything):06}.json")
        self.everything += ids

    @property
    def _url(self) -> str:
        return f"sqlite:///{self._database}"

    def plain(self) -> dict[str, Any]:
        """A batch a file, slow enough to be killed in."""
        options = {"path": str(self._folder), "maxFilesPerTrigger": 1}
        return {
            "source": {"format": "json", "schema": "id LONG", "options": options},
            "sql": SLOW,
            "sink": {"format": "sql", "options": {"url": self._url, "table": "plain"}},
        }

    def held(self) -> dict[str, Any]:
        """Under the first owner, batch 1 waits inside for the test."""
        options = {"path": str(self._folder), "url": self._url, "stage": str(self.stage), "hold": 1}
        return {"entrypoint": "tested_on_server:guarded", "options": options, "fenced": True}

    def ids(self, table: str) -> list[int]:
        """What is in the sink, twice what is there twice."""
        with closing(sqlite3.connect(self._database)) as connection, suppress(sqlite3.OperationalError):
            return sorted(row[0] for row in connection.execute(f"SELECT id FROM {table}"))
        return []

    def is_complete(self) -> bool:
        """Whether every row has arrived."""
        return set(self.ids("plain")) == set(self.ids("flights")) == set(self.everything)


def _present(group: GroupView, members: int) -> bool:
    with suppress(RefusedError):  # no such group before the first join
        return len(group.workers()) == members
    return False


def test_a_killed_worker_s_queries_are_fenced(herd: Herd, servers: list[ConnectServer]) -> None:
    """They go on at their server, out of the reach of the next owner on another one: the sinks refuse."""
    shutil.copy(MODULE, herd.folder)
    flow, group = Flow(herd), GroupView(herd)
    entrypoints = ("--allow-entrypoint", "tested_on_server")
    anna = herd.start_worker("anna", *entrypoints, remote=servers[0].url)
    eventually(lambda: _present(group, 1), "anna is a member", alive=herd.daemons)
    group.create("held", flow.held())
    group.create("plain", flow.plain())
    assert (flow.stage / "reached").read_text() == "here"
    eventually(lambda: len(flow.ids("plain")) >= ROWS, "batches are done", alive=herd.daemons)
    orphan = _session(herd, "plain", servers[0])
    anna.kill()
    del herd.workers["anna"]
    herd.start_worker("berta", *entrypoints, remote=servers[1].url)
    eventually(flow.is_complete, "berta has done all of it", alive=herd.daemons)
    (flow.stage / "go_on").write_text("go on")
    eventually(lambda: _refused(servers[0], "held"), "the orphan's write is refused", alive=herd.daemons)
    flow.add()
    eventually(lambda: not _is_running(orphan), "the other orphan has ended", alive=herd.daemons)
    eventually(flow.is_complete, "berta has gone on", alive=herd.daemons)
    assert flow.ids("flights") == flow.ids("plain") == flow.everything
    end_session(orphan, release=False)


def _refused(server: ConnectServer, task: str) -> bool:
    lines = server.log.read_text(errors="replace").splitlines()
    return any("write refused" in line and "by=fence" in line and f"task={task} " in line for line in lines)


def test_a_frozen_worker_s_query_is_taken_over(herd: Herd, servers: list[ConnectServer]) -> None:
    """The next owner, on the same server, has it as it runs; thawed, the first one does no harm."""
    flow, group = Flow(herd), GroupView(herd)
    anna = herd.start_worker("anna", "--session-timeout-ms", "15000", remote=servers[1].url)
    eventually(lambda: _present(group, 1), "anna is a member", alive=herd.daemons)
    group.create("plain", flow.plain())
    eventually(lambda: len(flow.ids("plain")) >= ROWS, "batches are done", alive=herd.daemons)
    first, run = group.tasks()["plain"].token, _run(herd, servers[1])
    berta = herd.start_worker("berta", remote=servers[1].url)
    eventually(lambda: _present(group, 2), "berta is a member", alive=herd.daemons)
    anna.process.send_signal(signal.SIGSTOP)
    eventually(lambda: group.tasks()["plain"].token > first, "berta has the task", alive=herd.daemons)
    eventually(lambda: TAKEN in berta.log(), "it has the query as it runs", alive=herd.daemons)
    anna.process.send_signal(signal.SIGCONT)
    eventually(lambda: group.settled(2), "anna is back, and does nothing of it", alive=herd.daemons)
    flow.add()
    eventually(lambda: set(flow.ids("plain")) == set(flow.everything), "all is done", alive=herd.daemons)
    assert flow.ids("plain") == flow.everything
    assert _run(herd, servers[1]) == run


def test_a_killed_worker_costs_its_query_nothing(herd: Herd, servers: list[ConnectServer]) -> None:
    """It goes on while nobody has it; one worker after another takes it over, the same run of it."""
    flow, group = Flow(herd), GroupView(herd)
    herd.start_worker("anna", remote=servers[1].url)
    eventually(lambda: _present(group, 1), "anna is a member", alive=herd.daemons)
    group.create("plain", flow.plain())
    eventually(lambda: len(flow.ids("plain")) >= ROWS, "batches are done", alive=herd.daemons)
    run = _run(herd, servers[1])
    for former, name in (("anna", "berta"), ("berta", "carla")):
        token = group.tasks()["plain"].token
        herd.workers.pop(former).kill()
        flow.add()
        eventually(lambda: set(flow.ids("plain")) == set(flow.everything), "it goes on", alive=herd.daemons)
        heir = herd.start_worker(name, remote=servers[1].url)
        eventually(lambda heir=heir: TAKEN in heir.log(), "it has a new owner", alive=herd.daemons)  # type: ignore[misc]
        assert group.tasks()["plain"].token > token
        flow.add()
        eventually(lambda: set(flow.ids("plain")) == set(flow.everything), "it goes on", alive=herd.daemons)
    assert flow.ids("plain") == flow.everything
    assert _run(herd, servers[1]) == run
    group.delete("plain")
    eventually(lambda: not _is_running(_session(herd, "plain", servers[1])), "it ends", alive=herd.daemons)


def _run(herd: Herd, server: ConnectServer) -> str:
    """Spark's id of the run of the query of the task `plain`; another start would have another one."""
    session = _session(herd, "plain", server)
    try:
        [query] = session.streams.active
        return str(query.runId)
    finally:
        end_session(session, release=False)


@pytest.mark.by_hand
def test_a_worker_whose_task_moves_away_costs_its_query_nothing(
    herd: Herd, servers: list[ConnectServer]
) -> None:
    """Drained or ended: the same run goes on under the next worker on the server, and the first one is free.

    A worker on another server starts a query of its own. One that ends and has nobody to follow it stops its
    query.
    """
    flow, group = Flow(herd), GroupView(herd)
    anna = herd.start_worker("anna", remote=servers[0].url)
    eventually(lambda: _present(group, 1), "anna is a member", alive=herd.daemons)
    group.create("plain", flow.plain())
    eventually(lambda: len(flow.ids("plain")) >= ROWS, "batches are done", alive=herd.daemons)
    run = _run(herd, servers[0])
    berta = herd.start_worker("berta", remote=servers[0].url)
    eventually(lambda: _present(group, 2), "berta is a member", alive=herd.daemons)
    _drain(herd, group, "anna")
    eventually(lambda: TAKEN in berta.log(), "berta has it", alive=herd.daemons)
    assert _goes_on(herd, flow)
    assert _run(herd, servers[0]) == run
    _drain(herd, group, "anna", undo=True)
    herd.workers.pop("berta")
    assert berta.terminate() == 0
    eventually(lambda: TAKEN in anna.log(), "anna has it again", alive=herd.daemons)
    assert _goes_on(herd, flow)
    assert _run(herd, servers[0]) == run
    left = _session(herd, "plain", servers[0])
    herd.start_worker("carla", remote=servers[1].url)
    eventually(lambda: _present(group, 2), "carla is a member", alive=herd.daemons)
    _drain(herd, group, "anna")
    eventually(lambda: _is_on(herd, servers[1]), "carla has one of its own", alive=herd.daemons)
    assert _goes_on(herd, flow)
    eventually(lambda: not _is_running(left), "the first one is over", alive=herd.daemons)
    end_session(left, release=False)
    assert herd.workers.pop("anna").terminate() == 0
    assert herd.workers.pop("carla").terminate() == 0
    assert not _is_on(herd, servers[1])
    assert flow.ids("plain") == flow.everything


def _drain(herd: Herd, group: GroupView, worker: str, *, undo: bool = False) -> None:
    path = path_of("groups", GROUP, "members", group.workers()[worker], "drain")
    herd.manager.client().call("DELETE" if undo else "POST", path, into=Response)


def _goes_on(herd: Herd, flow: Flow) -> bool:
    """All rows are there, once, with some that have just come."""
    flow.add()
    eventually(lambda: set(flow.ids("plain")) == set(flow.everything), "it goes on", alive=herd.daemons)
    return flow.ids("plain") == flow.everything


def _is_on(herd: Herd, server: ConnectServer) -> bool:
    """Whether the query of the task runs at a server, by the session that is noted down."""
    with suppress(SessionClosedError, ValueError, OSError), asking():
        return bool(_run(herd, server))
    return False


@pytest.mark.by_hand
def test_the_query_of_a_deleted_task_is_ended(herd: Herd, servers: list[ConnectServer]) -> None:
    """Its worker was killed, and nobody will own it; any worker of the group on its server finds it there.

    What another manager's group of the same name runs there, out of the same checkpoint root, goes on.
    """
    (herd.folder / "other").mkdir()
    other = Manager(herd.folder / "other")
    try:
        _delete_what_nobody_has(herd, servers[0], other)
    finally:
        other.stop()


def _delete_what_nobody_has(herd: Herd, server: ConnectServer, other: Manager) -> None:
    group, theirs = GroupView(herd), GroupView(other.client())
    quick = ("--rebalance-timeout-ms", "10000")
    anna = herd.start_worker("anna", *quick, remote=server.url)
    carla = herd.start_worker("carla", manager=other.url, remote=server.url)
    group.create("gone", ticking(herd.folder, "gone"))
    theirs.create("theirs", ticking(herd.folder, "theirs"))
    eventually(lambda: _runs(group) and _runs(theirs), "both run", alive=herd.daemons)
    anna.kill()
    del herd.workers["anna"]
    group.delete("gone")
    gone, kept = (_session(herd, task, server) for task in ("gone", "theirs"))
    assert _is_running(gone)
    berta = herd.start_worker("berta", *quick, remote=server.url)
    eventually(lambda: not _is_running(gone), "the query is ended", alive=herd.daemons)
    told = "stopped a query that a former owner left"
    eventually(lambda: told in berta.log(), "berta says so", alive=herd.daemons)
    assert _is_running(kept)
    assert "former owner" not in carla.log()
    for session in (gone, kept):
        end_session(session, release=False)


def _runs(group: GroupView) -> bool:
    return _present(group, 1) and group.settled(1)


def _session(herd: Herd, task: str, server: ConnectServer) -> SparkSession:
    """The one that the task's query runs in, as its owner has noted it down."""
    [entry] = (herd.folder / "checkpoints" / "herd" / f"{task}~session").glob("part-*")
    return open_session(server.url, json.loads(entry.read_text())["session"])


def _is_running(session: SparkSession) -> bool:
    try:
        with asking():
            return bool(session.streams.active)
    except SessionClosedError:
        return False
