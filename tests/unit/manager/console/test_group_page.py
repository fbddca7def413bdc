from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from manager.console.page import PageRequest
from manager.console.pages.group import (
    MOST_CELLS,
    TASKS_SHOWN,
    GroupData,
    GroupPage,
    group_page,
    window_of,
)
from manager.core.commands import RankedTasks
from protocol.messages.groups import DescribeGroupResponse, Rebalance, RebalanceListResponse
from protocol.messages.history import Move, MovesResponse
from tests.unit.manager.console.answers import NOW, counts, group, lines, member, task

if TYPE_CHECKING:
    from protocol.messages.tasks import TaskView

ANNA, BERTA = "anna-1", "berta-2"


def view(
    *tasks: TaskView,
    of: DescribeGroupResponse | None = None,
    moves: tuple[Move, ...] = (),
    page: int = 1,
    **query: str,
) -> GroupPage:
    """The page of a group; what tasks its table has, and in which order, is the core's to say."""
    known = GroupData(
        of or group(member(BERTA), member(ANNA)),
        counts(*tasks),
        tasks if len(tasks) <= MOST_CELLS else (),
        RankedTasks(tasks=tasks[:TASKS_SHOWN], page=page, total=len(tasks)),
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


def test_the_table_has_what_was_found() -> None:
    """In the order it came in, each cause as one line; states are counted over all tasks, the worst first."""
    shown = view(
        task("c", "FAILED", cause="boom\n at line 1"),
        task("d", "UNASSIGNED"),
        task("a", owner=ANNA),
        task("b", "COMPLETED"),
    )
    assert [(line.task, line.cause) for line in shown.tasks.items] == [
        ("c", "boom"),
        ("d", None),
        ("a", None),
        ("b", None),
    ]
    assert [line.owner and line.owner.name for line in shown.tasks.items] == [None, None, "anna", None]
    assert [(each.state, each.count) for each in shown.counts] == [
        ("FAILED", 1),
        ("UNASSIGNED", 1),
        ("RUNNING", 1),
        ("COMPLETED", 1),
    ]
    assert shown.unowned == 3


def test_a_page_of_the_table_knows_its_place() -> None:
    """The core says which it is and of how many."""
    shown = view(*(task(f"t{number:03}") for number in range(900)), page=3)
    assert (shown.tasks.first, shown.tasks.last, shown.tasks.total, shown.tasks.pages) == (101, 150, 900, 18)
    assert len(shown.cells) == 900


def test_more_tasks_than_the_map_has_room_for_are_a_bar_a_worker() -> None:
    """As long as it has tasks compared with the worker that has most; what is wrong with it is said."""
    many = [task(f"t{number:04}", owner=ANNA) for number in range(MOST_CELLS)]
    shown = view(*many, task("x", "FAILED", owner=BERTA), task("y", owner=BERTA), task("z", "UNASSIGNED"))
    assert (shown.cells, shown.unowned) == ((), 1)
    anna, berta = shown.bars
    assert (anna.worker.name, anna.tasks, anna.trouble) == ("anna", MOST_CELLS, "")
    assert (berta.worker.name, berta.tasks, berta.trouble) == ("berta", 2, "1 failed")
    assert 'width="120"' in anna.bar
    assert "1 FAILED" in berta.bar
    assert berta.bar.count('width="3"') == 2
    assert view(*many).bars == view().bars == ()


def test_a_thousand_workers_are_a_page_at_a_time() -> None:
    """Those with trouble first; the map of who owns what shows the same ones."""
    workers = [member(f"w{number:03}-1") for number in range(1000)]
    workers[700] = member("w700-1", last_heartbeat_ms=NOW - 9000)
    many = [task(f"t{number:04}", owner=f"w{number:03}-1") for number in range(1000)]
    failed, stray = task("u", "FAILED", owner="w900-1"), task("v", owner="w000-1")
    shown = view(*many, failed, stray, of=group(*workers))
    assert [line.name for line in shown.members.items][:3] == ["w700", "w900", "w000"]
    assert (len(shown.members.items), shown.members.pages) == (50, 20)
    assert [bar.worker.name for bar in shown.bars] == [line.name for line in shown.members.items]
    assert [bar.trouble for bar in shown.bars][:3] == ["silent", "1 failed", ""]
    last = view(*many, failed, stray, of=group(*workers), workers="20")
    assert (last.members.items[-1].name, last.workers_page) == ("w999", "20")


def test_members_of_one_name_are_told_apart() -> None:
    """By the beginning of what is unique in their ids; others go by their names."""
    first, second = (f"w-{digit * 8}-0000-0000-0000-000000000000" for digit in "ab")
    found = lines(group(member(first), member(second), member(ANNA)))
    assert [line.name for line in found] == ["anna", "w aaaaaaaa", "w bbbbbbbb"]


def test_a_member_may_tell_anything_of_itself() -> None:
    """Metadata of another form is none; a link leads to a web page, and to nothing else."""
    told: list[Any] = ["text", {"capacity": "much"}, {"url": "javascript:alert(1)"}, {"url": "http://[::"}]
    for metadata in told:
        (line,) = lines(group(member(ANNA, metadata=metadata)))
        assert (line.ui, line.capacity) == (None, 1.0)
    (line,) = lines(group(member(ANNA, metadata={"url": "http://h:4040", "capacity": 4})))
    assert (line.ui, line.capacity, line.max_tasks) == ("http://h:4040", 4.0, None)


def test_the_load_is_what_its_tasks_measure() -> None:
    """Beside the capacity; a figure that is none does not count, and without any there is no load."""
    tasks = [
        task("t1", owner=ANNA, metrics={"load": 0.5}),
        task("t2", owner=ANNA, metrics={"load": 1}),
        task("t3", owner=ANNA, metrics={"load": "much"}),
        task("t4", owner=BERTA),
    ]
    anna, berta = lines(group(member(ANNA, metadata={"capacity": 4}), member(BERTA)), *tasks)
    assert (anna.load, anna.load_percent, anna.tasks) == (1.5, 38, 3)
    assert (berta.load, berta.load_percent) == (None, None)


@pytest.mark.parametrize(
    ("load", "capacity"), [(2**53, 5e-324), (10**400, 1), (1e308, 1)], ids=["small", "digits", "big"]
)
def test_a_load_of_any_size_is_shown(load: float, capacity: float) -> None:
    """What is out of all proportion is cut, or is no figure; the page is there in any case."""
    tasks = [task(name, owner=ANNA, metrics={"load": load}) for name in ("t1", "t2")]
    (line,) = lines(group(member(ANNA, metadata={"capacity": capacity})), *tasks)
    assert line.load_percent in {None, 999}


def test_a_silent_member_is_marked() -> None:
    """Once half its session has passed without a word."""
    quiet, silent = (member(name, last_heartbeat_ms=NOW - ms) for name, ms in ((ANNA, 4000), (BERTA, 6000)))
    assert [line.silent for line in lines(group(quiet, silent))] == [False, True]


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
