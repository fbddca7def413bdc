"""Three managers that die, freeze and lose their database, and four workers whose queries never notice."""

from __future__ import annotations

import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from cli.client.admin_client import UnreachableError, path_of
from protocol.errors import RefusedError
from protocol.messages.base import Response
from protocol.messages.groups import RebalanceRequest
from tests.acceptance.group_view import GROUP, GroupView
from tests.acceptance.managers import Cluster, now_ms, runs_of
from tests.acceptance.processes import sparkherd
from tests.acceptance.waiting import eventually
from tests.integration.postgres import running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from protocol.messages.groups import DescribeGroupResponse
    from tests.acceptance.processes import Manager

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(1500)]

MANAGERS = ("m1", "m2", "m3")
WORKERS = ("anna", "berta", "carla", "dora")
TASKS = tuple(f"t{number:02}" for number in range(1, 13))
PATIENCE_S = 300.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with running() as postgres:
        cluster = Cluster(tmp_path, postgres)
        try:
            cluster.start_managers(MANAGERS)
            yield cluster
        finally:
            cluster.stop()


@dataclass
class Run:
    """What is done to the managers, and what the herd made of it, line by line."""

    cluster: Cluster
    folder: Path
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.view = GroupView(self.cluster.client())
        self._former = dict.fromkeys(TASKS, 0)

    def until(self, look: Callable[[], Any], what: str) -> Any:
        """Wait for it, whatever managers answer meanwhile."""

        def patiently() -> Any:
            with suppress(RefusedError, UnreachableError):
                return look()
            return None

        return eventually(patiently, what, alive=self.cluster.workers.values(), within_s=PATIENCE_S)

    def settle(self) -> None:
        """All tasks run on all workers; each query has told who it is. A task made later is a rebalance."""
        for task in TASKS:
            definition = {
                "entrypoint": "queries:ticking",
                "options": {"path": str(self.folder / f"{task}.runs")},
            }
            self.until(partial(self._is_there, task, definition), f"{task} is created")
        self.cluster.start_workers(WORKERS)
        self.until(lambda: self.view.settled(len(WORKERS)), "all tasks run")
        self._former = {task: len(noted) - 1 for task, noted in self.noted().items()}
        self.runs = {task: noted[0][0] for task, noted in self.noted().items()}
        assert len(set(self.runs.values())) == len(TASKS)
        self.before = self.view.describe()

    def noted(self) -> dict[str, list[tuple[str, int]]]:
        """What each query has noted since all tasks run on all workers."""
        return {task: noted[self._former[task] :] for task, noted in runs_of(self.folder, TASKS).items()}

    def _is_there(self, task: str, definition: dict[str, Any]) -> bool:
        self.view.put(task, definition)
        return True

    def owner(self) -> Manager:
        """The manager that has the group."""
        name = self.until(self.cluster.owner, "all managers agree on who has the group")
        return self.cluster.managers[name]

    def strike(self, what: str, blow: Callable[[], None], repair: Callable[[], None] = lambda: None) -> None:
        """Do something, have the group served again, and see that nobody noticed.

        The time is from the blow to the moment at which all workers' heartbeats were accepted again.
        """
        batches = {task: noted[-1][1] for task, noted in self.noted().items()}
        struck, struck_ms = time.monotonic(), now_ms()
        blow()
        self.until(lambda: self._heard_from_all(struck_ms), f"{what}: all workers are heard again")
        away_s = time.monotonic() - struck
        repair()
        self.until(lambda: self._went_on(batches), f"{what}: every query does more batches")
        after = self.until(self.view.describe, "the group is described")
        self._check(what, after)
        self.lines.append(
            f"| {what} | {away_s:.1f} s | {self._same_runs()} of {len(TASKS)} | {self._generations(after)} |"
        )

    def _heard_from_all(self, since_ms: int) -> bool:
        members = self.view.describe().members
        return len(members) == len(WORKERS) and all(m.last_heartbeat_ms > since_ms for m in members)

    def _went_on(self, batches: dict[str, int]) -> bool:
        return all(noted[-1][1] >= batches[task] + 2 for task, noted in self.noted().items())

    def _check(self, what: str, after: DescribeGroupResponse) -> None:
        """Same generation, members, leader and tokens; each query is one run, its batches without a gap."""
        assert (after.state, after.generation_id, after.leader_id) == (
            "Stable",
            self.before.generation_id,
            self.before.leader_id,
        ), what
        assert {m.member_id for m in after.members} == {m.member_id for m in self.before.members}, what
        for task, noted in self.noted().items():
            assert {run for run, _ in noted} == {self.runs[task]}, (what, task)
            first = noted[0][1]
            assert [batch for _, batch in noted] == list(range(first, first + len(noted))), (what, task)

    def _same_runs(self) -> int:
        noted = self.noted()
        return sum({run for run, _ in noted[task]} == {self.runs[task]} for task in TASKS)

    def _generations(self, after: DescribeGroupResponse) -> str:
        return f"{self.before.generation_id} → {after.generation_id}"

    def table(self) -> str:
        """For people, and for docs/managers.md."""
        head = "| what happened | all workers heard again after | queries with their `runId` | generation |"
        return "\n".join([head, "|---|---|---|---|", *self.lines])


def test_queries_notice_nothing_of_their_managers(cluster: Cluster, tmp_path: Path) -> None:
    """Killed, frozen, stopped, without a database, all at once: every query is the run that it was."""
    run = Run(cluster, tmp_path)
    run.settle()

    killed = run.owner()
    run.strike("SIGKILL of the manager that has the group", killed.kill, lambda: _start(killed))

    frozen = run.owner()
    run.strike("SIGSTOP of the manager that has it", lambda: frozen.process.send_signal(signal.SIGSTOP))
    run.strike("SIGCONT of that one", lambda: frozen.process.send_signal(signal.SIGCONT))
    assert run.owner() is not frozen

    def restart_postgres() -> None:
        cluster.postgres.stop()
        cluster.postgres.start()

    run.strike("restart of PostgreSQL", restart_postgres)

    def kill_all() -> None:
        for manager in cluster.managers.values():
            manager.kill()
        for manager in cluster.managers.values():
            manager.launch()
        for manager in cluster.managers.values():
            manager.listens()

    run.strike("SIGKILL of all three managers, started again", kill_all)

    stopped = run.owner()
    run.strike("SIGTERM of the manager that has it", lambda: _terminate(stopped), lambda: _start(stopped))

    client = cluster.client(PATIENCE_S)  # whoever asks again after no answer may ask for two of them
    path = path_of("groups", GROUP, "rebalance")
    run.until(
        lambda: client.call("POST", path, RebalanceRequest(), into=Response), "a rebalance is asked for"
    )
    generation = run.before.generation_id + 1
    run.until(
        lambda: run.view.describe().generation_id == generation, "the next generation is the next number"
    )
    listed = sparkherd("managers", "list", "--manager", cluster.urls, cwd=tmp_path)
    print(f"\n{run.table()}\n\n{listed.stdout}")  # noqa: T201 - what `make managers` is run for
    assert listed.returncode == 0
    assert listed.stdout.count("yes") == len(MANAGERS)


def _start(manager: Manager) -> None:
    manager.start()


def _terminate(manager: Manager) -> None:
    assert manager.terminate() == 0
