"""`sparkherd managers`: the managers of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec import Raw

from cli.client.admin_client import path_of
from cli.options.common import admin_options, example
from cli.views.output import print_json, print_table
from protocol.messages.cluster import ManagerListResponse, ManagerSummary

if TYPE_CHECKING:
    from cli.client.admin_client import AdminClient


@click.group("managers")
def command() -> None:
    """See the managers that share a database, and which slots they have."""


@command.command("list", epilog=example("sparkherd managers list"))
@admin_options
def list_managers(client: AdminClient, *, as_json: bool) -> None:
    """List all managers: how many slots each has, and how long its lease still lasts."""
    path = path_of("managers")
    if as_json:
        print_json(client.get(path, Raw))
        return
    listed = client.get(path, ManagerListResponse)
    print_table(
        ("MANAGER", "URL", "ALIVE", "SLOTS", "HIGHEST EPOCH", "LEASE LEFT"),
        (
            (m.id, m.url, "yes" if m.alive else "no", m.slots, _highest_epoch(listed, m), _left(m))
            for m in listed.managers
        ),
    )


def _highest_epoch(listed: ManagerListResponse, manager: ManagerSummary) -> int | None:
    return max((slot.epoch for slot in listed.slots if slot.manager == manager.id), default=None)


def _left(manager: ManagerSummary) -> str:
    if manager.lease_left_ms is None:
        return "no end"
    return f"{max(manager.lease_left_ms, 0)}ms"
