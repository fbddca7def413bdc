"""How `groups watch` shows a group: tables that change in place on a terminal, lines of changes elsewhere."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from cli.views.output import ago, print_json_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType
    from rich.live import Live
    from rich.table import Table

    from cli.views.group_changes import Change, GroupSnapshot
    from protocol.messages.tasks import TaskView

STYLES = {
    "RUNNING": "green",
    "COMPLETED": "cyan",
    "FAILED": "bold red",
    "UNASSIGNED": "yellow",
    "Stable": "green",
}
TOLD = 5
"""How many of the latest changes stand below the tables."""


@contextmanager
def watch_view(*, as_json: bool) -> Iterator[WatchView]:
    """The view for whoever looks; at the end a terminal has the last tables, and its cursor as it was."""
    if as_json or not sys.stdout.isatty():
        yield JsonLines() if as_json else WatchView()
        return
    from rich.console import Console  # noqa: PLC0415 - only who sees it pays for it
    from rich.live import Live  # noqa: PLC0415 - the same

    with Live(console=Console(highlight=False, markup=False), auto_refresh=False) as live:
        yield WatchTables(live)


class WatchView:
    """A line a change, behind the time."""

    def show(self, snapshot: GroupSnapshot, news: Sequence[Change]) -> None:  # noqa: ARG002 - for who draws it all
        """What is new."""
        for change in news:
            click.echo(_line(change))


class JsonLines(WatchView):
    """A JSON object a change, for scripts."""

    def show(self, snapshot: GroupSnapshot, news: Sequence[Change]) -> None:  # noqa: ARG002 - as above
        """What is new."""
        for change in news:
            now = {"at_ms": time.time_ns() // 1_000_000}
            print_json_line(
                {**now, "kind": change.kind, "name": change.name, "now": change.now, "text": change.text}
            )


class WatchTables(WatchView):
    """The group, its members and its tasks, and the latest changes below them."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._told: list[str] = []

    def show(self, snapshot: GroupSnapshot, news: Sequence[Change]) -> None:
        """Draw it anew."""
        from rich.console import Group  # noqa: PLC0415 - as above
        from rich.text import Text  # noqa: PLC0415 - as above

        self._told = [*self._told, *map(_line, news)][-TOLD:]
        picture: list[RenderableType] = [
            _head(snapshot),
            Text(),
            _members(snapshot),
            Text(),
            _tasks(snapshot),
            Text(),
        ]
        picture += [Text(line, style="dim") for line in self._told]
        self._live.update(Group(*picture), refresh=True)


def _line(change: Change) -> str:
    return f"{time.strftime('%H:%M:%S')}  {change.text}"


def _head(snapshot: GroupSnapshot) -> RenderableType:
    from rich.text import Text  # noqa: PLC0415 - as above

    head = Text()
    if snapshot.group is not None:
        state = snapshot.group.state
        head = Text.assemble(
            (snapshot.group.group, "bold"),
            "  ",
            (state, STYLES.get(state, "bold yellow")),
            f"  generation {snapshot.group.generation_id}  assignor {snapshot.group.protocol_name or '-'}",
        )
    return head if snapshot.trouble is None else Text.assemble(head, "\n", (snapshot.trouble, "bold red"))


def _members(snapshot: GroupSnapshot) -> Table:
    table = _table("MEMBER", "HOST", "LAST HEARD", "OWNED", "")
    leader = snapshot.group.leader_id if snapshot.group else None
    for name, member in snapshot.members.items():
        owned = sum(task.owner == name for task in snapshot.tasks.values())
        marks = ["leader"] * (name == leader) + ["draining"] * member.draining
        table.add_row(name, member.host, ago(member.last_heartbeat_ms), str(owned), ", ".join(marks))
    return table


def _tasks(snapshot: GroupSnapshot) -> Table:
    table = _table("TASK", "STATE", "OWNER", "TOKEN", "BATCH", "ROWS/S", "SINCE", "CAUSE")
    for task in snapshot.tasks.values():
        table.add_row(*_row(task))
    return table


def _row(task: TaskView) -> tuple[RenderableType, ...]:
    from rich.text import Text  # noqa: PLC0415 - as above

    state = Text(task.state, style=STYLES.get(task.state, ""))
    rate = (task.metrics or {}).get("rows_per_second")
    figures = (task.token, task.batch_id, rate)
    cause = (task.cause or "").partition("\n")[0]
    return task.task, state, task.owner or "-", *map(_cell, figures), ago(task.since_ms), cause


def _table(*columns: str) -> Table:
    from rich.table import Table  # noqa: PLC0415 - as above

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=True, overflow="ellipsis")
    return table


def _cell(value: object) -> str:
    return "-" if value is None else str(value)
