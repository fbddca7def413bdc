"""How many tasks move to a member at once, and what is never put off."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.base import Member, Task
from assignors.checked import validate
from assignors.pace import Paced, paced
from assignors.registry import BUILT_IN, load_assignor
from tests.unit.assignors.groups import Group, groups

OLD = Member("old", owned=frozenset("abcd"))
NEW = Member("new")
TASKS = [Task(name, weight=weight) for name, weight in zip("abcd", (4, 1, 3, 2), strict=True)]
MOVED = {"old": [], "new": list("abcd")}


def test_the_smallest_move_first_and_the_others_stay_where_they_run() -> None:
    """Whoever is to get more is told so, and nobody else."""
    assert paced(MOVED, [OLD, NEW], TASKS, 2) == Paced(
        {"old": ["a", "c"], "new": ["b", "d"]}, frozenset({"new"})
    )


@pytest.mark.parametrize("at_once", [0, 4, 5])
def test_what_is_not_too_much_moves_as_it_was_dealt(at_once: int) -> None:
    """And all of it where there is to be no pace."""
    assert paced(MOVED, [OLD, NEW], TASKS, at_once) == Paced(MOVED, frozenset())


def test_what_a_member_runs_already_is_no_move() -> None:
    """However many tasks it has."""
    assert paced({"old": list("abcd"), "new": []}, [OLD, NEW], TASKS, 1).awaiting == frozenset()


def test_what_nobody_runs_is_never_put_off_and_takes_its_part() -> None:
    """Of three that a member starts, two run nowhere: one of those that run moves besides, if only that."""
    members = [replace(OLD, owned=frozenset("ab")), NEW]
    assert paced(MOVED, members, TASKS, 3) == Paced(
        {"old": ["a"], "new": ["b", "c", "d"]}, frozenset({"new"})
    )
    assert paced(MOVED, members, TASKS, 1) == Paced(
        {"old": ["a"], "new": ["b", "c", "d"]}, frozenset({"new"})
    )


def test_what_a_drained_member_runs_is_not_put_off() -> None:
    """It is not among those who take part, and is waited for until it has nothing any more."""
    assert paced({"new": list("abcd")}, [NEW], TASKS, 1) == Paced({"new": list("abcd")}, frozenset())


def test_what_may_not_go_on_where_it_runs_is_not_put_off() -> None:
    """Its labels, or those of its member, have changed."""
    tasks = [replace(task, labels={"zone": "x"}) for task in TASKS]
    members = [OLD, replace(NEW, labels={"zone": "x"})]
    assert paced(MOVED, members, tasks, 1) == Paced(MOVED, frozenset())


def test_a_limit_matters_more_than_the_pace() -> None:
    """What stays must not be too much beside what comes."""
    members = [replace(OLD, owned=frozenset("ab"), max_tasks=2), replace(NEW, owned=frozenset("cd"))]
    swapped = {"old": ["c", "d"], "new": ["a", "b"]}
    assert paced(swapped, members, TASKS, 1) == Paced(
        {"old": ["d", "a"], "new": ["b", "c"]}, frozenset({"old", "new"})
    )
    dealt = {"old": ["c", "e"], "new": ["a", "b", "d"]}
    assert paced(dealt, members, [*TASKS, Task("e")], 1) == Paced(dealt, frozenset())


@pytest.mark.parametrize("name", BUILT_IN)
@given(group=groups(max_members=4, max_tasks=8, choosy=True, unequal=True), at_once=st.integers(1, 3))
def test_round_by_round_all_is_where_it_was_to_be(name: str, group: Group, at_once: int) -> None:
    """Nothing is lost on the way or given twice, and no member gets too much of what others run at once."""
    assignor = load_assignor(name)
    for _ in range(3 * len(group.tasks) + 1):
        dealt = assignor.assign(group.members, group.tasks, group.current)
        step = paced(dealt, group.members, group.tasks, at_once)
        assert not validate(step.assignment, group.members, group.tasks)
        assert sorted(chain(*step.assignment.values())) == sorted(chain(*dealt.values()))
        if not step.awaiting:
            assert step.assignment == dealt
            return
        owners = {task: each.member_id for each in group.members for task in each.owned}
        may = {task.name: group.may_run(task) for task in group.tasks}
        for member_id in step.awaiting:
            new = [task for task in step.assignment[member_id] if owners.get(task) != member_id]
            moves = [task for task in new if task in owners and owners[task] in may[task]]
            assert len(moves) == max(at_once - (len(new) - len(moves)), 1)
        everybody = {each.member_id: step.assignment.get(each.member_id, []) for each in group.members}
        group = group.running(everybody)
    raise AssertionError("it comes to no end")
