"""What the leader is told of the tasks to be placed: all at once, or in pages if it knows these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from manager.core.commands import CreateTask, DeleteTask, SetTarget
from manager.core.tasks import offers
from protocol.messages.lag import TaskLag
from protocol.messages.membership import OfferRequest
from protocol.states import Target
from tests.unit.manager.core.bench import SESSION_MS, Bench, definition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.unit.manager.core.bench import Ask

NAMES = tuple(f"t{number:02}" for number in range(7))


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offers, "PAGE", 3)
    monkeypatch.setattr(offers, "LOOKED_AT", 4)


class Group:
    """A worker that leads another, after their join and before its sync."""

    def __init__(self, bench: Bench, *, pages: bool = True) -> None:
        self.bench = bench
        self.metadata = {"offer_pages": pages}
        first = bench.join(kind="sparkherd", metadata=self.metadata)
        bench.pass_time()
        newcomer = bench.join(kind="sparkherd", metadata=self.metadata)
        self.joined = bench.join(first.answer.member_id, kind="sparkherd", metadata=self.metadata).answer
        self.leader, self.follower = first.answer.member_id, newcomer.answer.member_id

    def ask(self, after: str, **fields: Any) -> Ask:
        """For what comes after that name."""
        present = {"member_id": self.leader, "generation_id": self.bench.group.generation}
        return self.bench.ask(OfferRequest(**present | fields, after=after))

    def pages(self) -> list[list[str]]:
        """All of them, by the names that are in each."""
        answers = [self.joined]
        while (after := answers[-1].more) is not msgspec.UNSET:
            answers.append(self.ask(after).answer)
        return [names(each.tasks) for each in answers]


def names(tasks: Iterable[Any]) -> list[str]:
    """Of offered tasks."""
    return [each.task for each in tasks]


def test_a_leader_that_knows_pages_is_told_of_every_task_once(bench: Bench) -> None:
    """In the order of their names; what it was told of may be placed."""
    bench.create(*reversed(NAMES))
    group = Group(bench)
    assert group.pages() == [["t00", "t01", "t02"], ["t03", "t04", "t05"], ["t06"]]
    assert bench.group.tasks.offered == set(NAMES)
    bench.deal([group.leader, group.follower], dict.fromkeys(NAMES, group.follower))
    assert bench.state == "Stable"


@pytest.mark.parametrize("count", [0, 3, 4])
def test_the_last_page_says_that_it_is_the_last(bench: Bench, count: int) -> None:
    """Also where it is full."""
    bench.create(*NAMES[:count])
    group = Group(bench)
    told = group.pages()
    assert [name for page in told for name in page] == [*NAMES[:count]]
    assert len(told) == (2 if count > 3 else 1)


def test_a_leader_of_an_earlier_version_is_told_of_all_at_once(bench: Bench) -> None:
    """It would place the first few, and leave the others to nobody."""
    bench.create(*NAMES)
    group = Group(bench, pages=False)
    assert group.pages() == [[*NAMES]]


def test_many_tasks_of_which_few_are_to_be_placed_are_gone_through_in_parts(bench: Bench) -> None:
    """A page without any task has others after it."""
    bench.create(*NAMES)
    for name in NAMES[:6]:
        bench.ask(SetTarget(task=name, target=Target.STOPPED))
    assert Group(bench).pages() == [[], ["t06"]]


@pytest.mark.parametrize("is_asked", [True, False])
def test_a_page_keeps_the_leader_s_session(bench: Bench, *, is_asked: bool) -> None:
    """Many pages take longer than one session."""
    bench.create(*NAMES)
    group = Group(bench)
    for _ in range(3):
        bench.pass_time(SESSION_MS * 2 // 3)
        bench.heartbeat(group.follower)
        if is_asked and group.leader in bench.group.members:
            group.ask("t02")
    assert (group.leader in bench.group.members) is is_asked


def test_no_task_is_lost_where_the_names_are_gone_through_in_parts(bench: Bench) -> None:
    """The last name of a part and the first of the next one are both told."""
    bench.create(*NAMES)
    for name in (NAMES[0], NAMES[1], NAMES[2]):
        bench.ask(SetTarget(task=name, target=Target.STOPPED))
    assert Group(bench).pages() == [["t03"], ["t04", "t05", "t06"]]


def test_a_leader_that_asks_for_pages_without_saying_so_gets_them(bench: Bench) -> None:
    """And not all again."""
    bench.create(*NAMES)
    assert names(Group(bench, pages=False).ask("t01").answer.tasks) == ["t02", "t03", "t04"]


def test_what_is_new_or_gone_between_two_pages_is_told_as_it_is_then(bench: Bench) -> None:
    """A name that comes before is told at the next rebalance, which a new task brings about."""
    bench.create(*NAMES)
    group = Group(bench)
    for name in ("t000", "t041"):
        bench.ask(CreateTask(task=name, definition=definition(), target=Target.RUNNING))
    bench.ask(DeleteTask(task="t04"))
    assert group.pages()[1:] == [["t03", "t041", "t05"], ["t06"]]
    bench.deal([group.leader, group.follower], dict.fromkeys([*NAMES[:3], "t05"], group.follower))
    bench.pass_time(60_000 // 12)
    assert bench.state == "PreparingRebalance"


def test_a_load_is_told_until_another_one_is_measured(bench: Bench) -> None:
    """A new owner measures for half a minute: meanwhile the task is no less work than it was."""
    giver, taker = ids = bench.herd(2, "t1", "t2")
    bench.report(giver, "t1", bench.owner("t1")[1], metrics={"batch_ms": 5, "load": 0.3})
    bench.report(taker, "t2", bench.owner("t2")[1], metrics={"batch_ms": 5})
    bench.release(giver, t1=bench.owner("t1")[1])
    bench.redeal(ids, dict.fromkeys(("t1", "t2"), taker))
    bench.claim(taker, "t1")
    told = {"batch_ms": 1}
    for load in (None, 0.2):
        bench.report(
            taker, "t1", bench.owner("t1")[1], metrics=told if load is None else {**told, "load": load}
        )
        offered = offers.Offers(bench.group).page("").tasks
        assert {each.task: each.load for each in offered} == {"t1": load or 0.3, "t2": None}


def test_how_far_a_task_is_behind_is_told_if_it_is_known(bench: Bench) -> None:
    """In rows, by the last word on it."""
    [worker] = bench.herd(1, "t1", "t2", "t3")
    for task, lag in (("t1", TaskLag(at_ms=1, rows=70)), ("t2", TaskLag(at_ms=1))):
        bench.report(worker, task, bench.owner(task)[1], lag=lag)
    offered = offers.Offers(bench.group).page("").tasks
    assert [each.lag for each in offered] == [70, msgspec.UNSET, msgspec.UNSET]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"member_id": "nobody"}, "UNKNOWN_MEMBER_ID"),
        ({"generation_id": 1}, "ILLEGAL_GENERATION"),
        ({"instance_id": "i"}, "UNKNOWN_MEMBER_ID"),
    ],
)
def test_nobody_else_is_told(bench: Bench, fields: dict[str, Any], error: str) -> None:
    """The checks are those of every request."""
    bench.create(*NAMES)
    assert Group(bench).ask("t02", **fields).error == error


def test_a_follower_is_told_of_none(bench: Bench) -> None:
    """It has nothing to place."""
    bench.create(*NAMES)
    group = Group(bench)
    assert group.ask("t02", member_id=group.follower).error == "INVALID_REQUEST"


def test_once_the_group_rebalances_or_has_its_assignment_there_is_no_page(bench: Bench) -> None:
    """Whoever asks then joins again, or has no need to ask."""
    bench.create(*NAMES)
    group = Group(bench)
    bench.deal([group.leader, group.follower], {})
    assert group.ask("t02").error == "INVALID_REQUEST"
    bench.join(kind="sparkherd")
    assert group.ask("t02").error == "REBALANCE_IN_PROGRESS"
