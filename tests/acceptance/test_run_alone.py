"""`sparkherd run` with real Spark: rows whole, tokens that grow, a second driver refused, exit codes."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from cli.demo.herd import SPARK_CONF
from tests.acceptance.chaos.stage import jvm_of
from tests.acceptance.processes import Daemon, sparkherd
from tests.acceptance.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(1200)]

FLAGS = [word for setting in SPARK_CONF for word in ("--spark-conf", setting)]
IMPATIENT = (
    "-c",
    "from cli.main import main; from worker.standalone import token_file; token_file.ORPHAN_S = 2.0; main()",
)
"""`sparkherd` that waits two seconds, not thirty, for the JVM of a run that was killed."""


def tasks_file(folder: Path, trigger: str, *, bad: str = "") -> None:
    """Two tasks by `for_each`, over two folders, into one table; and perhaps one that cannot run."""
    (folder / "tasks.yaml").write_text(
        "group: alone\n"
        "tasks:\n"
        "- task: ids-${each.place}\n"
        "  for_each: {place: [north, south]}\n"
        "  definition:\n"
        "    source:\n"
        "      {format: json, schema: id LONG, options: {path: 'in/${each.place}', maxFilesPerTrigger: 1}}\n"
        "    sql: SELECT id, '${each.place}' AS place FROM source\n"
        "    sink: {format: sql, options: {url: 'sqlite:///out.db', table: ids}}\n"
        f"    trigger: {trigger}\n" + bad
    )


BAD = """\
- task: bad
  definition:
    source: {format: carrierpigeon}
    sink: {format: noop}
    trigger: {available_now: true}
    restart: {max_restarts: 0}
"""


def put(folder: Path, *ids: int) -> None:
    """A file of its own for each id, in both places."""
    for place in ("north", "south"):
        (folder / "in" / place).mkdir(parents=True, exist_ok=True)
        for number in ids:
            (folder / "in" / place / f"{number}.json").write_text(f'{{"id": {number}}}\n')


def rows(folder: Path) -> list[tuple[Any, ...]]:
    """All there is in the table, twice what is there twice."""
    with closing(sqlite3.connect(folder / "out.db")) as connection:
        return connection.execute("SELECT place, id FROM ids ORDER BY place, id").fetchall()


def tokens(folder: Path) -> set[int]:
    """What the fence rows of both tasks hold."""
    with closing(sqlite3.connect(folder / "out.db")) as connection:
        return {token for (token,) in connection.execute("SELECT token FROM sparkherd_fence")}


def whole(*ids: int) -> list[tuple[str, int]]:
    """Each id once in each place."""
    return [(place, number) for place in ("north", "south") for number in ids]


@pytest.fixture
def started() -> Iterator[list[Daemon]]:
    """Runs in the background; stopped at the end, whatever happens."""
    daemons: list[Daemon] = []
    yield daemons
    for each in daemons:
        each.stop()


def test_a_job_and_then_a_service(tmp_path: Path, started: list[Daemon]) -> None:
    """Once over what is there, one task FAILED; then on and on over what comes, until SIGTERM."""
    put(tmp_path, 1, 2, 3)
    tasks_file(tmp_path, "{available_now: true}", bad=BAD)
    job = sparkherd("run", "-f", "tasks.yaml", "--once", "--json", *FLAGS, cwd=tmp_path, timeout_s=600)
    assert job.returncode == 1, job.stderr
    told = {task["task"]: task for task in json.loads(job.stdout)["tasks"]}
    assert [told[name]["state"] for name in ("ids-north", "ids-south", "bad")] == ["COMPLETED"] * 2 + [
        "FAILED"
    ]
    assert "carrierpigeon" in told["bad"]["cause"]
    assert "state=FAILED" in job.stderr
    assert rows(tmp_path) == whole(1, 2, 3)
    first = max(tokens(tmp_path))

    tasks_file(tmp_path, "{processing_time: 100 milliseconds}")
    service = Daemon("service", ["run", "-f", "tasks.yaml", *FLAGS], tmp_path)
    started.append(service)
    eventually(lambda: min(tokens(tmp_path)) > first, "both tasks run again", alive=started)
    second_run = tokens(tmp_path)
    put(tmp_path, 4)
    eventually(lambda: rows(tmp_path) == whole(1, 2, 3, 4), "the new rows are there", alive=started)
    second = sparkherd("run", "-f", "tasks.yaml", *FLAGS, cwd=tmp_path)
    assert second.returncode == 2
    assert f"(process {service.process.pid})" in second.stderr
    assert service.terminate() == 0
    assert rows(tmp_path) == whole(1, 2, 3, 4)
    assert tokens(tmp_path) == second_run


def test_a_frozen_jvm_keeps_the_next_run_out(tmp_path: Path, started: list[Daemon]) -> None:
    """Its run was killed, its sink has no fence: thawed beside a second driver, it would write rows again."""
    (tmp_path / "tasks.yaml").write_text(
        "group: alone\n"
        "tasks:\n"
        "- task: numbers\n"
        "  definition:\n"
        "    source: {format: rate}\n"
        "    sink: {format: json, options: {path: out}}\n"
        "    trigger: {processing_time: 500 milliseconds}\n"
    )
    first = Daemon("first", ["run", "-f", "tasks.yaml", *FLAGS], tmp_path)
    started.append(first)
    log = tmp_path / "out" / "_spark_metadata"
    eventually((log / "0").exists, "a batch is there", alive=started)
    with frozen(jvm_of(first)):
        first.kill()
        started.remove(first)
        batches = {each.name for each in log.iterdir()}
        second = sparkherd("run", "-f", "tasks.yaml", *FLAGS, cwd=tmp_path, program=IMPATIENT)
        assert second.returncode == 2, second.stderr
        assert "seconds=2.0" in second.stderr
        assert f"its process {first.process.pid} is gone" in second.stderr
        assert {each.name for each in log.iterdir()} == batches
    third = Daemon("third", ["run", "-f", "tasks.yaml", *FLAGS], tmp_path)
    started.append(third)
    eventually(lambda: {each.name for each in log.iterdir()} > batches, "it goes on", alive=started)
    assert third.terminate() == 0


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """The process stands still, and is killed at the end."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
