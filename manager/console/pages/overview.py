"""The overview: everything at a glance, what is wrong first."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from manager.console.charts.bars import divided
from manager.console.formatting import counted, duration
from manager.console.page import Page, PageRequest
from manager.console.pages.links import group_path, task_path
from manager.console.paging import ListPage, list_page
from manager.console.state_labels import StateCount, in_order
from manager.core.views.group_status import is_rebalancing
from protocol.states import UNREADABLE, TaskState

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markupsafe import Markup

    from manager.console.page_data import PageData
    from manager.core.views.group_status import GroupStatus, Trouble
    from protocol.messages.cluster import ManagerListResponse, ManagerSummary
    from protocol.messages.events import Event

BAD: Final = "bad"
WARN: Final = "warn"
NOTE: Final = "note"
SEVERITIES: Final = (BAD, WARN, NOTE)
TOLD_ALONE: Final = 5
"""Troubled tasks of one kind in one group that are told one by one; the others are counted."""
EVENTS_SHOWN: Final = 8
GROUPS_SHOWN: Final = 50


@dataclass(frozen=True, slots=True)
class Alert:
    """Something to look at; `where` is what `path` leads to."""

    severity: str
    what: str
    where: str
    path: str
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """One of the large numbers at the top."""

    name: str
    value: str
    note: str


@dataclass(frozen=True, slots=True)
class GroupLine:
    """A group in one line."""

    name: str
    path: str
    state: str
    generation: int
    workers: int
    draining: int
    tasks: int
    counts: tuple[StateCount, ...]
    bar: Markup


@dataclass(frozen=True, slots=True)
class ManagerLine:
    """A manager in one line; `lease` is how long it lasts."""

    id: str
    url: str
    alive: bool
    slots: str
    lease: str
    started_at_ms: int


@dataclass(frozen=True, slots=True)
class OverviewPage:
    """What the page shows."""

    now_ms: int
    alerts: tuple[Alert, ...]
    figures: tuple[Figure, ...]
    groups: ListPage[GroupLine]
    wanted: str
    managers: tuple[ManagerLine, ...]
    events: tuple[Event, ...]


async def overview(page_data: PageData, request: PageRequest) -> Page:
    """The page at `/`."""
    statuses = [status for status in await page_data.group_statuses() if request.caller.covers(status.group)]
    managers = await page_data.managers()
    newest, _ = await page_data.events_like(request.may_see)
    events = newest[:EVENTS_SHOWN]
    view = overview_page(
        statuses, managers, events, request, now_ms=page_data.now_ms(), can_store=page_data.is_storage_healthy
    )
    return Page("overview.html", "Overview", "overview", view, events[0].id if events else 0)


def overview_page(
    statuses: Sequence[GroupStatus],
    managers: ManagerListResponse,
    events: tuple[Event, ...],
    request: PageRequest,
    *,
    now_ms: int,
    can_store: bool,
) -> OverviewPage:
    """What the page shows of what there is."""
    wanted = request.query.get("q", "").strip()
    named = [status for status in statuses if wanted.lower() in status.group.lower()]
    return OverviewPage(
        now_ms=now_ms,
        alerts=tuple(alerts(statuses, managers, can_store=can_store)),
        figures=tuple(_figures(statuses, managers)),
        groups=list_page([group_line(status) for status in named], request.query.get("page"), GROUPS_SHOWN),
        wanted=wanted,
        managers=tuple(_manager_line(manager, len(managers.slots)) for manager in managers.managers),
        events=events,
    )


def alerts(statuses: Sequence[GroupStatus], managers: ManagerListResponse, *, can_store: bool) -> list[Alert]:
    """Everything that wants looking at, the worst first."""
    found = [*_of_managers(managers, can_store=can_store), *(each for t in statuses for each in _of_group(t))]
    return sorted(found, key=lambda alert: SEVERITIES.index(alert.severity))


def _of_managers(managers: ManagerListResponse, *, can_store: bool) -> Iterator[Alert]:
    if not can_store:
        yield Alert(BAD, "The database takes no writes", "managers", "/#managers", "nothing can be changed")
    for manager in managers.managers:
        if not manager.alive:
            yield Alert(WARN, "A manager is gone", manager.id, "/#managers", "its lease has run out")
    orphans = sum(slot.manager is None for slot in managers.slots)
    if orphans:
        told = f"{counted(orphans, 'slot')} of groups without a manager"
        yield Alert(BAD, told, "managers", "/#managers", "their groups are not coordinated")


def _of_group(status: GroupStatus) -> Iterator[Alert]:
    path = group_path(status.group)
    runnable = sum(status.tasks.values()) - status.tasks.get(TaskState.STOPPED.value, 0)
    if not status.workers and runnable - status.tasks.get(TaskState.COMPLETED.value, 0) > 0:
        told = counted(runnable, "task")
        yield Alert(BAD, f"No worker for {told}", status.group, path, "start one for this group")
    else:
        yield from _of_tasks(status)
    if status.state == UNREADABLE:
        yield Alert(BAD, "Cannot be read from the database", status.group, path, status.fault)
    if is_rebalancing(status.state):
        yield Alert(NOTE, "Rebalancing", status.group, path, status.state)
    if status.draining:
        yield Alert(NOTE, f"{counted(status.draining, 'worker')} draining", status.group, path)


def _of_tasks(status: GroupStatus) -> Iterator[Alert]:
    for state, severity in (
        (TaskState.FAILED, BAD),
        (TaskState.UNASSIGNED, WARN),
        (TaskState.RESTARTING, WARN),
    ):
        count = status.tasks.get(state.value, 0)
        told = [trouble for trouble in status.troubles if trouble.state == state.value]
        if 0 < count <= TOLD_ALONE:
            yield from (_of_task(status, trouble, severity) for trouble in told)
        elif count:
            path = f"{group_path(status.group)}?state={state.value}#tasks"
            why = next((trouble.cause for trouble in told if trouble.cause), None)
            yield Alert(severity, f"{counted(count, 'task')} {state.value}", status.group, path, why)


def _of_task(status: GroupStatus, trouble: Trouble, severity: str) -> Alert:
    where = f"{status.group} / {trouble.task}"
    path = task_path(status.group, trouble.task)
    return Alert(severity, f"Task {trouble.state}", where, path, trouble.cause)


def _figures(statuses: Sequence[GroupStatus], managers: ManagerListResponse) -> Iterator[Figure]:
    tasks = sum((Counter(status.tasks) for status in statuses), Counter[str]())
    total, running = sum(tasks.values()), tasks[TaskState.RUNNING.value]
    stable = sum(status.state == "Stable" for status in statuses)
    alive = sum(manager.alive for manager in managers.managers)
    draining = sum(status.draining for status in statuses)
    yield Figure("Groups", f"{len(statuses):,}", f"{stable} stable")
    yield Figure("Tasks", f"{total:,}", f"{running:,} running")
    yield Figure("Failed", f"{tasks[TaskState.FAILED.value]:,}", "given up on")
    yield Figure("Workers", f"{sum(t.workers for t in statuses):,}", f"{draining} draining")
    yield Figure("Managers", f"{alive}", f"of {len(managers.managers)} known")


def group_line(status: GroupStatus) -> GroupLine:
    """A group as the table shows it."""
    counts = in_order(status.tasks)
    return GroupLine(
        name=status.group,
        path=group_path(status.group),
        state=status.state,
        generation=status.generation_id,
        workers=status.workers,
        draining=status.draining,
        tasks=sum(status.tasks.values()),
        counts=counts,
        bar=divided({each.state: each.count for each in counts}),
    )


def _manager_line(manager: ManagerSummary, slots: int) -> ManagerLine:
    left = manager.lease_left_ms
    return ManagerLine(
        id=manager.id,
        url=manager.url,
        alive=manager.alive,
        slots=f"{manager.slots} of {slots}" if slots else "all",
        lease="without end" if left is None else duration(left) if left > 0 else "run out",
        started_at_ms=manager.started_at_ms,
    )
