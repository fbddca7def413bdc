"""`sparkherd alarms`: what is wrong, and who is told."""

from __future__ import annotations

import click

from cli.commands.alarm_receivers import list_receivers, test_receiver


@click.group("alarms")
def command() -> None:
    """See and try who is told of alarms."""


command.add_command(list_receivers)
command.add_command(test_receiver)
