"""`sparkherd audit`: what admins did, and what was tried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

import click
import msgspec

from cli.client.admin_client import AdminClient, path_of
from cli.options.common import admin_options, example, optional_group_option
from cli.views.output import local_time
from protocol.messages.audit import AuditEntry, AuditListResponse

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE_LENGTH: Final = 1000


@click.command("audit", epilog=example("sparkherd audit --group flights", "sparkherd audit --who me --json"))
@optional_group_option("Only what was done to it.")
@click.option("--who", metavar="NAME", help="Only what was done with tokens of that name.")
@click.option("--after", type=click.IntRange(min=0), default=0, metavar="ID", help="Only what came after.")
@admin_options
def command(client: AdminClient, group: str | None, who: str | None, after: int, *, as_json: bool) -> None:
    """Show what admins and operators did or tried, oldest first, as far back as it is kept.

    With --json each entry is a line of JSON.
    """
    query = {name: value for name, value in (("group", group), ("who", who)) if value is not None}
    for entry in _listed(client, query, after):
        click.echo(msgspec.json.encode(entry) if as_json else _line(entry))


def _listed(client: AdminClient, query: dict[str, str], after: int) -> Iterator[AuditEntry]:
    """Every entry there is by now, page by page."""
    place: int | None = after
    while place is not None:
        asked = urlencode({**query, "after": place, "limit": PAGE_LENGTH})
        page = client.get(f"{path_of('audit')}?{asked}", AuditListResponse)
        yield from page.entries
        place = page.next


def _line(entry: AuditEntry) -> str:
    """One entry for people: when, who, what, to what, how it went."""
    at = local_time(entry.at_ms)
    about = "/".join(filter(None, (entry.group, entry.task or entry.member_id)))
    went = "done" if entry.result == "NONE" else entry.result
    token = entry.token_id if entry.who == "the command line" else None
    parts = (f"{entry.id:>6}", at, entry.who, entry.operation, about or token, went, entry.why)
    return "  ".join(part for part in parts if part)
