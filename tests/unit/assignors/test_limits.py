"""`max_tasks` of members, for every built-in assignor and for some that cheat."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from assignors.base import Assignor, Member, Task
from assignors.checked import make_valid, validate
from assignors.limits import MOST_ROUNDS, within_limits
from assignors.registry import BUILT_IN, load_assignor
from assignors.seating import Seating
from tests.unit.assignors.groups import Group, groups

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

    from assignors.base import Assignment


class AllToTheFirst(Assignor):
    """Heeds nothing at all: pins, labels, limits."""

    name = "all-to-the-first"

    def assign(
        self,
        members: Sequence[Member],
        tasks: Sequence[Task],
        current: Mapping[str, Sequence[str]],  # noqa: ARG002 - as said
    ) -> Assignment:
        return {min(member.member_id for member in members): sorted(task.name for task in tasks)}


class StayPut(Assignor):
    """What runs may stay; what does not all goes to the first that may run it."""

    name = "stay-put"

    def assign(
        self,
        members: Sequence[Member],
        tasks: Sequence[Task],
        current: Mapping[str, Sequence[str]],  # noqa: ARG002 - what members say they run counts
    ) -> Assignment:
        dealt: Assignment = {member.member_id: [] for member in members}
        group = Group(members, tasks)
        for task in sorted(tasks, key=lambda each: each.name):
            may = sorted(group.may_run(task))
            home = [each.member_id for each in members if task.name in each.owned and each.member_id in may]
            if may:
                dealt[(home or may)[0]].append(task.name)
        return dealt


CHEATS: tuple[Assignor, ...] = (AllToTheFirst(), StayPut())
FAITHFUL = {"all-to-the-first"}
"""They are refused nothing, though they heed no pins: what they deal to somebody who may not run it stays."""


@pytest.fixture(params=[*sorted(BUILT_IN), *(each.name for each in CHEATS)], scope="module")
def assignor(request: pytest.FixtureRequest) -> Assignor:
    """Each built-in assignor in turn, then those that cheat."""
    cheats = {each.name: each for each in CHEATS}
    return cheats.get(request.param) or load_assignor(request.param)


@st.composite
def limited_groups(draw: st.DrawFn, *, choosy: bool = True) -> Group:
    """Groups of which some members, or all, may have only so many tasks."""
    group = draw(groups(max_members=5, max_tasks=14, choosy=choosy, unequal=True))
    limits = st.sampled_from([None, 1, 2, 3, 5])
    return replace(group, members=[replace(each, max_tasks=draw(limits)) for each in group.members])


def deal(assignor: Assignor, group: Group) -> Assignment:
    """What the leader makes of it."""
    return within_limits(
        lambda members, tasks: assignor.assign(members, tasks, group.current), group.members, group.tasks
    )


def places(assignment: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Where each task is."""
    return {name: member for member, names in assignment.items() for name in names}


def most(group: Group, taken: Mapping[str, int] | None = None, names: set[str] | None = None) -> int:
    """How many of the tasks can be placed at once, beside what is taken (Kuhn's matching, seat by seat)."""
    room = {
        each.member_id: (len(group.tasks) if each.max_tasks is None else each.max_tasks)
        - (taken or {}).get(each.member_id, 0)
        for each in group.members
    }
    seats = {member: [(member, nth) for nth in range(room[member])] for member in room}
    by_seat: dict[tuple[str, int], Task] = {}

    def place(task: Task, tried: set[tuple[str, int]]) -> bool:
        for seat in (seat for member in group.may_run(task) for seat in seats[member]):
            if seat not in tried:
                tried.add(seat)
                if seat not in by_seat or place(by_seat[seat], tried):
                    by_seat[seat] = task
                    return True
        return False

    return sum(place(task, set()) for task in group.tasks if names is None or task.name in names)


@given(group=limited_groups())
def test_nobody_is_given_more_than_its_limit(assignor: Assignor, group: Group) -> None:
    """Whatever an assignor deals, and what comes of it can be used."""
    dealt = deal(assignor, group)
    assert validate(dealt, group.members, group.tasks) == ()
    for member in group.members:
        assert member.max_tasks is None or len(dealt.get(member.member_id, ())) <= member.max_tasks


@given(group=limited_groups())
def test_what_can_be_placed_is(assignor: Assignor, group: Group) -> None:
    """As many tasks as fit at all, each where it may run, though others have to move for it."""
    dealt = places(deal(assignor, group))
    if assignor.name in FAITHFUL:
        return
    assert all(dealt[task.name] in group.may_run(task) for task in group.tasks if task.name in dealt)
    assert len(dealt) == most(group)


@given(group=limited_groups(choosy=False))
def test_a_cheat_leaves_no_room_unused(group: Group) -> None:
    """One that gives it all to one worker costs nobody a task, where all may run everything."""
    assert len(places(deal(AllToTheFirst(), group))) == most(group)


@given(group=limited_groups())
def test_a_limit_that_nobody_reaches_changes_nothing(assignor: Assignor, group: Group) -> None:
    """The assignor's word is sent as it is."""
    alone = assignor.assign(group.members, group.tasks, group.current)
    members = [replace(each, max_tasks=len(alone.get(each.member_id, ())) or 1) for each in group.members]
    assert deal(assignor, replace(group, members=members)) == alone


