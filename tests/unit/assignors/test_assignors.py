"""One suite for every built-in assignor; a new one is held to all of it as soon as it is registered."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.base import Assignor, Member, Task
from assignors.checked import validate
from assignors.registry import BUILT_IN, load_assignor
from assignors.weighted import WeightedAssignor
from tests.unit.assignors.groups import Group, groups

if TYPE_CHECKING:
    from collections.abc import Callable


FORGETFUL = {"range", "roundrobin"}
"""Where tasks were plays no part for these; every other one is to move as little as it can."""
SLACK = {"weighted": 1 - WeightedAssignor.margin}
"""How high the lowest of a level group stands at least, beside the highest but one task; 1 for all others."""

small_groups = groups(max_members=6, max_tasks=20, choosy=True, unequal=True)
plain_groups = groups(max_members=6, max_tasks=20, choosy=False)
tiny_groups = groups(max_members=3, max_tasks=6, choosy=False)


@pytest.fixture(params=sorted(BUILT_IN), scope="module")
def assignor(request: pytest.FixtureRequest) -> Assignor:
    """Each built-in assignor in turn."""
    return load_assignor(request.param)


def test_every_assignor_of_this_package_is_registered() -> None:
    """So the suite runs over all there are."""
    folder = Path(load_assignor.__code__.co_filename).parent
    places = {f"assignors.{path.stem}" for path in folder.glob("*.py") if "(Assignor):" in path.read_text()}
    assert places == {place.partition(":")[0] for place in BUILT_IN.values()}
    assert FORGETFUL | SLACK.keys() <= BUILT_IN.keys()


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
    """Balanced within one if tasks and members are alike, as far as the assignor's slack allows."""
    loads = [len(names) for names in assignor.assign(group.members, group.tasks, group.current).values()]
    assert SLACK.get(assignor.name, 1) * max(loads) <= min(loads) + 1
    fresh = [len(names) for names in assignor.assign(group.members, group.tasks, {}).values()]
    assert max(fresh) - min(fresh) <= 1


@given(group=tiny_groups)
def test_no_assignment_as_level_moves_fewer_tasks(assignor: Assignor, group: Group) -> None:
    """Compared with all there are, if tasks and members are alike."""
    if assignor.name in FORGETFUL:
        assert assignor.assign(group.members, group.tasks, group.current) == assignor.assign(
            group.members, group.tasks, {}
        )
    else:
        evenness, moves = group.cost(assignor.assign(group.members, group.tasks, group.current))
        assert moves == group.fewest_moves(evenness)


@given(group=small_groups)
def test_its_answer_is_one_it_would_not_change(assignor: Assignor, group: Group) -> None:
    """A rebalance that nothing gave cause for moves nothing."""
    first = assignor.assign(group.members, group.tasks, group.current)
    settled = group.running(first)
    assert assignor.assign(settled.members, settled.tasks, settled.current) == first


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


AWKWARD = """
import json
from random import Random
from assignors.base import Member, Task
from assignors.registry import load_assignor
chance = Random(5)
def labels():
    return {each: "yes" for each in "abc" if chance.random() < 0.4}
def some():
    return frozenset(f"t{chance.randrange(60)}" for _ in range(9))
def pin():
    return chance.choice([None, "s"])
members = [Member(f"w{at}", pin(), chance.random() + 0.1, labels(), some()) for at in range(9)]
tasks = [Task(f"t{at}", chance.random() + 0.1, pin(), labels()) for at in range(60)]
current = {f"w{at}": sorted(some()) for at in range(11)}
answers = {name: load_assignor(name).assign(members, tasks, current) for name in NAMES}
print(json.dumps(answers, sort_keys=True))
"""


def test_nothing_hangs_on_hash_order() -> None:
    """The order in which a set iterates differs from process to process."""

    def answers(seed: str) -> str:
        script = AWKWARD.replace("NAMES", repr(sorted(BUILT_IN)))
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path.cwd())}
        command = [sys.executable, "-c", script]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    assert len({answers(seed) for seed in ("0", "1", "2")}) == 1


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
