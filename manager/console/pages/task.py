"""A task: how it is doing, what it did over the last hour, where it ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from manager.console.charts.series import Column, Subject, series
from manager.console.definitions import shown
from manager.console.formatting import duration, figure
from manager.console.page import Page, PageRequest
from manager.console.pages.costs import CostsPanel, costs_panel
from manager.console.pages.lag import LagPanel, lag_panel
from manager.console.pages.left_out import LeftOutPanel, left_out_panel
from manager.console.pages.links import edit_path, group_path, quarantine_path, task_api
from manager.console.pages.members import MemberLabel, member_labels
from manager.console.pages.task_alarms import TaskAlarmsPanel, task_alarms_panel
from manager.console.pages.task_history import Entry, history_of
from manager.core.commands import DescribeGroup, GetTask, GetTaskAlarms, GetTaskHistory
from protocol.messages.alarms import TaskAlarmsResponse
from protocol.messages.groups import DescribeGroupResponse
from protocol.messages.history import TaskHistoryResponse
from protocol.messages.tasks import TaskResponse
from protocol.states import Target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from markupsafe import Markup

    from manager.console.page_data import PageData
    from protocol.messages.events import Event
    from protocol.messages.history import FiguresPoint

LEAST_MS: Final = 1000
TABLE_MS: Final = 300_000
"""How much time a line of the table of figures stands for."""


@dataclass(frozen=True, slots=True)
class BatchFigure:
    """One figure of the last batch."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class FiguresLine:
    """Five minutes of the last hour in figures."""

    at_ms: int
    rows: str
    rate: str
    batches: int
    slowest: str | None


@dataclass(frozen=True, slots=True)
class TitledChart:
    """A chart, and what stands above it."""

    title: str
    chart: Markup


@dataclass(frozen=True, slots=True)
class TaskPage:
    """What the page shows."""

    now_ms: int
    group: str
    group_path: str
    api: str
    edit_path: str
    quarantine_path: str
    task: TaskResponse
    owner: MemberLabel | None
    headline: str | None
    trace: str | None
    figures: tuple[BatchFigure, ...]
    charts: tuple[TitledChart, ...]
    costs: CostsPanel | None
    lag: LagPanel | None
    left_out: LeftOutPanel | None
    alarms: TaskAlarmsPanel | None
    lines: tuple[FiguresLine, ...]
    since_ms: int | None
    definition: str
    history: tuple[Entry, ...]
    may_pause: bool
    may_resume: bool
    may_stop: bool


@dataclass(frozen=True, slots=True)
class TaskData:
    """All that the API says of a task; `events` are the newest of it, the newest first."""

    task: TaskResponse
    history: TaskHistoryResponse
    alarms: TaskAlarmsResponse
    group: DescribeGroupResponse
    events: tuple[Event, ...]


async def task(page_data: PageData, request: PageRequest) -> Page:
    """The page at `/groups/{group}/tasks/{task}`."""
    group, name = request.group, request.task
    data = TaskData(
        await page_data.ask(group, GetTask(task=name), TaskResponse),
        await page_data.ask(group, GetTaskHistory(task=name), TaskHistoryResponse),
        await page_data.ask(group, GetTaskAlarms(task=name), TaskAlarmsResponse),
        await page_data.ask(group, DescribeGroup(), DescribeGroupResponse),
        (await page_data.events_like(lambda event: event.task == name, group=group))[0],
    )
    newest = await page_data.latest_events(limit=1)
    view = task_page(data, page_data.now_ms())
    return Page("task.html", name, "overview", view, newest[0].id if newest else 0)


