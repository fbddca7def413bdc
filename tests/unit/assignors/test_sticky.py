from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors.base import Assignment, Member, Task
from assignors.sticky import StickyAssignor
from tests.unit.assignors.groups import Group, groups

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STICKY = StickyAssignor()


def _members(*ids: str) -> list[Member]:
    return [Member(each) for each in ids]


def _tasks(amount: int) -> list[Task]:
    return [Task(f"t{at:06}") for at in range(amount)]


def _moved(before: Mapping[str, Sequence[str]], after: Assignment) -> int:
    was = {name: member for member, names in before.items() for name in names}
    return sum(was.get(name, member) != member for member, names in after.items() for name in names)


@settings(max_examples=500)
@given(group=groups(max_members=3, max_tasks=6, choosy=True))
def test_no_assignment_is_more_level_or_as_level_with_fewer_moves(group: Group) -> None:
    """Compared with all assignments there are, pins and labels included."""
    assignment = STICKY.assign(group.members, group.tasks, group.current)
    assert group.cost(assignment) == group.least_cost()


@given(group=groups(max_members=6, max_tasks=30, choosy=True))
def test_its_own_answer_is_one_it_would_not_change(group: Group) -> None:
    """A rebalance that nothing gave cause for moves nothing."""
    first = STICKY.assign(group.members, group.tasks, group.current)
    assert STICKY.assign(group.members, group.tasks, first) == first


@given(sizes=st.lists(st.integers(0, 40), min_size=1, max_size=12))
def test_without_pins_and_labels_only_the_surplus_moves(sizes: list[int]) -> None:
    """What is above the level moves, and nothing else: the count is known in closed form."""
    names = iter(task.name for task in _tasks(sum(sizes)))
    current = {f"m{at}": [next(names) for _ in range(size)] for at, size in enumerate(sizes)}
    level, extra = divmod(sum(sizes), len(sizes))
    kept = sum(min(size, level) for size in sizes) + min(extra, sum(size > level for size in sizes))
    assignment = STICKY.assign(_members(*current), _tasks(sum(sizes)), current)
    assert _moved(current, assignment) == sum(sizes) - kept


def test_the_tasks_of_a_leaver_alone_move() -> None:
    """Three members, one goes: the others keep all they had."""
    before = STICKY.assign(_members("a", "b", "c"), _tasks(9), {})
    after = STICKY.assign(_members("a", "b"), _tasks(9), before)
    assert set(before["a"]) < set(after["a"])
    assert set(before["b"]) < set(after["b"])


def test_what_runs_counts_more_than_what_was_assigned() -> None:
    """A task still on its old owner when the group rebalances again stays there."""
    members = [Member("a", owned=frozenset({"t0", "t1"})), Member("b", owned=frozenset())]
    tasks = [Task("t0"), Task("t1"), Task("t2"), Task("t3")]
    assignment = STICKY.assign(members, tasks, {"a": ["t2", "t3"], "b": ["t0", "t1"]})
    assert assignment["a"] == ["t0", "t1"]


def test_a_new_leader_knows_from_the_members_who_runs_what() -> None:
    """Without any last assignment nothing moves either."""
    members = [Member("a", owned=frozenset({"t1", "t3"})), Member("b", owned=frozenset({"t0", "t2"}))]
    assert STICKY.assign(members, [Task(f"t{at}") for at in range(4)], {}) == {
        "a": ["t1", "t3"],
        "b": ["t0", "t2"],
    }


def test_a_pinned_task_comes_home_and_makes_room() -> None:
    """The pin outweighs where a task is; its new owner gives up as much as keeps the loads level."""
    before = {"a": ["t0", "t1"], "b": ["t2", "t3"]}
    tasks = [Task("t0", worker="b"), Task("t1"), Task("t2"), Task("t3")]
    after = STICKY.assign(_members("a", "b"), tasks, before)
    assert "t0" in after["b"]
    assert _moved(before, after) == 2


@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_in_a_rolling_restart_each_task_moves_away_and_back(size: int) -> None:
    """A new worker takes what had to leave the one before it, and nothing that has not moved yet."""
    names = [f"t{at:02}" for at in range(4 * size)]
    owned = {f"old{at}": frozenset(names[at::size]) for at in range(size)}
    moves, tokens = Counter[str](), dict.fromkeys(names, 1)

    def rebalance() -> None:
        members = [Member(each, owned=some) for each, some in owned.items()]
        tasks = [Task(name, token=tokens[name]) for name in names]
        for member, given_now in STICKY.assign(members, tasks, {}).items():
            for name in set(given_now) - owned[member]:
                moves[name] += 1
                tokens[name] = 1 + moves.total()
            owned[member] = frozenset(given_now)

    for at in range(size):
        del owned[f"old{at}"]
        rebalance()
        owned[f"new{at}"] = frozenset()
        rebalance()
    assert moves == dict.fromkeys(names, 2)


def test_a_thousand_workers_with_a_hundred_thousand_tasks_lose_one() -> None:
    """No task moves but the leaver's, and all end level; the time it takes is in benchmarks/."""
    tasks = _tasks(100_000)
    members = _members(*(f"m{at:04}" for at in range(1_000)))
    before = STICKY.assign(members, tasks, {})
    after = STICKY.assign(members[1:], tasks, before)
    assert _moved({member: names for member, names in before.items() if member != "m0000"}, after) == 0
    assert Counter(map(len, after.values())) == {100: 899, 101: 100}
    assert sorted(name for names in after.values() for name in names) == [task.name for task in tasks]
