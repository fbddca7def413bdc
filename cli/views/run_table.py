"""What `sparkherd run` shows: a table of tasks on a terminal; elsewhere the log says it all."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from cli.views.left_out import left_out
from cli.views.output import print_json
from protocol.states import TaskState

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.live import Live
    from rich.table import Table

    from protocol.messages.ownership import TaskReport
    from worker.standalone.local_manager import LocalManager, LocalTask

T = TypeVar("T")

STYLES = {TaskState.RUNNING: "green", TaskState.COMPLETED: "cyan", TaskState.FAILED: "bold red"}
COLUMNS = ("TASK", "STATE", "BATCH", "ROWS", "ROWS/S", "BATCH MS", "RESTARTS", "LEFT OUT", "CAUSE")
LEFT_OUT = COLUMNS.index("LEFT OUT")
"""Only if one of the tasks tells of it."""


@contextmanager
def run_view(tasks: Sequence[LocalTask], *, quiet: bool = False) -> Iterator[RunView]:
    """A table if somebody looks at a terminal, and scripts do not read it; it leaves the last one there."""
    if quiet or not sys.stdout.isatty():
        yield RunView(tasks)
        return
    from rich.console import Console  # noqa: PLC0415 - only who sees it pays for it
    from rich.live import Live  # noqa: PLC0415 - the same

    console = Console(highlight=False, markup=False)
    # A log that goes to a file stays there.
    with Live(console=console, auto_refresh=False, redirect_stderr=sys.stderr.isatty()) as live:
        yield RunTable(tasks, live)


class RunView:
    """Remembers how the tasks are doing, and shows nothing."""

    def __init__(self, tasks: Sequence[LocalTask]) -> None:
        self._tasks = tasks
        self.last: list[dict[str, Any]] = []

    def show(self, manager: LocalManager) -> None:
        """The tasks have news."""
        self.last = [_status(task.name, manager) for task in self._tasks]


class RunTable(RunView):
    """A table that changes in place, below the log."""

    def __init__(self, tasks: Sequence[LocalTask], live: Live) -> None:
        super().__init__(tasks)
        self._live = live

    def show(self, manager: LocalManager) -> None:
        """Draw the table anew."""
        super().show(manager)
        self._live.update(_table(self.last), refresh=True)


def print_end(statuses: Sequence[dict[str, Any]]) -> None:
    """How each task was doing at the end, for scripts."""
    print_json({"tasks": statuses})


def _status(task: str, manager: LocalManager) -> dict[str, Any]:
    """Named as in the API's status of a task."""
    report = manager.reports.get(task)
    return {
        "task": task,
        "state": (TaskState.UNASSIGNED if report is None else report.state).value,
        "token": 0 if report is None else report.token,
        "batch_id": None if report is None else _last_batch(report),
        "metrics": None if report is None else report.metrics,
        "cause": None if report is None else report.cause,
        "restarts": manager.restarts.get(task, 0),
    }


def _last_batch(report: TaskReport) -> int | None:
    return report.committed if report.batch_id is None else report.batch_id


def _table(statuses: Sequence[dict[str, Any]]) -> Table:
    from rich.table import Table  # noqa: PLC0415 - only who sees it pays for it
    from rich.text import Text  # noqa: PLC0415 - the same

    table = Table(box=None, pad_edge=False, header_style="bold")
    is_told = any(left_out(status["metrics"]) is not None for status in statuses)
    for column in _without(LEFT_OUT, COLUMNS, unless=is_told):
        table.add_column(column, overflow="ellipsis", no_wrap=column == "CAUSE")
    for status in statuses:
        state = Text(status["state"], style=STYLES.get(TaskState(status["state"]), ""))
        cells = (status["task"], state, *map(_cell, _figures(status)))
        table.add_row(*_without(LEFT_OUT, cells, unless=is_told))
    return table


def _figures(status: dict[str, Any]) -> tuple[object, ...]:
    metrics = status["metrics"] or {}
    cause = status["cause"].partition("\n")[0] if status["cause"] else None
    figures = (metrics.get(name) for name in ("total_rows", "rows_per_second", "batch_ms"))
    return status["batch_id"], *figures, status["restarts"], left_out(metrics), cause


def _without(place: int, cells: Sequence[T], *, unless: bool) -> Sequence[T]:
    return cells if unless else (*cells[:place], *cells[place + 1 :])


def _cell(value: object) -> str:
    return "-" if value is None else str(value)
