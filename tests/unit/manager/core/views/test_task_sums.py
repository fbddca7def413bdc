"""Counts, pages and costs: what the console shows of any number of tasks."""

from __future__ import annotations

from typing import Any

import pytest

from manager.core.commands import (
    CountTasks,
    DeleteTask,
    ListCosts,
    OwnerCounts,
    RankedTasks,
    RankTasks,
    ResetTask,
    SetTarget,
    TaskCounts,
)
from protocol.states import Target, TaskState
from tests.unit.manager.core.bench import Bench

STATES = ("FAILED", "UNASSIGNED", "RUNNING")


def counts(bench: Bench) -> TaskCounts:
    answer: TaskCounts = bench.ask(CountTasks()).answer
    return answer


def page(bench: Bench, **asked: Any) -> RankedTasks:
    wanted: dict[str, Any] = {"states": STATES, "limit": 2} | asked
    answer: RankedTasks = bench.ask(RankTasks(**wanted)).answer
    return answer


def names(bench: Bench, **asked: Any) -> list[str]:
    return [task.task for task in page(bench, **asked).tasks]


def tell(bench: Bench, member: str, task: str, state: TaskState = TaskState.RUNNING, **more: Any) -> None:
    assert bench.report(member, task, bench.group.tasks.ownership[task].token, state, **more) == "NONE"


def at_work() -> tuple[Bench, str, str]:
    """Two workers: the first has `a` and `c`, which has failed, the second `b`; `z` is nobody's."""
    bench = Bench()
    first, second = bench.herd(2, "a", "b", "c")
    for member, task, load in ((first, "a", 0.1), (second, "b", None), (first, "c", 0.2)):
        tell(bench, member, task, metrics={"rows": 1} | ({} if load is None else {"load": load}))
    tell(bench, first, "c", TaskState.FAILED, cause="boom")
    bench.create("z")
    return bench, first, second


def test_tasks_are_counted_by_state_and_by_owner() -> None:
    """Each state that occurs, with the load that an owner's tasks measure; who owns nothing is not told."""
    bench, first, second = at_work()
    assert counts(bench).states == {"RUNNING": 2, "FAILED": 1, "UNASSIGNED": 1}
    assert counts(bench).owners == {
        first: OwnerCounts({"RUNNING": 1, "FAILED": 1}, 0.3),
        second: OwnerCounts({"RUNNING": 1}, None),
    }
    assert (counts(bench).tasks, counts(bench).unowned, counts(bench).of("nobody").tasks) == (4, 1, 0)


def test_counts_follow_what_becomes_of_the_tasks() -> None:
    """A deleted task counts no more though its token does, a load that was told again counts once."""
    bench, first, second = at_work()
    tell(bench, first, "a", metrics={"load": 0.5})
    assert counts(bench).of(first).load == 0.7
    bench.ask(DeleteTask(task="c"))
    assert counts(bench).owners[first] == OwnerCounts({"RUNNING": 1}, 0.5)
    bench.ask(SetTarget(task="b", target=Target.STOPPED))
    bench.release(second, b=bench.group.tasks.ownership["b"].token)
    bench.ask(ResetTask(task="b"))
    assert second not in counts(bench).owners
    bench.crash()
    assert counts(bench).owners[first] == OwnerCounts({"RUNNING": 1}, None)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, ["c", "z"]),
        ({"page": 2}, ["a", "b"]),
        ({"page": 9}, ["a", "b"]),
        ({"page": 0}, ["c", "z"]),
        ({"limit": 3}, ["c", "z", "a"]),
        ({"limit": 3, "page": 2}, ["b"]),
        ({"states": ("RUNNING",)}, ["a", "b"]),
        ({"states": ("RUNNING", "FAILED"), "limit": 9}, ["a", "b", "c"]),
        ({"states": ("no state",)}, []),
        ({"name_has": "A"}, ["a"]),
        ({"name_has": "Z", "states": ("RUNNING",)}, []),
    ],
)
def test_a_page_goes_by_states_then_by_names(asked: dict[str, Any], found: list[str]) -> None:
    """In the order of the states that are asked for; beyond the last page is the last one."""
    bench, _, _ = at_work()
    assert names(bench, **asked) == found


def test_a_page_says_which_it_is_and_of_how_many() -> None:
    """Whatever was asked for: the one that is shown."""
    bench, _, _ = at_work()
    assert (page(bench, page=9).page, page(bench, page=9).total) == (2, 4)
    assert (page(bench, name_has="x", page=9).page, page(bench, name_has="x").total) == (1, 0)


def test_few_in_trouble_are_found_among_many() -> None:
    """They come first and in order, and the many after them, across pages."""
    bench = Bench()
    many = [f"t{number:03}" for number in range(100)]
    [first] = bench.herd(1, *many)
    for task in many:
        tell(bench, first, task)
    for task in ("t070", "t007", "t033"):
        tell(bench, first, task, TaskState.FAILED, cause="boom")
    assert names(bench, limit=5) == ["t007", "t033", "t070", "t000", "t001"]
    assert names(bench, limit=5, page=2) == ["t002", "t003", "t004", "t005", "t006"]
    assert names(bench, limit=5, page=3) == ["t008", "t009", "t010", "t011", "t012"]
    assert names(bench, limit=5, page=20) == ["t095", "t096", "t097", "t098", "t099"]
    assert names(bench, limit=5, name_has="T00") == ["t007", "t000", "t001", "t002", "t003"]


def test_the_costs_at_a_worker_are_those_of_its_tasks() -> None:
    """With what it has told of each; of one that is deleted there is nothing to show."""
    bench, first, second = at_work()
    told = bench.ask(ListCosts(owner=first)).answer.tasks
    assert {(each.task, each.state, each.metrics["load"]) for each in told} == {
        ("a", "RUNNING", 0.1),
        ("c", "FAILED", 0.2),
    }
    bench.ask(DeleteTask(task="b"))
    assert bench.ask(ListCosts(owner=second)).answer.tasks == ()
