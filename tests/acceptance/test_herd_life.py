"""Managers and workers that die or leave, as processes, with real Spark queries."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.group_view import GroupView, ticking
from tests.acceptance.ledger import starts
from tests.acceptance.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.messages.tasks import TaskView
    from tests.acceptance.processes import Herd

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(1200)]

WORKERS = ("anna", "berta")
TASKS = ("t1", "t2", "t3", "t4")


@pytest.fixture
def group(herd: Herd) -> GroupView:
    """Two workers that run four endless queries, which were there first: a task made later is a rebalance."""
    view = GroupView(herd)
    for task in TASKS:
        view.create(task, ticking(herd.folder, task))
    for name in WORKERS:
        herd.start_worker(name)
    eventually(lambda: view.settled(len(WORKERS)), "all tasks run", alive=herd.daemons)
    return view


def _moved_on(view: GroupView, before: dict[str, TaskView]) -> Callable[[], bool]:
    """Whether every task has done some more batches."""

    def look() -> bool:
        now = view.tasks()
        return all((now[name].batch_id or 0) >= (task.batch_id or 0) + 3 for name, task in before.items())

    return look


def _numbers(herd: Herd, table: str) -> list[int]:
    with closing(sqlite3.connect(herd.folder / "sink.db")) as db:
        return sorted(value for (value,) in db.execute(f"SELECT value FROM {table}"))


def test_a_killed_manager_goes_on_where_it_was(herd: Herd, group: GroupView) -> None:
    """SIGKILL and restart on the same database: same generation, members and tokens; no query stopped."""
    described, before = group.describe(), group.tasks()
    begun = starts(herd.workers.values(), TASKS)
    herd.manager.kill()
    herd.manager.start()
    eventually(_moved_on(group, before), "the queries report new batches", alive=herd.daemons)
    after = group.describe()
    assert (after.state, after.generation_id, after.leader_id) == (
        described.state,
        described.generation_id,
        described.leader_id,
    )
    assert {m.member_id for m in after.members} == {m.member_id for m in described.members}
    assert {n: (t.token, t.owner) for n, t in group.tasks().items()} == {
        n: (t.token, t.owner) for n, t in before.items()
    }
    assert starts(herd.workers.values(), TASKS) == begun


def test_a_terminated_worker_leaves_in_order(herd: Herd, group: GroupView) -> None:
    """SIGTERM: exit code 0, its tasks run on elsewhere without a number lost, the others never stop."""
    before, ids = group.tasks(), group.workers()
    begun = starts(herd.workers.values(), TASKS)
    assert herd.workers["anna"].terminate() == 0
    left, stayed = herd.workers.pop("anna"), herd.workers["berta"]
    assert list(group.workers()) == ["berta"]
    orphans = {name for name, task in before.items() if task.owner == ids["anna"]}
    assert len(orphans) == len(TASKS) // len(WORKERS)
    eventually(_moved_on(group, before), "all tasks run on", alive=herd.daemons)
    after = group.tasks()
    assert {task.owner for task in after.values()} == {ids["berta"]}
    assert {name for name, task in after.items() if task.token > before[name].token} == orphans
    assert starts([left, stayed], TASKS) == {task: begun[task] + (task in orphans) for task in TASKS}
    assert "Traceback" not in left.log()


def test_a_killed_worker_loses_nothing(herd: Herd, group: GroupView) -> None:
    """SIGKILL: its tasks run elsewhere under higher tokens; every number is in the sink exactly once."""
    before, ids = group.tasks(), group.workers()
    herd.workers.pop("berta").kill()
    eventually(_moved_on(group, before), "all tasks run on", alive=herd.daemons)
    after = group.tasks()
    assert {task.owner for task in after.values()} == {ids["anna"]}
    orphans = {name for name, task in before.items() if task.owner == ids["berta"]}
    assert {name for name, task in after.items() if task.token > before[name].token} == orphans
    for task in TASKS:
        numbers = _numbers(herd, task)
        assert numbers == list(range(len(numbers)))
