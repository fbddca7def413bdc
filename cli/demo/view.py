"""What the demo shows while it runs: a live view on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from protocol.states import TaskState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli.demo.lag_history import LagHistory
    from cli.demo.snapshot import Snapshot, TaskLine

STYLES = {
    TaskState.RUNNING: "green",
    TaskState.FAILED: "bold red",
    TaskState.UNASSIGNED: "yellow",
}
TENTHS = 10
BAR = 60
"""Columns of the bar, and of what is drawn of the lag."""


class View(Protocol):
    """Where the story is told."""

    def say(self, sentence: str) -> None:
        """A step of the story; it stays."""
        ...

    def show(self, snapshot: Snapshot, lags: LagHistory) -> None:
        """How the group is doing now, and how far it was behind until now."""
        ...


@contextmanager
def view(stream: IO[str]) -> Iterator[View]:
    """A live view when `stream` is a terminal, plain lines otherwise."""
    if not stream.isatty():
        yield PlainView(stream)
        return
    with Live(console=Console(file=stream), auto_refresh=False) as live:
        yield LiveView(live)


class PlainView:
    """One line a step, a change of generation, and a tenth of the way, with the lag if there is one."""

    def __init__(self, stream: IO[str] = sys.stdout) -> None:
        self._stream = stream
        self._start = time.monotonic()
        self._shown: tuple[str, int] | None = None
        self._tenth = 0

    def say(self, sentence: str) -> None:
        """Print it behind the time since the start."""
        print(f"{time.monotonic() - self._start:6.1f} s  {sentence}", file=self._stream, flush=True)

    def show(self, snapshot: Snapshot, lags: LagHistory) -> None:
        """Print what is new."""
        if (now := (snapshot.state, snapshot.generation)) != self._shown:
            self._shown = now
            self.say(
                f"group {snapshot.state}, generation {snapshot.generation}, {len(snapshot.workers)} workers"
            )
        if (tenth := int(TENTHS * snapshot.share_done)) > self._tenth:
            self._tenth = tenth
            behind = f", lag {lags}  {lags.drawn(BAR)}" if lags.known else ""
            self.say(f"{tenth * 100 // TENTHS} % of the rows{behind}")


class LiveView:
    """Tables of workers and tasks that change in place, under the steps of the story."""

    def __init__(self, live: Live) -> None:
        self._start = time.monotonic()
        self._live = live

    def say(self, sentence: str) -> None:
        """Print it above the tables."""
        self._live.console.print(f"{time.monotonic() - self._start:6.1f} s  {sentence}", highlight=False)

    def show(self, snapshot: Snapshot, lags: LagHistory) -> None:
        """Draw the tables anew."""
        self._live.update(_picture(snapshot, lags), refresh=True)


def _picture(snapshot: Snapshot, lags: LagHistory) -> Group:
    head = Text.assemble(
        "\ngroup ", (snapshot.state, "bold"), "   generation ", (str(snapshot.generation), "bold")
    )
    bar = Table.grid(padding=(0, 1))
    done = min(snapshot.share_done, 1.0)
    bar.add_row("rows", ProgressBar(total=1.0, completed=done, width=BAR), f"{done:.0%}")
    if lags.known:
        bar.add_row("lag", lags.drawn(BAR), str(lags))
    return Group(head, _workers_table(snapshot), _tasks_table(snapshot, lags), bar)


def _workers_table(snapshot: Snapshot) -> Table:
    table = Table(box=None, header_style="bold")
    for column in ("worker", "tasks"):
        table.add_column(column)
    for worker in snapshot.workers:
        name = f"{worker} (leader)" if worker == snapshot.leader else worker
        table.add_row(name, ", ".join(snapshot.owned_by(worker)) or "-")
    return table


def _tasks_table(snapshot: Snapshot, lags: LagHistory) -> Table:
    table = Table(box=None, header_style="bold")
    for column in ("task", "state", "owner"):
        table.add_column(column)
    for column in ("token", "batch", "rows", *(("lag",) if lags.known else ())):
        table.add_column(column, justify="right")
    for _, task in sorted(snapshot.tasks.items()):
        table.add_row(*_task_row(task), *((_number(task.lag),) if lags.known else ()))
    return table


def _task_row(task: TaskLine) -> tuple[str | Text, ...]:
    state = Text(task.state.value, style=STYLES.get(task.state, ""))
    of_all = "" if task.rows_in_all is None else f" / {task.rows_in_all:,}"
    batch = _number(task.batch_id)
    return (task.name, state, task.owner or "-", str(task.token), batch, f"{task.rows:,}{of_all}")


def _number(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"
