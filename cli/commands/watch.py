"""`sparkherd groups watch`: a group as it changes."""

from __future__ import annotations

import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from cli.options.common import admin_options, example, group_argument
from cli.views import progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli.client.admin_client import AdminClient
    from cli.views.group_changes import GroupSnapshot
    from cli.views.watch_tables import WatchView


@click.command("watch", epilog=example("sparkherd groups watch flights"))
@click.option(
    "--every",
    "every_s",
    type=click.FloatRange(min=0.1),
    default=1,
    show_default=True,
    metavar="SECONDS",
    help="How often to look.",
)
@group_argument
@admin_options
def command(client: AdminClient, group: str, every_s: float, *, as_json: bool) -> None:
    """Show a group as it changes, until Ctrl-C.

    On a terminal, its members and tasks in tables that change in place; on a pipe a line for each change,
    with --json an object a line. While the manager is away it says so, and goes on when that is back.
    """
    from cli.views.group_changes import look  # noqa: PLC0415 - as above
    from cli.views.watch_tables import watch_view  # noqa: PLC0415 - the other commands need none of it

    first = look(client, group)
    with suppress(KeyboardInterrupt), _until_sigterm(), watch_view(as_json=as_json) as view:
        _watch(client, group, first, view, every_s)


def _watch(client: AdminClient, group: str, first: GroupSnapshot, view: WatchView, every_s: float) -> None:
    from cli.views.group_changes import GroupSnapshot, changes, look_again, seen_last  # noqa: PLC0415 - as above

    before, after = GroupSnapshot(), first
    while True:
        news = changes(before, after)
        before = seen_last(before, after)
        view.show(before, news)
        progress.pause(every_s)
        after = look_again(client, group)


@contextmanager
def _until_sigterm() -> Iterator[None]:
    """SIGTERM ends it as Ctrl-C does, with the terminal as it was."""
    former = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)
