"""Tasks that want a worker to themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from assignors.base import Member, Task
from assignors.checked import validate
from assignors.exclusive import give_own
from assignors.isolation import Isolation, isolate
from assignors.registry import load_assignor
from assignors.unassigned import NONE_TO_SPARE, why_unassigned
from tests.unit.assignors.groups import Group, groups
from tests.unit.assignors.test_limits import deal, places

if TYPE_CHECKING:
    from collections.abc import Collection
    from random import Random

    from assignors.base import Assignment

STICKY = load_assignor("sticky")


@st.composite
def mixed_groups(draw: st.DrawFn) -> Group:
    """Groups of which some tasks are exclusive, and some members have limits."""
    group = draw(groups(max_members=5, max_tasks=9, choosy=True, unequal=True))
    limits = st.sampled_from([None, None, 1, 2, 5])
    members = [replace(each, max_tasks=draw(limits)) for each in group.members]
    tasks = [replace(task, exclusive=draw(st.sampled_from([False, False, True]))) for task in group.tasks]
    return replace(group, members=members, tasks=tasks)


def settle(group: Group, suspects: Collection[str] = ()) -> Assignment:
    """What the leader makes of a group, with the assignor `sticky`."""
    plan = give_own(isolate(group.members, group.tasks, suspects))
    return plan.complete(deal(STICKY, Group(plan.members, plan.tasks, group.current)) if plan.members else {})


@given(group=mixed_groups(), chance=st.randoms(use_true_random=False))
def test_an_exclusive_task_is_alone(group: Group, chance: Random) -> None:
    """Whatever else there is, suspects among them; nobody is given a task that it may not run, or twice."""
    suspects = {task.name for task in group.tasks if chance.random() < 0.3}
    dealt = settle(group, suspects)
    assert validate(dealt, group.members, group.tasks) == ()
    where = places(dealt)
    for task in group.tasks:
        if task.name in where:
            assert where[task.name] in group.may_run(task)
            assert not task.exclusive or dealt[where[task.name]] == [task.name]


@given(group=mixed_groups())
def test_nobody_else_is_left_without_a_worker_for_it(group: Group) -> None:
    """As many of the others are placed as if there were no exclusive tasks."""
    others = [task for task in group.tasks if not task.exclusive]
    placed = {task.name for task in others} & places(settle(group)).keys()
    assert len(placed) == len(places(deal(STICKY, replace(group, tasks=others))))


@given(group=mixed_groups())
def test_who_waits_could_have_no_worker_without_harm(group: Group) -> None:
    """For each worker that it may run on, and that is nobody's own, the others would lose a task."""
    dealt = settle(group)
    where = places(dealt)
    own = {where[task.name] for task in group.tasks if task.exclusive and task.name in where}
    others = [task for task in group.tasks if not task.exclusive]
    placed = len([task for task in others if task.name in where])
    for task in group.tasks:
        for spare in group.may_run(task) - own if task.exclusive and task.name not in where else ():
            left = [each for each in group.members if each.member_id not in {*own, spare}]
            fit = [each for each in others if group.may_run(each) & {member.member_id for member in left}]
            assert not left or len(places(deal(STICKY, Group(left, fit, {})))) < placed or len(fit) < placed


@given(group=mixed_groups())
def test_nothing_moves_in_a_rebalance_without_cause(group: Group) -> None:
    """An exclusive task keeps its worker, and the others keep theirs."""
    dealt = settle(group)
    dealt = {each.member_id: dealt.get(each.member_id, []) for each in group.members}
    assert places(settle(group.running(dealt))) == places(dealt)


@given(group=mixed_groups(), chance=st.randoms(use_true_random=False))
def test_the_order_of_members_and_tasks_plays_no_part(group: Group, chance: Random) -> None:
    """The leader may be another one, with another list of the same."""
    members, tasks = list(group.members), list(group.tasks)
    chance.shuffle(members)
    chance.shuffle(tasks)
    assert places(settle(Group(members, tasks, group.current))) == places(settle(group))


def member(name: str, *owned: str) -> Member:
    """A worker that owns some tasks."""
    return Member(name, owned=frozenset(owned))


def task(name: str, worker: str | None = None, *, exclusive: bool = True) -> Task:
    """A task that may be pinned, exclusive unless it is said not to be."""
    return Task(name, worker=worker, exclusive=exclusive)


PLAIN = task("plain", exclusive=False)


def test_it_gets_the_worker_with_the_least_to_move_away() -> None:
    """What ran there goes to the others."""
    members = [member("x", "plain", "b"), member("y", "c"), member("z", "d", "e")]
    tasks = [task("own"), PLAIN, *(task(name, exclusive=False) for name in "bcde")]
    dealt = settle(Group(members, tasks))
    assert dealt["y"] == ["own"]
    assert sorted(dealt["x"] + dealt["z"]) == ["b", "c", "d", "e", "plain"]


def test_with_too_few_workers_it_waits_and_says_what_to_do() -> None:
    """One that runs is not stopped for another; whoever is left keeps the last worker."""
    group = Group([member("x", "second"), member("y", "plain")], [task("first"), task("second"), PLAIN])
    dealt = settle(group)
    assert dealt == {"x": ["second"], "y": ["plain"]}
    assert why_unassigned(dealt, group.members, group.tasks) == {"first": NONE_TO_SPARE}


def test_the_last_worker_is_its_own_only_if_there_is_nothing_else() -> None:
    """It makes way when something else comes that has nowhere to go."""
    alone = [member("x", "own")]
    assert settle(Group(alone, [task("own")])) == {"x": ["own"]}
    assert settle(Group(alone, [task("own"), PLAIN])) == {"x": ["plain"]}


def test_one_changes_its_worker_for_one_that_can_have_no_other() -> None:
    """Nobody waits while there is a way for both."""
    group = Group(
        [member("x", "any"), member("y"), member("z", "plain")], [task("any"), task("pin", "x"), PLAIN]
    )
    assert settle(group) == {"x": ["pin"], "y": ["any"], "z": ["plain"]}


def test_a_limit_of_the_others_counts() -> None:
    """Two tasks that need two workers are not pressed onto one that may have one."""
    members = [replace(member(name), max_tasks=1) for name in "xy"]
    tasks = [task("own"), PLAIN, task("q", exclusive=False)]
    assert sorted(places(settle(Group(members, tasks)))) == ["plain", "q"]


def test_a_pin_to_the_worker_of_suspects_is_not_void() -> None:
    """A task that may run there only is not dealt to others, and an exclusive one not put beside suspects."""
    group = Group(
        [member("x", "bad"), member("y"), member("z")], [task("own", "x"), task("bad", "x", exclusive=False)]
    )
    assert settle(group, {"bad"}) == {"x": ["bad"], "y": [], "z": []}


def test_who_waits_costs_the_others_no_search_each() -> None:
    """More exclusive tasks than workers, of either many: the leader's event loop waits for this."""
    members = [member(f"w{nth:04}") for nth in range(1100)]
    tasks = [task(f"t{nth:04}") for nth in range(2000)]
    plan = give_own(Isolation(members, tasks, {}))
    assert sorted(name for names in plan.reserved.values() for name in names) == [
        each.name for each in tasks[:1100]
    ]
