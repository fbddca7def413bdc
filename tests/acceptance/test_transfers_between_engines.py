"""Running tasks go to groups with another kind of Spark: a JVM a task, pools of one, a Connect server."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from cli.client.admin_client import path_of
from protocol.errors import RefusedError
from protocol.messages.base import Response
from protocol.messages.groups import DescribeGroupResponse
from protocol.messages.tasks import CreateTaskRequest, TaskResponse
from protocol.messages.transfers import StartTransferRequest, TransferResponse
from protocol.states import TaskState, TransferStep
from tests import connect_server
from tests.acceptance.waiting import eventually
from worker.spark.connect.sessions import SessionClosedError, asking, end_session, open_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.acceptance.processes import Herd
    from tests.connect_server import ConnectServer

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(1200)]

ROWS_A_FILE = 20
TAKEN = "took over a query as it runs"
ENDED = "stopped a query that a former owner left"


class Flow:
    """Numbers that arrive in files, tasks that copy them all, and the groups that the tasks are in."""

    def __init__(self, herd: Herd) -> None:
        self.herd = herd
        self.client = herd.manager.client()
        self.rows = 0
        self._folder = herd.folder / "incoming"
        self._folder.mkdir()

    def land(self, files: int = 1) -> None:
        """More numbers, a file at once."""
        for _ in range(files):
            numbers = range(self.rows, self.rows + ROWS_A_FILE)
            hidden = self._folder / ".new"
            hidden.write_text("".join(json.dumps({"n": n}) + "\n" for n in numbers))
            hidden.rename(self._folder / f"{self.rows:06}.json")
            self.rows += ROWS_A_FILE

    def create(self, group: str, task: str, table: str | None = None, **more: Any) -> None:
        """A task that copies all numbers into a table, a file a batch."""
        options = {"path": str(self._folder), "maxFilesPerTrigger": 1}
        sink = {"url": f"sqlite:///{self.herd.folder}/sink.db", "table": table or task}
        definition = {
            "source": {"format": "json", "schema": "n LONG", "options": options},
            "sink": {"format": "sql", "options": sink},
            "trigger": {"processing_time": "200 milliseconds"},
            **more,
        }
        body = CreateTaskRequest(task=task, definition=msgspec.Raw(msgspec.json.encode(definition)))
        self.client.call("POST", path_of("groups", group, "tasks"), body, into=TaskResponse)

    def task(self, group: str, task: str) -> TaskResponse:
        return self.client.get(path_of("groups", group, "tasks", task), TaskResponse)

    def has_workers(self, group: str, count: int = 1) -> bool:
        with suppress(RefusedError):  # no such group before the first join
            found = self.client.get(path_of("groups", group), DescribeGroupResponse)
            return len(found.members) == count
        return False

    def copied(self, table: str) -> Counter[int]:
        """How often each number is in a table."""
        with closing(sqlite3.connect(self.herd.folder / "sink.db")) as db, suppress(sqlite3.OperationalError):
            return Counter(n for (n,) in db.execute(f"SELECT n FROM {table}"))
        return Counter()

    def until(self, look: Callable[[], Any], what: str) -> None:
        eventually(look, what, alive=self.herd.daemons)

    def until_all_is_copied(self, *tables: str) -> None:
        """With some that have just come; each number is there once."""
        self.land()
        for table in tables:
            self.until(lambda table=table: len(self.copied(table)) == self.rows, f"all is in {table}")  # type: ignore[misc]
            assert self.copied(table) == dict.fromkeys(range(self.rows), 1)

    def transfer(self, source: str, target: str, *tasks: str, **rename: str) -> None:
        """While rows come in, and until it is over."""
        body = StartTransferRequest(source=source, target=target, tasks=tasks, rename=rename)
        self.land()
        begun = self.client.call("POST", path_of("transfers"), body, into=TransferResponse)
        self.land()

        def is_over() -> bool:
            seen = self.client.get(path_of("transfers", str(begun.id)), TransferResponse)
            assert seen.step is not TransferStep.CANCELLED, seen.cause
            return seen.step is TransferStep.DONE

        self.until(is_over, f"the transfer to {target} is over")


@pytest.fixture
def flow(herd: Herd) -> Flow:
    return Flow(herd)


def test_a_task_goes_from_a_jvm_of_its_own_to_a_pool_of_a_shared_one(herd: Herd, flow: Flow) -> None:
    """And back: two tasks at once, of which one has a weight in the pools, and none loses a row."""
    anna = herd.start_worker("anna", "--isolate", group="alone")
    berta = herd.start_worker("berta", group="shared")
    flow.until(lambda: flow.has_workers("alone") and flow.has_workers("shared"), "both groups have a worker")
    flow.create("alone", "heavy", scheduling={"weight": 3, "min_share": 1})
    flow.create("alone", "light")
    flow.until_all_is_copied("heavy", "light")
    tokens = [flow.task("alone", "heavy").token]
    flow.transfer("alone", "shared", "heavy", "light", light="thin")
    flow.until_all_is_copied("heavy", "light")
    tokens.append(flow.task("shared", "heavy").token)
    assert flow.task("shared", "thin").state == TaskState.RUNNING.value
    flow.transfer("shared", "alone", "heavy", "thin")
    flow.until_all_is_copied("heavy", "light")
    tokens.append(flow.task("alone", "heavy").token)
    assert flow.task("alone", "thin").state == TaskState.RUNNING.value
    assert tokens == sorted(set(tokens))
    for worker in (anna, berta):
        assert "state=FAILED" not in worker.log()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    folder = tmp_path_factory.mktemp("server")
    with connect_server.running(folder, folder) as server:
        yield server


def session_of(herd: Herd, entry: str) -> str:
    """Which session is noted down beside a checkpoint."""
    folder, _, name = entry.rpartition("/")
    [note] = (herd.folder / "checkpoints" / folder).glob(f"{name}~session/part-*")
    return str(json.loads(note.read_text())["session"])


def run_in(server: ConnectServer, session_id: str) -> str | None:
    """Spark's id of the run of a session's query; None if nothing runs there."""
    with suppress(SessionClosedError), asking():
        session = open_session(server.url, session_id)
        try:
            return str(session.streams.active[0].runId) if session.streams.active else None
        finally:
            end_session(session, release=False)
    return None


def run_of(herd: Herd, server: ConnectServer, entry: str) -> str | None:
    """What runs in the session that is noted down beside a checkpoint; None if nothing does."""
    with suppress(ValueError, OSError):  # no note, or one that is being replaced
        return run_in(server, session_of(herd, entry))
    return None


@pytest.mark.by_hand
def test_behind_a_server_a_query_is_ended_and_not_adopted_by_the_other_group(
    herd: Herd, flow: Flow, server: ConnectServer
) -> None:
    """Its owner was killed and it ran on; what runs there afterwards is left alone by the first group.

    A later task of its name there has a higher token, so its group looks for what it could end.
    """
    anna = herd.start_worker("anna", group="one", remote=server.url)
    berta = herd.start_worker("berta", group="two", remote=server.url)
    flow.until(lambda: flow.has_workers("one") and flow.has_workers("two"), "both groups have a worker")
    flow.create("one", "copy")
    flow.until_all_is_copied("copy")
    former = session_of(herd, "one/copy")
    before = run_in(server, former)
    herd.workers.pop("anna").kill()
    flow.until_all_is_copied("copy")
    assert run_in(server, former) == before is not None, "it did not run on without its owner"
    flow.transfer("one", "two", "copy", copy="copied")
    flow.until(lambda: flow.task("two", "copied").state == TaskState.RUNNING.value, "it runs there")
    flow.until_all_is_copied("copy")
    run = run_of(herd, server, "one/copy")
    assert run not in {None, before}
    assert TAKEN not in berta.log()
    assert run_in(server, former) is None  # stopped, or refused by the sink between its fence and the stop
    carla = herd.start_worker("carla", "--rebalance-timeout-ms", "10000", group="one", remote=server.url)
    flow.until(lambda: flow.has_workers("one"), "the first group has a worker again")
    flow.create("one", "copy", table="later")
    flow.until_all_is_copied("copy", "later")
    assert flow.task("one", "copy").token > flow.task("two", "copied").token
    assert run_of(herd, server, "one/copy") == run
    assert ENDED not in carla.log()
    flow.client.call("DELETE", path_of("groups", "one", "tasks", "copy"), into=Response)
    flow.transfer("two", "one", "copied", copied="copy")
    flow.until_all_is_copied("copy")
    assert run_of(herd, server, "one/copy") not in {None, before, run}
    assert TAKEN not in carla.log()
    assert "state=FAILED" not in "".join(worker.log() for worker in (anna, berta, carla))
