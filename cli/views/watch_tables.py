"""How `groups watch` shows a group: tables that change in place on a terminal, lines of changes elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from cli.views.output import ago, print_json_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

    from rich.console import RenderableType
    from rich.table import Table

    from cli.views.group_changes import Change, Sight
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


def make_view(*, as_json: bool) -> WatchView:
    """The view for whoever looks."""
    if as_json:
        return JsonLines()
    return LiveTables() if sys.stdout.isatty() else WatchView()


class WatchView:
    """A line a change, behind the time."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to put back."""

    def show(self, sight: Sight, news: Sequence[Change]) -> None:  # noqa: ARG002 - for who draws it all
        """What is new."""
        for change in news:
            click.echo(_line(change))


class JsonLines(WatchView):
    """A JSON object a change, for scripts."""

    def show(self, sight: Sight, news: Sequence[Change]) -> None:  # noqa: ARG002 - as above
        """What is new."""
        for change in news:
            now = {"at_ms": time.time_ns() // 1_000_000}
            print_json_line(
                {**now, "kind": change.kind, "name": change.name, "now": change.now, "text": change.text}
            )


class LiveTables(WatchView):
    """The group, its members and its tasks, and the latest changes below them."""

    def __init__(self) -> None:
        from rich.console import Console  # noqa: PLC0415 - only who sees it pays for it
        from rich.live import Live  # noqa: PLC0415 - the same

        self._live = Live(console=Console(highlight=False, markup=False), auto_refresh=False)
        self._told: list[str] = []

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the last picture, and the cursor as it was."""
        self._live.stop()

    def show(self, sight: Sight, news: Sequence[Change]) -> None:
        """Draw it anew."""
        from rich.console import Group  # noqa: PLC0415 - as above
        from rich.text import Text  # noqa: PLC0415 - as above

        self._told = [*self._told, *map(_line, news)][-TOLD:]
        picture: list[RenderableType] = [_head(sight), Text(), _members(sight), Text(), _tasks(sight), Text()]
        picture += [Text(line, style="dim") for line in self._told]
        self._live.update(Group(*picture), refresh=True)


def _line(change: Change) -> str:
    return f"{time.strftime('%H:%M:%S')}  {change.text}"


def _head(sight: Sight) -> RenderableType:
    from rich.text import Text  # noqa: PLC0415 - as above

    head = Text()
    if sight.group is not None:
        state = sight.group.state
        head = Text.assemble(
            (sight.group.group, "bold"),
            "  ",
            (state, STYLES.get(state, "bold yellow")),
            f"  generation {sight.group.generation_id}  assignor {sight.group.protocol_name or '-'}",
        )
    return head if sight.trouble is None else Text.assemble(head, "\n", (sight.trouble, "bold red"))


def _members(sight: Sight) -> Table:
    table = _table("MEMBER", "HOST", "LAST HEARD", "OWNED", "")
    leader = sight.group.leader_id if sight.group else None
    for name, member in sight.members.items():
        owned = sum(task.owner == name for task in sight.tasks.values())
        marks = ["leader"] * (name == leader) + ["draining"] * member.draining
        table.add_row(name, member.host, ago(member.last_heartbeat_ms), str(owned), ", ".join(marks))
    return table


def _tasks(sight: Sight) -> Table:
    table = _table("TASK", "STATE", "OWNER", "TOKEN", "BATCH", "ROWS/S", "SINCE", "CAUSE")
    for task in sight.tasks.values():
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
