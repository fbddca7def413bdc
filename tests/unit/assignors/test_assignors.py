"""One suite for every built-in assignor."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.base import Assignor, Member, Task
from assignors.checked import validate
from assignors.registry import available, load_assignor
from tests.unit.assignors.groups import Group, groups

if TYPE_CHECKING:
    from collections.abc import Callable

BUILT_IN = sorted(name for name, place in available().items() if place.startswith("assignors."))

small_groups = groups(max_members=6, max_tasks=20, choosy=True)
plain_groups = groups(max_members=6, max_tasks=20, choosy=False)


@pytest.fixture(params=BUILT_IN, scope="module")
def assignor(request: pytest.FixtureRequest) -> Assignor:
    """Each built-in assignor in turn."""
    return load_assignor(request.param)


def test_the_assignors_of_this_package_are_found() -> None:
    """The suite runs over what it should."""
    assert {"roundrobin", "sticky"} <= set(BUILT_IN)


def test_its_name_is_the_one_it_is_found_by(assignor: Assignor, request: pytest.FixtureRequest) -> None:
    """Members vote for names, so a name must lead back to its assignor."""
    assert load_assignor(assignor.name).name == assignor.name
    assert assignor.name in request.node.name


@given(group=small_groups)
def test_every_task_that_can_run_is_given_to_one_eligible_member(assignor: Assignor, group: Group) -> None:
    """Nobody is unknown, nothing is lost or given twice, pins and labels are kept."""
    assignment = assignor.assign(group.members, group.tasks, group.current)
    assert validate(assignment, group.members, group.tasks) == ()
    assert set(assignment) == {member.member_id for member in group.members}
    where = {name: member for member, names in assignment.items() for name in names}
    for task in group.tasks:
        eligible = group.may_run(task)
        assert where[task.name] in eligible if eligible else task.name not in where


@given(group=plain_groups)
def test_without_pins_and_labels_loads_differ_by_at_most_one(assignor: Assignor, group: Group) -> None:
    """Balanced within one."""
    loads = [len(names) for names in assignor.assign(group.members, group.tasks, group.current).values()]
    assert max(loads) - min(loads) <= 1


@given(group=small_groups, data=st.data())
def test_the_order_of_the_input_changes_nothing(
    assignor: Assignor, group: Group, data: st.DataObject
) -> None:
    """Two leaders that know the same decide the same."""
    members = data.draw(st.permutations(group.members))
    tasks = data.draw(st.permutations(group.tasks))
    current = dict(data.draw(st.permutations(list(group.current.items()))))
    shuffled = assignor.assign(members, tasks, current)
    assert shuffled == assignor.assign(group.members, group.tasks, group.current)


@given(group=small_groups)
def test_the_input_is_left_as_it_was(assignor: Assignor, group: Group) -> None:
    """A leader may use what it passed in again."""
    before = repr(group)
    assignor.assign(group.members, group.tasks, group.current)
    assert repr(group) == before


def test_members_without_tasks_are_told_so(assignor: Assignor) -> None:
    """More members than tasks: each member has an entry all the same."""
    members = [Member(f"m{at}") for at in range(3)]
    sizes = Counter(len(names) for names in assignor.assign(members, [Task("t")], {}).values())
    assert sizes == {0: 2, 1: 1}


@pytest.mark.parametrize("order", [list, reversed])
def test_a_static_member_is_found_by_its_instance_id(
    assignor: Assignor, order: Callable[[list[Member]], list[Member]]
) -> None:
    """A pin names the worker, whose member id changes with every restart."""
    members = list(order([Member("a"), Member("b", instance_id="rack-7"), Member("c")]))
    assignment = assignor.assign(members, [Task(f"t{at}", worker="rack-7") for at in range(4)], {})
    assert assignment == {"a": [], "b": ["t0", "t1", "t2", "t3"], "c": []}
