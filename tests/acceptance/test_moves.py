"""All that can happen to a herd, one thing after another: only what must be is started anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cli.client.admin_client import path_of
from protocol.messages.base import Response
from protocol.messages.groups import RebalanceRequest
from protocol.messages.tasks import TaskStatusResponse
from tests.acceptance.group_view import GROUP, GroupView, ticking
from tests.acceptance.ledger import Ledger
from tests.acceptance.processes import sparkherd
from tests.acceptance.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.processes import Daemon, Herd

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(1800)]

WORKERS = ("anna", "berta", "carla")
TASKS = tuple(f"t{number:02}" for number in range(1, 13))
REBALANCES = 10
EVERY = "4 seconds"
"""Thirteen queries leave the processors to what is tried here."""


class Play:
    """A herd, what is done to it, and the ledger of what that had to start."""

    def __init__(self, herd: Herd) -> None:
        self.herd = herd
        self.view = GroupView(herd)
        self.client = herd.manager.client()
        self.ledger = Ledger()
        self.everybody: list[Daemon] = []

    def hire(self, name: str) -> None:
        """Start a worker."""
        self.everybody.append(self.herd.start_worker(name))

    def settle(
        self, what: str, members: int, also: Callable[[], bool] = lambda: True
    ) -> dict[str, str | None]:
        """Wait until all tasks run and nothing is on the move; who runs what then."""
        eventually(lambda: self.view.settled(members) and also(), what, alive=self.herd.daemons)
        return self.owners()

    def owners(self) -> dict[str, str | None]:
        """Who runs what."""
        return {name: task.owner for name, task in self.view.tasks().items()}

    def number_of_tasks(self, worker: str) -> int:
        """How many it runs."""
        return list(self.owners().values()).count(self.view.workers().get(worker))

    def moved(self, before: dict[str, str | None], reason: str) -> list[str]:
        """The tasks that somebody else runs now; each had to be started there."""
        tasks = [task for task, owner in self.owners().items() if before.get(task) != owner]
        self.ledger.expect(tasks, reason)
        return tasks

    def tell(self, task: str, verb: str) -> None:
        """Pause or resume."""
        self.client.call("PUT", path_of("groups", GROUP, "tasks", task, verb), into=TaskStatusResponse)

    def rebalance(self) -> None:
        """Bring everybody together anew, for nothing, and wait until they are."""
        generation = self.generation()
        path = path_of("groups", GROUP, "rebalance")
        self.client.call("POST", path, RebalanceRequest(reason="nothing has changed"), into=Response)
        self.settle("the group is Stable again", 3, lambda: self.generation() > generation)

    def state(self, task: str) -> str:
        """How it is."""
        return self.view.tasks()[task].state

    def generation(self) -> int:
        """The present one."""
        return self.view.describe().generation_id

    def batches(self) -> dict[str, int]:
        """The last batch of each task."""
        return {name: task.batch_id or 0 for name, task in self.view.tasks().items()}


def test_only_what_must_be_is_started_anew(herd: Herd) -> None:
    """Join, kill, drain, add, change, pause, resume, ten rebalances: the starts are those that had to be."""
    play = Play(herd)
    _begin(play)
    _a_worker_joins(play)
    _a_worker_is_killed(play)
    _a_worker_is_drained(play)
    _a_task_is_added(play)
    _a_task_is_changed(play)
    _a_task_is_paused_and_resumed(play)
    _ten_rebalances(play)
    print("\n" + play.ledger.table(play.everybody))  # noqa: T201 - the table is what `make moves` is run for
    assert play.ledger.counted(play.everybody) == play.ledger.wanted()


def _begin(play: Play) -> None:
    for name in WORKERS:
        play.hire(name)
    eventually(lambda: _members(play) == len(WORKERS), "all are members", alive=play.herd.daemons)
    for task in TASKS:
        play.view.create(task, ticking(play.herd.folder, task, EVERY))
    play.settle("all tasks run", len(WORKERS))
    play.ledger.expect(TASKS, "created")


def _members(play: Play) -> int:
    groups = play.view.groups()
    return groups[GROUP].members if GROUP in groups else 0


def _a_worker_joins(play: Play) -> None:
    before = play.owners()
    play.hire("dora")
    share = len(TASKS) // 4
    play.settle("the newcomer has its share", 4, lambda: play.number_of_tasks("dora") == share)
    assert len(play.moved(before, "dora joined")) == share


def _a_worker_is_killed(play: Play) -> None:
    before, lost = play.owners(), play.view.workers()["carla"]
    play.herd.workers.pop("carla").kill()
    play.settle("the orphans run", 3)
    assert set(play.moved(before, "carla was killed")) == {t for t, owner in before.items() if owner == lost}


def _a_worker_is_drained(play: Play) -> None:
    before, drained = play.owners(), play.view.workers()["berta"]
    asked = sparkherd(
        "workers",
        "drain",
        drained,
        "--group",
        GROUP,
        "--manager",
        play.herd.manager.url,
        cwd=play.herd.folder,
    )
    assert asked.returncode == 0, asked.stderr
    play.settle("the drained one has nothing", 3, lambda: drained not in play.owners().values())
    assert set(play.moved(before, "berta was drained")) == {
        t for t, owner in before.items() if owner == drained
    }


def _a_task_is_added(play: Play) -> None:
    before = play.owners()
    play.view.create("t13", ticking(play.herd.folder, "t13", EVERY))
    play.settle("the new task runs", 3, lambda: "t13" in play.owners())
    assert play.moved(before, "created") == ["t13"]


def _a_task_is_changed(play: Play) -> None:
    """A new query is started where it is; a new weight alone starts nothing, but brings a rebalance."""
    before, definition = play.owners(), ticking(play.herd.folder, "t01", EVERY)
    play.view.put("t01", definition | {"sql": "SELECT value FROM source WHERE value >= 0"})
    play.ledger.expect(["t01"], "its query changed")
    counted = play.ledger.wanted()["t01"]
    generation = play.generation()
    play.settle("the changed one runs", 3, lambda: play.ledger.counted(play.everybody)["t01"] == counted)
    play.view.put("t02", ticking(play.herd.folder, "t02", EVERY) | {"weight": 2.0})
    play.settle("the weight is known", 3, lambda: play.generation() > generation)
    assert play.moved(before, "a task was changed") == []


def _a_task_is_paused_and_resumed(play: Play) -> None:
    play.tell("t03", "pause")
    eventually(lambda: play.state("t03") == "PAUSED", "it is paused", alive=play.herd.daemons)
    play.tell("t03", "resume")
    play.settle("it runs again", 3)
    play.ledger.expect(["t03"], "resumed")


def _ten_rebalances(play: Play) -> None:
    """Nothing moves, and no query misses a batch."""
    before, batches = play.owners(), play.batches()
    for _ in range(REBALANCES):
        play.rebalance()
    assert play.moved(before, "a rebalance for nothing") == []
    eventually(
        lambda: all(batch > batches[task] for task, batch in play.batches().items()),
        "every query goes on",
        alive=play.herd.daemons,
    )
