"""`sparkherd events`: what happened, in order, and what happens from now on."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

import click
import msgspec

from cli.client.admin_client import AdminClient, path_of
from cli.client.event_stream import EventStream
from cli.options.common import admin_options, example, optional_group_option
from cli.views.output import local_time
from protocol.messages.events import Event

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cli.client.admin_client import UnreachableError

PAGE_LENGTH: Final = 1000
CAUSE_LENGTH: Final = 200
TYPE_WIDTH: Final = 19
SUBJECTS: Final = ("task", "member")
"""What an event is about, if it is about anything smaller than the group."""
SHOWN_FIRST: Final = {"id", "at_ms", "type", "group", "cause", *SUBJECTS}


class _Page(msgspec.Struct):
    """A part of the list; events stay as they came, for `--json`."""

    events: tuple[msgspec.Raw, ...]
    last_id: int


@click.command(
    "events",
    epilog=example("sparkherd events --group flights --follow", "sparkherd events --after 41 --json"),
)
@optional_group_option("Only its events.")
@click.option("--follow", is_flag=True, help="Go on as things happen, until Ctrl-C.")
@click.option("--after", type=click.IntRange(min=0), metavar="ID", help="Only what came after this event.")
@admin_options
def command(
    client: AdminClient, group: str | None, after: int | None, *, follow: bool, as_json: bool
) -> None:
    """Show what happened, oldest first, as far back as it is kept; docs/events.md has the types.

    With --json each event is a line of JSON.
    """
    query = {"group": group} if group is not None else {}
    if not follow:
        _show(_listed(client, query, after), as_json=as_json)
        return
    with suppress(KeyboardInterrupt):
        _show(EventStream(client, _path(query), after, _complain), as_json=as_json)


def _show(events: Iterable[bytes], *, as_json: bool) -> None:
    for event in events:
        click.echo(event if as_json else _line(msgspec.json.decode(event, type=Event)))


def _listed(client: AdminClient, query: dict[str, str], after: int | None) -> Iterator[bytes]:
    """Every event there is by now, page by page."""
    while True:
        place = {} if after is None else {"after": str(after)}
        page = client.get(_path(query | place | {"limit": str(PAGE_LENGTH)}), _Page)
        yield from map(bytes, page.events)
        if len(page.events) < PAGE_LENGTH:
            return
        after = page.last_id


def _path(query: dict[str, str]) -> str:
    return f"{path_of('events')}?{urlencode(query)}"


def _complain(error: UnreachableError) -> None:
    click.echo(f"sparkherd: {error}; trying again", err=True)


def _line(event: Event) -> str:
    """One event for people: when, what, whom, why, and the rest as it is called."""
    at = local_time(event.at_ms)
    about = [getattr(event, name) for name in SUBJECTS]
    rest = [
        f"{name}={value}" for name, value in msgspec.to_builtins(event).items() if name not in SHOWN_FIRST
    ]
    cause = " ".join((event.cause or "").split())[:CAUSE_LENGTH]
    parts = [f"{event.id:>6}", at, f"{event.type:<{TYPE_WIDTH}}", event.group, *about, *rest, cause]
    return "  ".join(part for part in parts if part)
