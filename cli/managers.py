"""`sparkherd managers`: the managers of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli.admin import admin_options
from cli.client import path_of
from cli.output import print_json, print_table
from protocol.messages.cluster import ManagerListResponse, ManagerSummary

if TYPE_CHECKING:
    from cli.client import Client


@click.group("managers")
def command() -> None:
    """See the managers that share a database, and which slots they have."""


@command.command("list")
@admin_options
def list_managers(client: Client, *, as_json: bool) -> None:
    """List all managers: how many slots each has, and how long its lease still lasts."""
    listed = client.get(path_of("managers"), ManagerListResponse)
    if as_json:
        print_json(listed)
        return
    epochs = {
        manager.id: [s.epoch for s in listed.slots if s.manager == manager.id] for manager in listed.managers
    }
    print_table(
        ("MANAGER", "URL", "ALIVE", "SLOTS", "HIGHEST EPOCH", "LEASE LEFT"),
        (
            (m.id, m.url, "yes" if m.alive else "no", m.slots, max(epochs[m.id], default=None), _left(m))
            for m in listed.managers
        ),
    )


def _left(manager: ManagerSummary) -> str:
    if manager.lease_left_ms is None:
        return "no end"
    return f"{max(manager.lease_left_ms, 0)} ms"
