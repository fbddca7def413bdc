from __future__ import annotations

from typing import Any

import pytest

from manager.console.page import PageRequest
from manager.console.pages.group import GroupData, GroupPage, group_page, window_of
from manager.console.pages.members import member_lines
from protocol.messages.groups import DescribeGroupResponse, Rebalance, RebalanceListResponse
from protocol.messages.history import Move, MovesResponse
from protocol.messages.tasks import TaskListResponse, TaskView
from tests.unit.manager.console.answers import NOW, group, member, task

ANNA, BERTA = "anna-1", "berta-2"


def view(
    *tasks: TaskView, of: DescribeGroupResponse | None = None, moves: tuple[Move, ...] = (), **query: str
) -> GroupPage:
    known = GroupData(
        of or group(member(BERTA), member(ANNA)),
        TaskListResponse(tasks=tasks, tasks_revision=1),
        RebalanceListResponse(rebalances=()),
        MovesResponse(since_ms=None, moves=moves),
    )
    return group_page(known, PageRequest("flights", "", query), NOW)


def test_the_map_has_the_owners_colour_for_each_task() -> None:
    """Workers have colours in the order of their names; a task that nobody owns has none."""
    shown = view(task("t1", owner=BERTA), task("t2", owner=ANNA), task("t3", "UNASSIGNED"))
    assert [(cell.task, cell.colour) for cell in shown.cells] == [("t1", 1), ("t2", 0), ("t3", None)]
    assert [cell.hint for cell in shown.cells] == [
        "t1: RUNNING, at berta",
        "t2: RUNNING, at anna",
        "t3: UNASSIGNED, nobody's",
    ]
    assert shown.is_named
    assert not view(*(task(f"t{number}") for number in range(900))).is_named


def test_tasks_with_trouble_come_first() -> None:
    """The table is ordered by how much a task wants attention, then by name; its cause is one line."""
    shown = view(
        task("a"),
        task("b", "COMPLETED"),
        task("c", "FAILED", cause="boom\n at line 1"),
        task("d", "UNASSIGNED"),
    )
    assert [(line.task, line.cause) for line in shown.tasks.items] == [
        ("c", "boom"),
        ("d", None),
        ("a", None),
        ("b", None),
    ]
    assert [(each.state, each.count) for each in shown.counts] == [
        ("FAILED", 1),
        ("UNASSIGNED", 1),
        ("RUNNING", 1),
        ("COMPLETED", 1),
    ]


def test_of_900_tasks_those_are_shown_that_are_looked_for() -> None:
    """By a part of the name and by state; fifty at a time, while the map has them all."""
    tasks = [task(f"task-{number:03}", "FAILED" if number % 100 == 0 else "RUNNING") for number in range(900)]
    assert [line.task for line in view(*tasks, q="TASK-1", state="FAILED").tasks.items] == ["task-100"]
    shown = view(*tasks, page="18")
    assert (shown.tasks.first, shown.tasks.last, shown.tasks.total, len(shown.cells)) == (851, 900, 900, 900)


def test_members_of_one_name_are_told_apart() -> None:
    """By the beginning of what is unique in their ids; others go by their names."""
    first, second = (f"w-{digit * 8}-0000-0000-0000-000000000000" for digit in "ab")
    lines = member_lines(group(member(first), member(second), member(ANNA)), (), NOW)
    assert [line.name for line in lines] == ["anna", "w aaaaaaaa", "w bbbbbbbb"]


def test_a_member_may_tell_anything_of_itself() -> None:
    """Metadata of another form is none; a link leads to a web page, and to nothing else."""
    told: list[Any] = ["text", {"capacity": "much"}, {"url": "javascript:alert(1)"}, {"url": "http://[::"}]
    for metadata in told:
        (line,) = member_lines(group(member(ANNA, metadata=metadata)), (), NOW)
        assert (line.ui, line.capacity) == (None, 1.0)
    (line,) = member_lines(group(member(ANNA, metadata={"url": "http://h:4040", "capacity": 4})), (), NOW)
    assert (line.ui, line.capacity, line.max_tasks) == ("http://h:4040", 4.0, None)


def test_the_load_is_what_its_tasks_measure() -> None:
    """Beside the capacity; a figure that is none does not count, and without any there is no load."""
    tasks = [
        task("t1", owner=ANNA, metrics={"load": 0.5}),
        task("t2", owner=ANNA, metrics={"load": 1}),
        task("t3", owner=ANNA, metrics={"load": "much"}),
        task("t4", owner=BERTA),
    ]
    anna, berta = member_lines(group(member(ANNA, metadata={"capacity": 4}), member(BERTA)), tasks, NOW)
    assert (anna.load, anna.load_percent, anna.tasks) == (1.5, 38, 3)
    assert (berta.load, berta.load_percent) == (None, None)


@pytest.mark.parametrize(
    ("load", "capacity"), [(2**53, 5e-324), (10**400, 1), (1e308, 1)], ids=["small", "digits", "big"]
)
def test_a_load_of_any_size_is_shown(load: float, capacity: float) -> None:
    """What is out of all proportion is cut, or is no figure; the page is there in any case."""
    tasks = [task(name, owner=ANNA, metrics={"load": load}) for name in ("t1", "t2")]
    (line,) = member_lines(group(member(ANNA, metadata={"capacity": capacity})), tasks, NOW)
    assert line.load_percent in {None, 999}


def test_a_silent_member_is_marked() -> None:
    """Once half its session has passed without a word."""
    quiet, silent = (member(name, last_heartbeat_ms=NOW - ms) for name, ms in ((ANNA, 4000), (BERTA, 6000)))
    assert [line.silent for line in member_lines(group(quiet, silent), (), NOW)] == [False, True]


@pytest.mark.parametrize(
    ("asked", "ages_min", "window"),
    [
        ("", [], "15min"),
        ("", [1, 20], "1h"),
        ("", [1] * 8 + [9999], "15min"),
        ("", [99999], "7d"),
        ("6h", [1], "6h"),
    ],
)
def test_the_chart_shows_the_latest_rebalances(asked: str, ages_min: list[int], window: str) -> None:
    """Unless a person says how much time it is to show."""
    rebalances = [Rebalance(1, "why", NOW - age * 60_000, 1, 1, 0) for age in ages_min]
    assert window_of(asked, rebalances, NOW) == window


def test_moves_are_shown_newest_first() -> None:
    """As all histories are."""
    moves = tuple(Move(at_ms=NOW - 9 + n, task=f"t{n}", left=None, joined=ANNA) for n in range(3))
    assert [move.task for move in view(moves=moves).moves] == ["t2", "t1", "t0"]
