"""What is read of an assignment again, and what is not: most members are given what they had before."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from manager.core.commands import DeleteTask, PutTask
from manager.core.membership import rebalance
from manager.core.tasks import assignments
from protocol.errors import RefusedError
from protocol.messages.base import encode_opaque
from protocol.messages.membership import MemberAssignment
from protocol.states import Target
from tests.unit.manager.core.bench import Bench, dealt, definition

if TYPE_CHECKING:
    from manager.core.tasks.assignments import Placement

TASKS = tuple(f"t{number}" for number in range(8))
MEMBERS = 3


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.herd(MEMBERS, *TASKS)
    return bench


def given(bench: Bench) -> dict[str, Any]:
    """What each member has, as it was told."""
    shares: dict[str, Any] = {each: {"tasks": []} for each in bench.group.members}
    for task, member in bench.group.tasks.assigned.items():
        shares[member]["tasks"].append(task)
    return shares


def read(bench: Bench, what: dict[str, Any]) -> Placement | str:
    """The placement, or what is wrong with it."""
    entries = [MemberAssignment(member, encode_opaque(each)) for member, each in what.items()]
    try:
        return assignments.read(bench.group, entries)
    except RefusedError as refusal:
        return refusal.failure.message


def read_anew(bench: Bench, what: dict[str, Any]) -> Placement | str:
    """The same, by a group that has kept nothing."""
    shares, bench.group.tasks.shares = bench.group.tasks.shares, {}
    try:
        return read(bench, what)
    finally:
        bench.group.tasks.shares = shares


def plain(found: Placement | str) -> Placement | str:
    """Without what is told only of those that are given something else."""
    return found if isinstance(found, str) else replace(found, revisions={}, anew={})


def moved(before: dict[str, str], after: dict[str, str]) -> int:
    """How many tasks somebody had who has them no more, if all are looked at."""
    return sum(before.get(task, member) != member for task, member in after.items())


def test_what_is_given_again_word_for_word_is_not_read(bench: Bench) -> None:
    """Only those are looked up that are given something else; the outcome is the same."""
    first, second, third = bench.group.members
    what = given(bench)
    what[first]["tasks"].remove("t0")
    what[second]["tasks"].append("t0")
    found = read(bench, what)
    assert not isinstance(found, str)
    assert found.revisions.keys() == found.anew.keys() == {first, second}
    assert plain(found) == plain(read_anew(bench, what))
    assert found.shares[third] is bench.group.tasks.shares[third]


def test_a_task_that_is_kept_and_given_to_another_one_is_given_twice(bench: Bench) -> None:
    """The one that keeps it is not read for that, and is counted all the same."""
    _, second, _ = bench.group.members
    what = given(bench)
    what[second]["tasks"].append("t0")
    assert "'t0' is given twice" in str(read(bench, what))


def test_a_task_that_is_gone_is_no_task_of_those_either_that_have_it_still(bench: Bench) -> None:
    """What was kept of a member is not once a task of it was deleted."""
    what = given(bench)
    bench.ask(DeleteTask(task="t0"))
    assert "t0" not in bench.group.tasks.assigned
    assert read(bench, what) == read_anew(bench, what)


def test_what_is_said_beside_the_tasks_is_read_each_time(bench: Bench) -> None:
    """How many are to come, and why others are left out."""
    first, second, _ = bench.group.members
    what = given(bench)
    what[first]["more"] = 2
    what[second]["left_out"] = {"t1": "there is no room"}
    what[second]["tasks"].remove("t1")
    bench.rejoin([*bench.group.members], kind="sparkherd", metadata={"x": 1})
    bench.settle([*bench.group.members], what)
    again = read(bench, what)
    assert plain(again) == plain(read_anew(bench, what))
    assert not isinstance(again, str)
    assert (again.to_come, again.left_out) == ({first: 2}, {"t1": "there is no room"})


@pytest.mark.parametrize("beside", [{}, {"more": 2}])
def test_a_task_is_given_twice_also_where_another_one_is_given_to_nobody(beside: dict[str, int]) -> None:
    """Whether its member was told more than its tasks or not: as many are assigned then as are given."""
    bench = Bench()
    first, second, third, *_ = bench.herd(5, *TASKS)
    what = given(bench)
    what[first] |= beside
    bench.rejoin([*bench.group.members], kind="sparkherd", metadata={"x": 1})
    bench.settle([*bench.group.members], what)
    what[first] = {"tasks": what[first]["tasks"]}
    what[first]["tasks"].remove("t0")
    what[second]["tasks"].append(what[third]["tasks"][0])
    assert "is given twice" in str(read(bench, what))


def test_what_a_static_members_successor_has_need_not_be_read_either() -> None:
    """It was given to the former one."""
    bench = Bench()
    former, other = bench.stable("one", "two", kind="sparkherd")
    bench.create(*TASKS)
    bench.redeal([former, other], dealt([former, other], TASKS))
    successor = str(bench.join(instance_id="one", kind="sparkherd").answer.member_id)
    assert successor != former
    what = given(bench)
    found = read(bench, what)
    assert plain(found) == plain(read_anew(bench, what))
    assert not isinstance(found, str)
    assert not found.anew


def test_an_owner_hears_of_a_change_although_its_assignment_was_not_read(bench: Bench) -> None:
    """It concerned it when it was made."""
    first, *_ = bench.group.members
    bench.ask(PutTask(task="t0", definition=definition(3.0)))
    revision = bench.group.header.tasks_revision
    bench.rejoin([*bench.group.members], kind="sparkherd", metadata={"x": 1})
    bench.settle([*bench.group.members], given(bench))
    assert bench.group.members[first].concern_revision == revision


@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_read_otherwise_than_by_a_group_that_has_kept_nothing(seed: int) -> None:
    """Whatever is moved, given twice, left out, deleted or unknown, again and again."""
    dice = random.Random(seed)
    bench = Bench()
    bench.herd(MEMBERS, *TASKS)
    for _ in range(6):
        what = given(bench)
        for _ in range(dice.randrange(4)):
            _spoil(dice, bench, what)
        found = read(bench, what)
        assert plain(found) == plain(read_anew(bench, what))
        if not isinstance(found, str):
            before = bench.group.tasks.assigned
            assert rebalance._count_moved(before, found.anew) == moved(before, found.assigned)
            _follow(bench, what, found)


def _follow(bench: Bench, what: dict[str, Any], found: Placement) -> None:
    """As a sync does."""
    for member in bench.group.members.values():
        assignment = encode_opaque(what[member.id])
        member.row = msgspec.structs.replace(member.row, assignment=assignment)
    assignments.follow(bench.group, found)


def _spoil(dice: random.Random, bench: Bench, what: dict[str, Any]) -> None:
    giver, taker = dice.choice([*what.values()]), dice.choice([*what.values()])
    task = dice.choice([*giver["tasks"], "unknown"])
    match dice.randrange(5):
        case 0:
            bench.ask(DeleteTask(task=task))
        case 1 if task in giver["tasks"]:
            taker["tasks"].append(task)
        case 2:
            giver["more"] = 1
        case 3:
            giver["left_out"] = {task: "why not"}
        case _ if task in giver["tasks"]:
            giver["tasks"].remove(task)
            taker["tasks"].append(task)
        case _:
            taker["tasks"].append(task)


def test_an_owner_that_is_given_its_task_back_need_not_let_go(bench: Bench) -> None:
    """It had not let go of it yet; the time that it had for that ends nothing any more."""
    first, second, _ = bench.group.members
    ids, owners = [*bench.group.members], dict(bench.group.tasks.assigned)
    bench.redeal(ids, {**owners, "t0": second})
    assert "t0" in bench.group.tasks.taken_since
    bench.redeal(ids, owners)
    assert not bench.group.tasks.taken_since
    for _ in range(30):
        bench.pass_time(3_000)
        for member in ids:
            bench.heartbeat(member)
    assert bench.owner("t0")[0] == first


def test_only_what_somebody_had_can_have_moved(bench: Bench) -> None:
    """A task that is placed for the first time has not."""
    ids, owners = [*bench.group.members], dict(bench.group.tasks.assigned)
    assert bench.group.rebalances[-1].moved == 0
    bench.redeal(ids, {**owners, "t0": ids[1], "t1": ids[2]})
    assert bench.group.rebalances[-1].moved == 2


def test_a_deleted_task_is_not_to_stop(bench: Bench) -> None:
    """There is no such task any more, and one of its name may be another."""
    bench.create("s", target=Target.STOPPED)
    assert bench.group.tasks.is_to_stop("s")
    bench.ask(DeleteTask(task="s"))
    assert not bench.group.tasks.is_to_stop("s")
