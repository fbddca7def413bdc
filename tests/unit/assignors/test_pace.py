"""How many tasks move to a member at once, and what is never put off."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.base import Member, Task
from assignors.checked import validate
from assignors.limits import within_limits
from assignors.pace import Paced, Progress, paced
from assignors.registry import BUILT_IN, load_assignor
from tests.unit.assignors.groups import Group, groups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assignors.base import Assignment

OLD = Member("old", owned=frozenset("abcd"))
NEW = Member("new")
TASKS = [Task(name, weight=weight) for name, weight in zip("abcd", (4, 1, 3, 2), strict=True)]
MOVED = {"old": [], "new": list("abcd")}


def dealing(
    dealt: Assignment,
    at_once: int,
    members: Sequence[Member] = (OLD, NEW),
    tasks: Sequence[Task] = TASKS,
    *,
    running: str | None = None,
    starting: str = "",
    given: str = "",
) -> Paced:
    """Of `dealt` what members are given; tasks are letters.

    They run what they own, unless `running` says what the old one runs and nobody else anything. The new one
    was given `given`, and has yet to start `starting`.
    """
    owned = {task: each.member_id for each in members for task in each.owned}
    owners = owned if running is None else dict.fromkeys(running, "old")
    return paced(dealt, members, tasks, at_once, Progress(owners, {"new": starting}, {"new": given}))


def test_the_smallest_move_first_and_the_others_stay_where_they_run() -> None:
    """Whoever is to get more is told how many, and nobody else."""
    assert dealing(MOVED, 2) == Paced({"old": ["a", "c"], "new": ["b", "d"]}, {"new": 2})


def test_what_is_far_behind_moves_last() -> None:
    """Its first batch takes longest; of an unknown lag as little is expected as of none."""
    tasks = [replace(task, lag=lag) for task, lag in zip(TASKS, (None, 500, 0, 20), strict=True)]
    assert dealing(MOVED, 2, tasks=tasks).assignment == {"old": ["b", "d"], "new": ["a", "c"]}


@pytest.mark.parametrize("at_once", [0, 4, 5])
def test_what_is_not_too_much_moves_as_it_was_dealt(at_once: int) -> None:
    """And all of it where there is to be no pace."""
    assert dealing(MOVED, at_once) == Paced(MOVED, {})


def test_what_a_member_runs_already_is_no_move() -> None:
    """However many tasks it has."""
    assert dealing({"old": list("abcd"), "new": []}, 1).to_come == {}


def test_what_nobody_runs_is_never_put_off_and_takes_its_part() -> None:
    """Of three that a member starts, two run nowhere: one of those that run moves besides, if only that."""
    members = [replace(OLD, owned=frozenset("ab")), NEW]
    for at_once in (3, 1):
        assert dealing(MOVED, at_once, members) == Paced({"old": ["a"], "new": ["b", "c", "d"]}, {"new": 1})


def test_what_a_member_still_starts_takes_its_part() -> None:
    """Of what was given to it before, wherever it runs by now; others move when that is started."""
    members = [replace(OLD, owned=frozenset("abc")), replace(NEW, owned=frozenset("d"))]
    for at_once, moved in ((2, "bd"), (3, "bcd")):
        step = dealing(MOVED, at_once, members, given="bd", starting="bd")
        left = [task for task in "abcd" if task not in moved]
        assert step == Paced({"old": left, "new": [*moved]}, {"new": len(left)})


def test_what_does_not_start_is_not_in_the_way_of_others_again() -> None:
    """The member waits for it no more: its former owner does not let go of it, or nobody has it."""
    for running in ("abcd", "acd"):
        step = dealing(MOVED, 1, running=running, given="b")
        assert step == Paced({"old": ["a", "c"], "new": ["b", "d"]}, {"new": 2})


def test_what_a_member_is_to_have_back_runs_nowhere() -> None:
    """It counts as its own, so that it gets it, but has to be started: it takes its part, and never stays."""
    back = replace(NEW, owned=frozenset("cd"))
    for at_once in (3, 2):
        step = dealing(MOVED, at_once, [replace(OLD, owned=frozenset("ab")), back], running="ab")
        assert step == Paced({"old": ["a"], "new": ["b", "c", "d"]}, {"new": 1})
    away = {"old": list("abcd"), "new": []}
    assert dealing(away, 1, [replace(OLD, owned=frozenset("ab")), back], running="ab") == Paced(away, {})


def test_what_a_drained_member_runs_is_not_put_off() -> None:
    """It is not among those who take part, and is waited for until it has nothing any more."""
    assert dealing({"new": list("abcd")}, 1, [NEW], running="abcd") == Paced({"new": list("abcd")}, {})


def test_what_may_not_go_on_where_it_runs_is_not_put_off() -> None:
    """Its labels, or those of its member, have changed."""
    tasks = [replace(task, labels={"zone": "x"}) for task in TASKS]
    members = [OLD, replace(NEW, labels={"zone": "x"})]
    assert dealing(MOVED, 1, members, tasks) == Paced(MOVED, {})


def test_a_limit_matters_more_than_the_pace() -> None:
    """What stays must not be too much beside what comes."""
    members = [replace(OLD, owned=frozenset("ab"), max_tasks=2), replace(NEW, owned=frozenset("cd"))]
    swapped = {"old": ["c", "d"], "new": ["a", "b"]}
    assert dealing(swapped, 1, members) == Paced({"old": ["d", "a"], "new": ["b", "c"]}, {"old": 1, "new": 1})
    dealt = {"old": ["c", "e"], "new": ["a", "b", "d"]}
    assert dealing(dealt, 1, members, [*TASKS, Task("e")]) == Paced(dealt, {})


def test_a_limit_ends_the_pace_of_those_only_who_take_what_is_too_much() -> None:
    """All others are given a few at once still."""
    full = replace(OLD, owned=frozenset("ab"), max_tasks=2)
    other = Member("other", owned=frozenset("cdgh"))
    new, newer = Member("new"), Member("newer")
    tasks = [*TASKS, Task("e"), Task("f"), Task("g"), Task("h")]
    dealt = {"old": ["e", "f"], "other": [], "new": ["a", "b"], "newer": ["c", "d", "g", "h"]}
    assert dealing(dealt, 1, [full, other, new, newer], tasks) == Paced(
        {"old": ["e", "f"], "other": ["c", "d", "h"], "new": ["a", "b"], "newer": ["g"]}, {"newer": 3}
    )


@pytest.mark.parametrize("name", BUILT_IN)
@given(
    group=groups(max_members=4, max_tasks=8, choosy=True, unequal=True),
    at_once=st.integers(1, 3),
    limit=st.sampled_from([None, None, 2]),
)
def test_round_by_round_all_is_where_it_was_to_be(
    name: str, group: Group, at_once: int, limit: int | None
) -> None:
    """Nothing is lost on the way or given twice, no task moves a second time, and no limit is exceeded."""
    members = [replace(group.members[0], max_tasks=limit), *group.members[1:]]
    owners = {task: each.member_id for each in members for task in each.owned}
    dealt = within_limits(
        lambda some, tasks: load_assignor(name).assign(some, tasks, group.current), members, group.tasks
    )
    given: Assignment = {}
    for _ in range(2 * len(group.tasks) + 2):
        step = paced(dealt, members, group.tasks, at_once, Progress(owners, {}, given))
        assert not validate(step.assignment, members, group.tasks)
        assert sorted(chain(*step.assignment.values())) == sorted(chain(*dealt.values()))
        assert limit is None or len(step.assignment.get(members[0].member_id, ())) <= limit
        if not step.to_come:
            assert {each: sorted(names) for each, names in step.assignment.items()} == {
                each: sorted(names) for each, names in dealt.items()
            }
            return
        home = {task: each for each, names in dealt.items() for task in names}
        now = {task: each for each, names in step.assignment.items() for task in names}
        assert all(each in {owners.get(task), home[task]} for task, each in now.items())
        assert now != owners
        given, owners = step.assignment, now
    raise AssertionError("it comes to no end")