def task_page(data: TaskData, now_ms: int) -> TaskPage:
    """What the page shows of what the API says."""
    task, history, name = data.task, data.history, data.group.group
    members = member_labels(data.group)
    headline, _, trace = (task.cause or "").partition("\n")
    return TaskPage(
        now_ms=now_ms,
        group=name,
        group_path=group_path(name),
        api=task_api(name, task.task),
        edit_path=edit_path(name, task.task),
        quarantine_path=quarantine_path(name, task.task),
        task=task,
        owner=members.get(task.owner or ""),
        headline=headline or None,
        trace=trace or None,
        figures=tuple(figures_of(task.metrics or {})),
        charts=tuple(_charts(history, now_ms)),
        costs=costs_panel(task.metrics),
        lag=lag_panel(task.lag),
        left_out=left_out_panel(task.metrics, task.definition),
        alarms=task_alarms_panel(data.alarms),
        lines=tuple(_lines(history)),
        since_ms=history.since_ms,
        definition=shown(task.definition),
        history=history_of(
            data.history.history, data.events, {label.id: label.name for label in members.values()}
        ),
        may_pause=task.target == Target.RUNNING.value,
        may_resume=task.target != Target.RUNNING.value,
        may_stop=task.target != Target.STOPPED.value,
    )


def figures_of(metrics: Mapping[str, Any]) -> Iterator[BatchFigure]:
    """What the last report says, of the figures that are known; anything may be among them."""
    for name, words, form in (
        ("rows", "Rows in the last batch", figure),
        ("batch_ms", "It took", duration),
        ("rows_per_second", "Rows/s in it", figure),
        ("total_rows", "Rows since it was started", figure),
        ("sink_rows", "Rows in the sink", figure),
        ("load", "Load", figure),
    ):
        value = metrics.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            yield BatchFigure(words, form(value))
    lag = metrics.get("lag")
    if isinstance(lag, dict):
        told = [f"{figure(left)} {unit}" for unit, left in lag.items() if isinstance(left, int | float)]
        if told:
            yield BatchFigure("Left to read", ", ".join(told))


def _charts(history: TaskHistoryResponse, now_ms: int) -> Iterator[TitledChart]:
    """That of the lag only if somebody has told one."""
    rates = [Column(point.at_ms, point.rows / _passed_s(point, history, now_ms)) for point in history.points]
    times = [Column(point.at_ms, point.batch_ms) for point in history.points if point.batch_ms is not None]
    lags = [Column(point.at_ms, point.lag) for point in history.points if point.lag is not None]
    rows = Subject("rows", "Rows per second", history.interval_ms, unit="rows/s")
    batches = Subject("batches", "Batch time, the longest of 10 s", history.interval_ms, form=batch_time)
    behind = Subject("lag", "Rows behind", history.interval_ms, unit="rows")
    for subject, columns in ((rows, rates), (batches, times), *([(behind, lags)] if lags else [])):
        yield TitledChart(subject.title, series(subject, columns, now_ms, history.since_ms))


def batch_time(ms: float) -> str:
    """`80 ms`, `1.5 s`, `250 s`: short enough for an axis."""
    return f"{figure(ms)} ms" if ms < LEAST_MS else f"{figure(ms / 1000)} s"


def _passed_s(point: FiguresPoint, history: TaskHistoryResponse, now_ms: int) -> float:
    """How long an interval has lasted; the last one is not over yet."""
    return min(max(now_ms - point.at_ms, LEAST_MS), history.interval_ms) / 1000


def _lines(history: TaskHistoryResponse) -> Iterator[FiguresLine]:
    """The newest first."""
    spans: dict[int, list[FiguresPoint]] = {}
    for point in history.points:
        spans.setdefault(point.at_ms // TABLE_MS, []).append(point)
    for span, points in sorted(spans.items(), reverse=True):
        rows = sum(point.rows for point in points)
        times = [point.batch_ms for point in points if point.batch_ms is not None]
        yield FiguresLine(
            at_ms=span * TABLE_MS,
            rows=figure(rows),
            rate=figure(rows / (TABLE_MS / 1000)),
            batches=sum(point.batches for point in points),
            slowest=duration(max(times)) if times else None,
        )
