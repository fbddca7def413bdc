from __future__ import annotations

import pytest
from hypothesis import given

from assignors.base import Member, Task
from assignors.checked import make_valid, validate
from tests.unit.assignors.groups import Group, groups

MEMBERS = [Member("a"), Member("b")]
TASKS = [Task("t0"), Task("t1"), Task("t2")]


@pytest.mark.parametrize(
    ("assignment", "faults"),
    [
        ({"a": ["t0", "t1"], "b": ["t2"]}, []),
        ({"a": ("t0",)}, []),
        ({}, []),
        ({"a": ["t0"], "c": []}, [("UNKNOWN_MEMBER", "c is not in the group")]),
        ({"a": ["t9"]}, [("UNKNOWN_TASK", "a is given t9, which is not to be assigned")]),
        ({"a": ["t0"], "b": ["t0"]}, [("TASK_TWICE", "b is given t0, which is given away already")]),
        ({"a": ["t0", "t0"]}, [("TASK_TWICE", "a is given t0, which is given away already")]),
        (None, [("MALFORMED", "the result is no mapping but of type NoneType")]),
        ({"a": "t0"}, [("MALFORMED", "what a is given is no list but of type str")]),
        ({"a": None}, [("MALFORMED", "what a is given is no list but of type NoneType")]),
        ({"a": [None]}, [("UNKNOWN_TASK", "a is given None, which is not to be assigned")]),
        ({"a": [["t0"]]}, [("UNKNOWN_TASK", "a is given ['t0'], which is not to be assigned")]),
    ],
)
def test_what_cannot_be_used_is_told_with_code_and_place(
    assignment: object, faults: list[tuple[str, str]]
) -> None:
    """Whatever a plug-in returns, the leader learns what is wrong with it and nothing is raised."""
    found = validate(assignment, MEMBERS, TASKS)
    assert [(fault.code, fault.message) for fault in found] == faults


def test_all_faults_are_told_at_once() -> None:
    """One round of repair, not one a fault."""
    found = validate({"x": ["t0", "t9"], "a": ["t0"], "b": 5}, MEMBERS, TASKS)
    assert [fault.code for fault in found] == ["UNKNOWN_MEMBER", "UNKNOWN_TASK", "TASK_TWICE", "MALFORMED"]


@given(group=groups(max_members=5, max_tasks=15, choosy=True))
def test_the_fallback_is_valid_complete_and_moves_nothing(group: Group) -> None:
    """Every task that can run does, and only those that cannot stay are given to somebody else."""
    assignment = make_valid(group.current, group.members, group.tasks)
    assert validate(assignment, group.members, group.tasks) == ()
    where = {name: member for member, names in assignment.items() for name in names}
    assert where.keys() == {task.name for task in group.tasks if group.may_run(task)}
    assert all(where[task.name] in group.may_run(task) for task in group.tasks if task.name in where)
    assert where.items() >= group.homes().items()


def test_the_fallback_gives_what_is_homeless_to_the_least_loaded() -> None:
    """A lost member's tasks do not pile up on one."""
    last_good = {"a": ["t0", "t1"], "gone": ["t2", "t3", "t4"]}
    tasks = [Task(f"t{at}") for at in range(5)]
    assert make_valid(last_good, MEMBERS, tasks) == {"a": ["t0", "t1", "t2"], "b": ["t3", "t4"]}
