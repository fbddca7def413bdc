"""A group: its state machine, who owns what, how that came about."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from manager.console.charts.bars import divided
from manager.console.charts.lanes import lanes
from manager.console.charts.states import state_machine
from manager.console.charts.timeline import Timeline, timeline
from manager.console.formatting import duration
from manager.console.page import Page, PageRequest
from manager.console.pages.links import group_api, group_path, task_path, with_query
from manager.console.pages.members import MemberLine, member_lines
from manager.console.paging import ListPage, list_page
from manager.console.state_labels import StateCount, in_order, rank
from manager.core.commands import DescribeGroup, ListMoves, ListRebalances, ListTasks
from manager.core.views.group_status import headline
from protocol.messages.groups import DescribeGroupResponse, RebalanceListResponse
from protocol.messages.history import MovesResponse
from protocol.messages.tasks import TaskListResponse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from manager.console.page_data import PageData
    from protocol.messages.groups import GroupHistoryLine, Rebalance
    from protocol.messages.history import Move
    from protocol.messages.tasks import TaskView

HISTORY_SHOWN: Final = 100
MOVES_SHOWN: Final = 50
TASKS_SHOWN: Final = 50
FEW: Final = 60
"""So many tasks have their names on the map; of more there is only room for their colours."""
WINDOWS: Final = {"15min": 900_000, "1h": 3_600_000, "6h": 21_600_000, "24h": 86_400_000, "7d": 604_800_000}
"""How much time the chart may show, in ms."""
SEEN_AT_FIRST: Final = 8
"""Rebalances that the chart shows if nobody has said how much time it is to show."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A task on the map; `colour` is its owner's, None if nobody owns it."""

    task: str
    path: str
    state: str
    colour: int | None
    hint: str


@dataclass(frozen=True, slots=True)
class TaskLine:
    """A task in one line of the table; `owner` is the worker's line."""

    task: str
    path: str
    state: str
    target: str
    owner: MemberLine | None
    token: int
    batch: int | None
    since_ms: int
    cause: str | None


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several views of the same thing."""

    name: str
    path: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class GroupPage:
    """What the page shows."""

    now_ms: int
    group: DescribeGroupResponse
    api: str
    path: str
    machine: Markup
    counts: tuple[StateCount, ...]
    bar: Markup
    members: tuple[MemberLine, ...]
    cells: tuple[Cell, ...]
    is_named: bool
    tasks: ListPage[TaskLine]
    wanted: str
    wanted_state: str
    timeline: Markup
    windows: tuple[Choice, ...]
    rebalances: tuple[Rebalance, ...]
    moves: tuple[Move, ...]
    history: tuple[GroupHistoryLine, ...]
    since_ms: int | None


@dataclass(frozen=True, slots=True)
class GroupData:
    """All that the API says of a group."""

    group: DescribeGroupResponse
    tasks: TaskListResponse
    rebalances: RebalanceListResponse
    moves: MovesResponse


async def group(page_data: PageData, request: PageRequest) -> Page:
    """The page at `/groups/{group}`."""
    name = request.group
    data = GroupData(
        await page_data.ask(name, DescribeGroup(), DescribeGroupResponse),
        await page_data.ask(name, ListTasks(), TaskListResponse),
        await page_data.ask(name, ListRebalances(limit=HISTORY_SHOWN), RebalanceListResponse),
        await page_data.ask(name, ListMoves(), MovesResponse),
    )
    events = await page_data.latest_events(limit=1)
    view = group_page(data, request, page_data.now_ms())
    return Page("group.html", name, "overview", view, events[0].id if events else 0)


def group_page(data: GroupData, request: PageRequest, now_ms: int) -> GroupPage:
    """What the page shows of what the API says."""
    described = data.group
    tasks = data.tasks.tasks
    counts = in_order(Counter(task.state for task in tasks))
    members = member_lines(described, tasks, now_ms)
    owners: dict[str | None, MemberLine] = {member.id: member for member in members}
    window = window_of(request.query.get("window", ""), data.rebalances.rebalances, now_ms)
    wanted, state = request.query.get("q", "").strip(), request.query.get("state", "")
    looked_for = [task for task in tasks if _is_wanted(task, wanted, state)]
    looked_for.sort(key=lambda task: (rank(task.state), task.task))
    lines = [_task_line(described.group, task, owners.get(task.owner)) for task in looked_for]
    return GroupPage(
        now_ms=now_ms,
        group=described,
        api=group_api(described.group),
        path=group_path(described.group),
        machine=state_machine(described.state),
        counts=counts,
        bar=divided({each.state: each.count for each in counts}),
        members=members,
        cells=tuple(_cell(described.group, task, owners.get(task.owner)) for task in tasks),
        is_named=len(tasks) <= FEW,
        tasks=list_page(
            sorted(lines, key=lambda line: (rank(line.state), line.task)),
            request.query.get("page"),
            TASKS_SHOWN,
        ),
        wanted=wanted,
        wanted_state=state,
        timeline=timeline(_timeline(data, members, WINDOWS[window], now_ms)),
        windows=_windows(described.group, window),
        rebalances=data.rebalances.rebalances,
        moves=tuple(reversed(data.moves.moves))[:MOVES_SHOWN],
        history=data.rebalances.history,
        since_ms=data.moves.since_ms,
    )


def window_of(wanted: str, newest_first: Sequence[Rebalance], now_ms: int) -> str:
    """What was asked for, or the shortest window that shows the latest rebalances."""
    if wanted in WINDOWS:
        return wanted
    latest = newest_first[:SEEN_AT_FIRST]
    passed_ms = now_ms - latest[-1].started_at_ms if latest else 0
    return next((key for key, ms in WINDOWS.items() if ms >= passed_ms), [*WINDOWS][-1])


def _windows(name: str, chosen: str) -> tuple[Choice, ...]:
    return tuple(
        Choice(duration(ms), with_query(group_path(name), window=key) + "#timeline", key == chosen)
        for key, ms in WINDOWS.items()
    )


def _timeline(data: GroupData, members: Sequence[MemberLine], span_ms: int, now_ms: int) -> Timeline:
    begin_ms = now_ms - span_ms
    owned = {member.id: member.tasks for member in members}
    return Timeline(
        rebalances=data.rebalances.rebalances,
        lanes=lanes(owned, data.moves.moves, begin_ms),
        workers={member.id: (member.name, member.colour) for member in members},
        since_ms=data.moves.since_ms,
        begin_ms=begin_ms,
        now_ms=now_ms,
    )


def _is_wanted(task: TaskView, wanted: str, state: str) -> bool:
    return (not state or task.state == state) and wanted.lower() in task.task.lower()


def _cell(name: str, task: TaskView, owner: MemberLine | None) -> Cell:
    where = f"at {owner.name}" if owner is not None else "nobody's"
    return Cell(
        task=task.task,
        path=task_path(name, task.task),
        state=task.state,
        colour=owner.colour if owner is not None else None,
        hint=f"{task.task}: {task.state}, {where}",
    )


def _task_line(name: str, task: TaskView, owner: MemberLine | None) -> TaskLine:
    return TaskLine(
        task=task.task,
        path=task_path(name, task.task),
        state=task.state,
        target=task.target,
        owner=owner,
        token=task.token,
        batch=task.batch_id,
        since_ms=task.since_ms,
        cause=headline(task.cause),
    )
