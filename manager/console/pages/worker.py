"""A worker: what it takes of its machine, and which of its tasks costs what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from manager.console.charts.ranked import Bar, ranked
from manager.console.formatting import duration, figure, size
from manager.console.page import Page, PageRequest
from manager.console.pages.costs import state_memory
from manager.console.pages.links import group_path, task_path, worker_path
from manager.console.pages.members import MemberLine, known_members, member_line
from manager.console.paging import ListPage, list_page
from manager.core.commands import CountTasks, DescribeGroup, ListCosts, TaskCostList, TaskCounts
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.groups import DescribeGroupResponse
from protocol.task_metrics import figure as figure_of
from protocol.task_metrics import figures

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markupsafe import Markup

    from manager.console.page_data import PageData
    from manager.core.commands import TaskCost
    from protocol.messages.heap import HeapRise
    from protocol.messages.resources import WorkerResources

TASKS_SHOWN: Final = 50


@dataclass(frozen=True, slots=True)
class Resource:
    """What the worker takes of one thing; `percent` of what there is, if that is known."""

    name: str
    value: str
    percent: int | None = None


@dataclass(frozen=True, slots=True)
class TaskCosts:
    """A task of the worker in one line; None is what is not known, or does not apply to it."""

    task: str
    path: str
    state: str
    busy: str | None
    batch: str | None
    state_rows: str | None
    state_memory: str | None
    watermark_lag: str | None
    late_batches: str | None
    late_rows: str | None
    spilled: str | None


@dataclass(frozen=True, slots=True)
class WorkerPage:
    """What the page shows."""

    now_ms: int
    group: str
    group_path: str
    path: str
    member: MemberLine
    resources: tuple[Resource, ...]
    rise: str | None
    busy: Markup | None
    memory: Markup | None
    tasks: ListPage[TaskCosts]


async def worker(page_data: PageData, request: PageRequest) -> Page:
    """The page at `/groups/{group}/workers/{member_id}`."""
    described = await page_data.ask(request.group, DescribeGroup(), DescribeGroupResponse)
    counts = await page_data.ask(request.group, CountTasks(), TaskCounts)
    costs = await page_data.ask(request.group, ListCosts(owner=request.member), TaskCostList)
    view = worker_page(described, counts, costs.tasks, request, page_data.now_ms())
    newest = await page_data.latest_events(limit=1)
    return Page("worker.html", view.member.name, "workers", view, newest[0].id if newest else 0)


def worker_page(
    group: DescribeGroupResponse,
    counts: TaskCounts,
    owned: Sequence[TaskCost],
    request: PageRequest,
    now_ms: int,
) -> WorkerPage:
    """What the page shows of what is known; `owned` are the worker's tasks.

    Raises:
        RefusedError: there is no such member.
    """
    name = group.group
    known = next(
        (each for each in known_members(group, counts, now_ms) if each.label.id == request.member), None
    )
    if known is None:
        raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID, f"{name} has no such member")
    member, told, rise = member_line(known), known.told.resources, known.told.heap_rise
    return WorkerPage(
        now_ms=now_ms,
        group=name,
        group_path=group_path(name),
        path=worker_path(name, member.id),
        member=member,
        resources=() if told is None else tuple(resources_of(told)),
        rise=None if rise is None else rise_of(rise),
        busy=ranked("busy", "Share of the time", _busy(owned, member.capacity), percent),
        memory=ranked("memory", "Memory of states", _memory(owned), size),
        tasks=list_page(sorted(owned, key=_dearest_first), request.query.get("page"), TASKS_SHOWN).shown(
            lambda task: _line(name, task, member.capacity)
        ),
    )


def resources_of(told: WorkerResources) -> Iterator[Resource]:
    """In words, as far as they are known."""
    for words, value, whole in (
        ("Heap in use", told.heap_bytes, told.heap_max_bytes),
        ("After the last GC", told.heap_after_gc_bytes, told.heap_max_bytes),
        ("Direct memory", told.direct_bytes, None),
        ("Memory of Python's processes", told.python_bytes, None),
        ("Checkpoints of the group", told.checkpoint_bytes, told.checkpoint_disk_bytes),
        ("Free on their disk", told.checkpoint_free_bytes, told.checkpoint_disk_bytes),
    ):
        if value is not None:
            yield Resource(
                words,
                size(value) if whole is None else f"{size(value)} of {size(whole)}",
                round(100 * value / whole) if whole else None,
            )
    if told.gc_share is not None:
        yield Resource("Time in GC", percent(told.gc_share), round(100 * told.gc_share))
    if told.python_processes is not None:
        yield Resource("Processes of Python", figure(told.python_processes))
    if told.loop_lag_ms is not None:
        yield Resource("Event loop late by", duration(told.loop_lag_ms))


def rise_of(told: HeapRise) -> str:
    """That its heap grows, and that nobody knows with which task."""
    grown = f"from {size(told.from_bytes)} to {size(told.to_bytes)} in {duration(told.over_ms)}"
    more = told.candidates - len(told.tasks)
    names = ", ".join(told.tasks) + (f" and {more} more" if more else "")
    return f"Its heap grows, {grown}, with one of {names}. Move or stop one of them, and it is known."


def percent(share: float) -> str:
    """`12.5 %` of an eighth."""
    return f"{figure(round(100 * share, 1))} %"


def _share(task: TaskCost, capacity: float) -> float | None:
    """Of the time that its batches take; a load is that share of the worker's capacity."""
    load = figure_of(task.metrics, "load")
    return None if load is None or capacity <= 0 else load / capacity


def _busy(tasks: Sequence[TaskCost], capacity: float) -> Iterator[Bar]:
    for task in tasks:
        if share := _share(task, capacity):
            yield Bar(task.task, share)


def _memory(tasks: Sequence[TaskCost]) -> Iterator[Bar]:
    for task in tasks:
        if taken := state_memory(task.metrics):
            yield Bar(task.task, taken)


def _dearest_first(task: TaskCost) -> tuple[float, float, str]:
    load, memory = figure_of(task.metrics, "load"), state_memory(task.metrics)
    return -(load or 0.0), -(memory or 0.0), task.task


def _line(group: str, task: TaskCost, capacity: float) -> TaskCosts:
    told, state = task.metrics, figures(task.metrics, "state")
    share, batch, lag = (
        _share(task, capacity),
        figure_of(told, "batch_ms"),
        figure_of(told, "watermark_lag_ms"),
    )
    late = [figure_of(told, name) for name in ("late_batches", "late_rows")]
    spilled = figure_of(told, "spilled_bytes")
    return TaskCosts(
        task=task.task,
        path=task_path(group, task.task),
        state=task.state,
        busy=None if share is None else percent(share),
        batch=None if batch is None else duration(batch),
        state_rows=figure(state["rows"]) if "rows" in state else None,
        state_memory=size(state["memory_bytes"]) if "memory_bytes" in state else None,
        watermark_lag=None if lag is None else duration(lag),
        late_batches=None if late[0] is None else figure(late[0]),
        late_rows=None if late[1] is None else figure(late[1]),
        spilled=None if spilled is None else size(spilled),
    )
