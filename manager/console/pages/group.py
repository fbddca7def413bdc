"""A group: its state machine, who owns what, how that came about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from manager.console.charts.bars import divided
from manager.console.charts.lanes import lanes
from manager.console.charts.states import state_machine
from manager.console.charts.timeline import Timeline, timeline
from manager.console.formatting import duration
from manager.console.page import Page, PageRequest
from manager.console.pages.links import group_api, group_path, task_path, transfer_api, with_query
from manager.console.pages.members import (
    KnownMember,
    MemberLabel,
    MemberLine,
    known_members,
    member_line,
)
from manager.console.pages.worker_bars import WorkerBar, worker_bars
from manager.console.paging import ListPage, list_page, page_number, page_of
from manager.console.state_labels import WORST_FIRST, StateCount, in_order
from manager.core.commands import (
    CountTasks,
    DescribeGroup,
    ListMoves,
    ListRebalances,
    ListTasks,
    RankedTasks,
    RankTasks,
    TaskCounts,
)
from manager.core.tasks.transfers import CANCELLABLE
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
    from protocol.messages.transfers import Transfer

HISTORY_SHOWN: Final = 100
MOVES_SHOWN: Final = 50
TASKS_SHOWN: Final = 50
WORKERS_SHOWN: Final = 50
TRANSFERRED_SHOWN: Final = 5
"""Names of tasks in the line of a transfer."""
FEW: Final = 60
"""So many tasks have their names on the map; of more there is only room for their colours."""
MOST_CELLS: Final = 1000
"""So many tasks are on the map at all; of more, each worker has a bar."""
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
    """A task in one line of the table."""

    task: str
    path: str
    state: str
    target: str
    owner: MemberLabel | None
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
class TransferLine:
    """A transfer that the group gives or gets; `tasks` are those that come first by name."""

    id: str
    api: str
    source: str
    target: str
    tasks: str
    step: str
    started_at_ms: int
    is_cancellable: bool


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
    members: ListPage[MemberLine]
    unowned: int
    cells: tuple[Cell, ...]
    is_named: bool
    bars: tuple[WorkerBar, ...]
    tasks: ListPage[TaskLine]
    wanted: str
    wanted_state: str
    workers_page: str
    timeline: Markup
    windows: tuple[Choice, ...]
    rebalances: tuple[Rebalance, ...]
    moves: tuple[Move, ...]
    history: tuple[GroupHistoryLine, ...]
    since_ms: int | None
    transfers: tuple[TransferLine, ...]


@dataclass(frozen=True, slots=True)
class GroupData:
    """All that is known of a group; `mapped` are all its tasks if there are few enough for the map."""

    group: DescribeGroupResponse
    counts: TaskCounts
    mapped: tuple[TaskView, ...]
    tasks: RankedTasks
    rebalances: RebalanceListResponse
    moves: MovesResponse
    transfers: tuple[Transfer, ...] = ()


async def group(page_data: PageData, request: PageRequest) -> Page:
    """The page at `/groups/{group}`."""
    name = request.group
    counts = await page_data.ask(name, CountTasks(), TaskCounts)
    data = GroupData(
        await page_data.ask(name, DescribeGroup(), DescribeGroupResponse),
        counts,
        await _mapped(page_data, name) if counts.tasks <= MOST_CELLS else (),
        await page_data.ask(name, _looked_for(request), RankedTasks),
        await page_data.ask(name, ListRebalances(limit=HISTORY_SHOWN), RebalanceListResponse),
        await page_data.ask(name, ListMoves(), MovesResponse),
        await page_data.transfers(name),
    )
    events = await page_data.latest_events(limit=1)
    view = group_page(data, request, page_data.now_ms())
    return Page("group.html", name, "overview", view, events[0].id if events else 0)


async def _mapped(page_data: PageData, name: str) -> tuple[TaskView, ...]:
    return (await page_data.ask(name, ListTasks(limit=MOST_CELLS), TaskListResponse)).tasks


def _looked_for(request: PageRequest) -> RankTasks:
    """Those with trouble first."""
    query = request.query
    state = query.get("state", "")
    return RankTasks(
        states=(state,) if state else WORST_FIRST,
        limit=TASKS_SHOWN,
        page=page_number(query.get("page")),
        name_has=query.get("q", "").strip(),
    )


def group_page(data: GroupData, request: PageRequest, now_ms: int) -> GroupPage:
    """What the page shows of what is known."""
    described, found, query = data.group, data.tasks, request.query
    name = described.group
    counts = in_order(data.counts.states)
    known = known_members(described, data.counts, now_ms)
    labels = {member.label.id: member.label for member in known}
    shown = list_page(_in_view(known), query.get("workers"), WORKERS_SHOWN)
    window = window_of(query.get("window", ""), data.rebalances.rebalances, now_ms)
    lines = [_task_line(name, task, labels.get(task.owner or "")) for task in found.tasks]
    return GroupPage(
        now_ms=now_ms,
        group=described,
        api=group_api(name),
        path=group_path(name),
        machine=state_machine(described.state),
        counts=counts,
        bar=divided({each.state: each.count for each in counts}),
        members=shown.shown(member_line),
        unowned=data.counts.unowned,
        cells=tuple(_cell(name, task, labels.get(task.owner or "")) for task in data.mapped),
        is_named=data.counts.tasks <= FEW,
        bars=worker_bars(shown.items, known) if data.counts.tasks > MOST_CELLS else (),
        tasks=page_of(lines, found.page, found.total, TASKS_SHOWN),
        wanted=query.get("q", "").strip(),
        wanted_state=query.get("state", ""),
        workers_page=query.get("workers", ""),
        timeline=timeline(_timeline(data, known, WINDOWS[window], now_ms)),
        windows=_windows(name, window),
        rebalances=data.rebalances.rebalances,
        moves=tuple(reversed(data.moves.moves))[:MOVES_SHOWN],
        history=data.rebalances.history,
        since_ms=data.moves.since_ms,
        transfers=tuple(map(_transfer_line, data.transfers)),
    )


def _transfer_line(seen: Transfer) -> TransferLine:
    names = [task.task for task in seen.tasks[:TRANSFERRED_SHOWN]]
    more = len(seen.tasks) - len(names)
    return TransferLine(
        id=str(seen.id),
        api=transfer_api(str(seen.id)),
        source=seen.source,
        target=seen.target,
        tasks=", ".join(names) + (f" and {more} more" if more else ""),
        step=seen.step.value,
        started_at_ms=seen.started_at_ms,
        is_cancellable=seen.step in CANCELLABLE,
    )


def _in_view(known: Sequence[KnownMember]) -> Sequence[KnownMember]:
    """By name as long as all can be seen; else those with trouble first."""
    return known if len(known) <= WORKERS_SHOWN else sorted(known, key=lambda member: member.trouble)


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


def _timeline(data: GroupData, known: Sequence[KnownMember], span_ms: int, now_ms: int) -> Timeline:
    begin_ms = now_ms - span_ms
    owned = {member.label.id: member.owned.tasks for member in known}
    return Timeline(
        rebalances=data.rebalances.rebalances,
        lanes=lanes(owned, data.moves.moves, begin_ms),
        workers={member.label.id: (member.label.name, member.label.colour) for member in known},
        since_ms=data.moves.since_ms,
        begin_ms=begin_ms,
        now_ms=now_ms,
    )


def _cell(name: str, task: TaskView, owner: MemberLabel | None) -> Cell:
    where = f"at {owner.name}" if owner is not None else "nobody's"
    return Cell(
        task=task.task,
        path=task_path(name, task.task),
        state=task.state,
        colour=owner.colour if owner is not None else None,
        hint=f"{task.task}: {task.state}, {where}",
    )


def _task_line(name: str, task: TaskView, owner: MemberLabel | None) -> TaskLine:
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