@given(group=limited_groups())
def test_nothing_moves_in_a_rebalance_without_cause(assignor: Assignor, group: Group) -> None:
    """What was cut once is not cut otherwise the next time."""
    dealt = deal(assignor, group)
    dealt = {each.member_id: dealt.get(each.member_id, []) for each in group.members}
    again = group.running(dealt)
    assert places(deal(assignor, again)) == places(dealt)


@given(group=limited_groups(), chance=st.randoms(use_true_random=False))
def test_the_order_of_members_and_tasks_plays_no_part(
    assignor: Assignor, group: Group, chance: Random
) -> None:
    """The leader may be another one, with another list of the same."""
    members, tasks = list(group.members), list(group.tasks)
    chance.shuffle(members)
    chance.shuffle(tasks)
    assert places(deal(assignor, Group(members, tasks, group.current))) == places(deal(assignor, group))


@given(group=limited_groups())
def test_no_task_that_runs_is_moved_for_one_that_fits_without(group: Group) -> None:
    """If all that is new fits beside all that runs, all of that stays where it is."""
    running = {task.name for task in group.tasks for each in group.members if task.name in each.owned}
    homes = {
        task.name: each.member_id
        for each in group.members
        for task in group.tasks
        if task.name in each.owned and each.member_id in group.may_run(task)
    }
    taken = Counter(homes.values())
    assume(homes.keys() == running)
    assume(all(each.max_tasks is None or taken[each.member_id] <= each.max_tasks for each in group.members))
    new = {task.name for task in group.tasks} - running
    assume(most(group, taken, new) == most(group) - len(running))
    assert places(deal(StayPut(), group)).items() >= homes.items()


def test_what_one_may_not_have_is_laid_out_by_the_assignor_over_the_others() -> None:
    """Not heaped upon whoever has room: of 12 tasks, one that may have 2 leaves 5 for each of two others."""
    members = [Member("a", max_tasks=2), Member("b"), Member("c")]
    group = Group(members, [Task(f"t{nth:02}") for nth in range(12)])
    dealt = deal(load_assignor("sticky"), group)
    assert {member: len(names) for member, names in dealt.items()} == {"a": 2, "b": 5, "c": 5}


def test_what_a_full_member_runs_makes_way_for_what_may_run_nowhere_else() -> None:
    """Only as much as is needed: one of two goes, though both might."""
    members = [Member("a", owned=frozenset("xy"), max_tasks=2), Member("b")]
    tasks = [Task("x"), Task("y"), Task("pinned", worker="a")]
    dealt = deal(StayPut(), Group(members, tasks))
    assert dealt == {"a": ["pinned", "y"], "b": ["x"]}


def test_of_those_that_can_make_way_one_that_does_not_run_does() -> None:
    """Though one that runs comes first by name."""
    members = [Member("a", owned=frozenset("r"), max_tasks=2), Member("b", max_tasks=1)]
    able = {"r": (0, 1), "z": (0, 1), "pinned": (0,)}
    seating = Seating(members, able, {0: ["r", "z"]})
    seating.seat(["pinned"])
    assert (seating.names(0), seating.names(1), seating.moved) == (["pinned", "r"], ["z"], True)


def test_a_lowered_limit_takes_what_is_too_much_and_nothing_else() -> None:
    """Whoever runs more than it may keeps the first by name."""
    members = [Member("a", owned=frozenset("wxyz"), max_tasks=3), Member("b", max_tasks=1)]
    group = Group(members, [Task(name) for name in "wxyz"])
    assert deal(StayPut(), group) == {"a": ["w", "x", "y"], "b": ["z"]}


def test_an_assignor_is_asked_no_more_often_than_that() -> None:
    """One that heaps it all on one member after the other would be asked once for each."""
    asked: list[int] = []

    def ask(members: Sequence[Member], tasks: Sequence[Task]) -> Assignment:
        asked.append(len(members))
        return AllToTheFirst().assign(members, tasks, {})

    members = [Member(f"w{nth}", max_tasks=1) for nth in range(9)]
    dealt = within_limits(ask, members, [Task(f"t{nth}") for nth in range(9)])
    assert asked == [9, 8, 7, 6][:MOST_ROUNDS]
    assert Counter(len(names) for names in dealt.values()) == {1: 9}


def test_a_task_that_an_assignor_leaves_out_is_not_placed() -> None:
    """Limits are no reason to know better."""
    members = [Member("a", max_tasks=1), Member("b")]
    dealt = within_limits(
        lambda members, _: {members[0].member_id: ["t0", "t1"]} if len(members) > 1 else {},
        members,
        [Task(f"t{nth}") for nth in range(3)],
    )
    assert dealt == {"a": ["t0"], "b": ["t1"]}


def test_what_stands_in_for_an_assignor_keeps_limits_too() -> None:
    """The last good assignment may be of a time when the limit was another."""
    members = [Member("a", max_tasks=1), Member("b")]
    last_good = {"a": ["t0", "t1"]}
    dealt = within_limits(partial(make_valid, last_good), members, [Task("t0"), Task("t1")])
    assert dealt == {"a": ["t0"], "b": ["t1"]}


@example(size=300)
@given(size=st.integers(1, 40))
def test_many_tasks_and_few_seats(size: int) -> None:
    """Every seat is taken, no task twice."""
    members = [Member(f"w{nth}", max_tasks=nth % 4 + 1) for nth in range(size)]
    group = Group(members, [Task(f"t{nth}") for nth in range(4 * size)])
    dealt = deal(load_assignor("sticky"), group)
    assert [len(dealt[each.member_id]) for each in members] == [each.max_tasks for each in members]
