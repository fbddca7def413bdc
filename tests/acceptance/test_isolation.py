"""Workers and runs whose tasks have a JVM each."""

from __future__ import annotations

import json
import os
import select
import signal
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cli.demo.herd import SPARK_CONF
from protocol.errors import RefusedError
from protocol.states import TaskState
from tests.acceptance.group_view import GROUP, GroupView, ticking
from tests.acceptance.processes import sparkherd
from tests.acceptance.waiting import eventually
from tests.integration.spark.isolation.conftest import jvm_below, left_of

if TYPE_CHECKING:
    from tests.acceptance.processes import Daemon, Herd

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(1200)]

TASKS = ("one", "two")
KILLED = "cause='the JVM of this task was killed by signal 9"


def process_of(worker: Daemon, task: str) -> int:
    """The process of a task, by what it is called in a list of processes."""
    for path in Path(f"/proc/{worker.process.pid}/task").glob("*/children"):
        for pid in path.read_text().split():
            if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[-2] == f"{GROUP}/{task}".encode():
                return int(pid)
    raise AssertionError(f"no process of {task}")


def numbers(folder: Path, table: str) -> list[int]:
    """What a task has written of those that it counts, in their order."""
    with closing(sqlite3.connect(folder / "sink.db")) as connection:
        return [row[0] for row in connection.execute(f"SELECT value FROM {table} ORDER BY value")]


def restarts(worker: Daemon, task: str) -> list[str]:
    """What the worker's log has of the task's JVM and its end."""
    lines = [line for line in worker.log().splitlines() if f"task={task} " in line and KILLED in line]
    return [line for line in lines if "state=RESTARTING" in line]


def test_one_jvm_of_a_worker_dies_and_then_the_worker(herd: Herd) -> None:
    """The other task goes on; nothing is lost or written twice, and nothing outlives the worker."""
    worker, group = herd.start_worker("anna", "--isolate"), GroupView(herd)
    eventually(lambda: _present(group), "the worker is a member", alive=herd.daemons)
    for task in TASKS:
        group.create(task, ticking(herd.folder, task))
    eventually(lambda: group.settled(1), "both run", alive=herd.daemons)
    before = group.tasks()
    os.kill(jvm_below(process_of(worker, "one")), signal.SIGKILL)
    eventually(lambda: restarts(worker, "one"), "its death is a failure", alive=herd.daemons)
    assert not restarts(worker, "two")
    later = group.tasks()["two"].batch_id or 0
    eventually(lambda: (group.tasks()["two"].batch_id or 0) > later, "the other goes on", alive=herd.daemons)
    eventually(
        lambda: group.settled(1) and (group.tasks()["one"].batch_id or 0) > (before["one"].batch_id or 0),
        "it goes on where it was",
        alive=herd.daemons,
    )
    after = group.tasks()
    assert [after[task].token for task in TASKS] == [before[task].token for task in TASKS]
    assert list(group.workers()) == ["anna"]
    pids = [process_of(worker, task) for task in TASKS]
    ends = [os.pidfd_open(each) for pid in pids for each in (pid, jvm_below(pid))]
    worker.kill()
    for end in ends:
        assert select.select([end], [], [], 400)[0] == [end]
        os.close(end)
    eventually(lambda: not any(map(left_of, pids)), "nothing is left", alive=[herd.manager])
    for task in TASKS:
        written = numbers(herd.folder, task)
        assert written == list(range(len(written)))
        assert written


def _present(group: GroupView) -> bool:
    with suppress(RefusedError):  # no such group before the first join
        return bool(group.workers())
    return False


def test_a_run_with_a_jvm_for_each_task(tmp_path: Path) -> None:
    """To its end, with whole rows; a task without memory is FAILED and says so, and is the only one."""
    for folder, huge in (("small", False), ("huge", True)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "0.json").write_text(json.dumps({"id": 600_000_000 if huge else 7}))
    (tmp_path / "tasks.yaml").write_text(
        "group: alone\n"
        "tasks:\n"
        "- task: ids-${each.place}\n"
        "  for_each: {place: [small, huge]}\n"
        "  definition:\n"
        "    source: {format: json, schema: id LONG, options: {path: '${each.place}'}}\n"
        "    sql: SELECT id, length(repeat('x', CAST(id AS INT))) AS letters FROM source\n"
        "    sink: {format: sql, options: {url: 'sqlite:///out.db', table: ids}}\n"
        "    trigger: {available_now: true}\n"
        "    restart: {max_restarts: 0}\n"
    )
    flags = [word for setting in SPARK_CONF[1:] for word in ("--spark-conf", setting)]
    ran = sparkherd(
        *("run", "-f", "tasks.yaml", "--once", "--isolate", "--json", *flags), cwd=tmp_path, timeout_s=900
    )
    assert ran.returncode == 1, ran.stderr
    told = {each["task"]: each for each in json.loads(ran.stdout)["tasks"]}
    assert told["ids-small"]["state"] == TaskState.COMPLETED.value
    assert told["ids-huge"]["state"] == TaskState.FAILED.value
    assert told["ids-huge"]["cause"].startswith("the JVM of this task ran out of memory (Java heap space)")
    with closing(sqlite3.connect(tmp_path / "out.db")) as connection:
        assert connection.execute("SELECT id, letters FROM ids").fetchall() == [(7, 7)]
