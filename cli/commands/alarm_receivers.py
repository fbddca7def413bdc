"""`sparkherd alarms receivers` and `test-receiver`: who is told of alarms, and whether that works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click
from msgspec import Raw

from cli.client.admin_client import path_of
from cli.exit_codes import DONE, FAILED
from cli.options.common import admin_options, example
from cli.views.output import ago, print_json, print_table, tell
from protocol.messages.alarm_receivers import AlarmReceiverListResponse, ReceiverTestResponse

if TYPE_CHECKING:
    from cli.client.admin_client import AdminClient
    from protocol.messages.alarm_receivers import AlarmReceiver

LONGEST_S: Final = 60.0
"""For so long a manager waits for a server of mail."""


@click.command("receivers", epilog=example("sparkherd alarms receivers"))
@admin_options
def list_receivers(client: AdminClient, *, as_json: bool) -> None:
    """List who is told of alarms: how each is since when, and why it last took nothing."""
    path = path_of("alarms", "receivers")
    if as_json:
        print_json(client.get(path, Raw))
        return
    listed = client.get(path, AlarmReceiverListResponse)
    print_table(
        ("RECEIVER", "KIND", "FALLBACK", "STATE", "SINCE", "LAST ERROR"), map(_cells, listed.receivers)
    )


@click.command("test-receiver", epilog=example("sparkherd alarms test-receiver ops"))
@click.argument("name", metavar="NAME")
@admin_options
def test_receiver(client: AdminClient, name: str, *, as_json: bool) -> int:
    """Send a receiver a test message. Exit code 1 if it was not taken.

    It goes out at once, beside the alarms that wait; systems with incidents get one, and its end.
    """
    path = path_of("alarms", "receivers", name, "test")
    tested = client.call("POST", path, into=ReceiverTestResponse, held_s=LONGEST_S)
    outcome = "has taken a test message" if tested.delivered else "has not taken a test message"
    why = f": {tested.reason}" if tested.reason else ""
    shown = {"receiver": name, "delivered": tested.delivered, "reason": tested.reason}
    tell(shown, f"{name} {outcome}{why}", as_json=as_json)
    return DONE if tested.delivered else FAILED


def _cells(receiver: AlarmReceiver) -> tuple[object, ...]:
    since = None if receiver.since_ms is None else f"{ago(receiver.since_ms)} ago"
    fallback = "yes" if receiver.fallback else "no"
    return receiver.name, receiver.kind, fallback, receiver.state, since, receiver.last_error
