"""`sparkherd tasks transfer` and `sparkherd transfers`: tasks that go from one group to another."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

import click
from msgspec import Raw

from cli.client.admin_client import AdminClient, path_of
from cli.exit_codes import DONE, FAILED
from cli.options import completers
from cli.options.common import admin_options, example, optional_group_option, tasks_argument
from cli.options.wait import wait_options
from cli.views.output import ago, print_json, print_table
from cli.views.progress import WaitProgress, wait_for
from protocol.messages.transfers import StartTransferRequest, TransferListResponse, TransferResponse
from protocol.names import LEGAL, is_legal_name
from protocol.states import TransferStep

if TYPE_CHECKING:
    from collections.abc import Iterable

    from protocol.messages.transfers import Transfer

_DONE_AT: Final = {
    TransferStep.STOPPING: 0,
    TransferStep.STOPPED: 1,
    TransferStep.GIVEN: 2,
    TransferStep.DONE: 3,
}
"""How many steps of a task lie behind it; the last one is the last number."""

transfer_argument = click.argument("transfer", metavar="TRANSFER")


@click.command(
    "transfer",
    epilog=example("sparkherd tasks transfer --from flights --to other --rename delays=late delays"),
)
@tasks_argument
@click.option(
    "--from",
    "source",
    required=True,
    metavar="GROUP",
    shell_complete=completers.groups,
    help="The group that the tasks leave.",
)
@click.option(
    "--to",
    "target",
    required=True,
    metavar="GROUP",
    shell_complete=completers.groups,
    help="The group that they go on in.",
)
@click.option("--rename", multiple=True, metavar="OLD=NEW", help="The name of a task there; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Check everything, and begin nothing.")
@click.option(
    "--allow-unplaced", is_flag=True, help="Even if the other group has no worker that could run them."
)
@click.option(
    "--id", "transfer", metavar="ID", help="What to know it by: asking again under the same one does no harm."
)
@wait_options
@admin_options
def transfer_command(
    client: AdminClient,
    tasks: tuple[str, ...],
    source: str,
    target: str,
    *,
    rename: tuple[str, ...],
    dry_run: bool,
    allow_unplaced: bool,
    transfer: str | None,
    wait: bool,
    timeout_s: float,
    as_json: bool,
) -> int:
    """Have tasks of one group go on in another, from the same checkpoint, all of them or none.

    They stop first. Until the other group has been given them, `sparkherd transfers cancel` has them stay.
    """
    body = StartTransferRequest(
        source=source,
        target=target,
        tasks=tasks,
        rename=dict(map(_renamed, rename)),
        allow_unplaced=allow_unplaced,
        validate_only=dry_run,
        id=transfer or uuid.uuid4().hex,
    )
    begun = client.call("POST", path_of("transfers"), body, into=TransferResponse)
    if as_json:
        print_json(begun)
    elif dry_run:
        click.echo(f"{len(tasks)} tasks of {source} could go to {target}")
    else:
        click.echo(f"transfer {begun.id} of {len(tasks)} tasks from {source} to {target} has begun")
    return _until_over(client, str(begun.id), timeout_s) if wait and not dry_run else DONE


def _renamed(given: str) -> tuple[str, str]:
    old, separator, new = given.partition("=")
    if not old or not separator or not new:
        raise click.UsageError(f"--rename: expected OLD=NEW, got {given!r}")
    if not is_legal_name(new):
        raise click.UsageError(f"--rename {given}: a task's name is {LEGAL}")
    return old, new


def _until_over(client: AdminClient, transfer: str, timeout_s: float) -> int:
    def look() -> WaitProgress:
        seen = client.get(path_of("transfers", transfer), TransferResponse)
        steps = [_DONE_AT.get(task.step, 0) for task in seen.tasks]
        failed = f"it was cancelled: {seen.cause}" if seen.step is TransferStep.CANCELLED else None
        return WaitProgress(sum(steps), len(steps) * max(_DONE_AT.values()), failed)

    fault = wait_for(look, f"steps of transfer {transfer}", within_s=timeout_s)
    if fault is None:
        return DONE
    click.echo(f"sparkherd: {fault}", err=True)
    return FAILED


@click.group("transfers")
def command() -> None:
    """See and cancel transfers of tasks between groups; `sparkherd tasks transfer` begins one."""


@command.command("list", epilog=example("sparkherd transfers list --active"))
@optional_group_option("Only transfers that this group gives or gets.")
@click.option("--active", is_flag=True, help="Only those that are not over.")
@admin_options
def list_transfers(client: AdminClient, group: str | None, *, active: bool, as_json: bool) -> None:
    """List the latest transfers, the newest first."""
    asked = {"group": group, "state": "active" if active else None}
    query = urlencode({name: value for name, value in asked.items() if value is not None})
    path = path_of("transfers") + (f"?{query}" if query else "")
    if as_json:
        print_json(client.get(path, Raw))
        return
    _print(client.get(path, TransferListResponse).transfers)


@command.command("show", epilog=example("sparkherd transfers show 0f9c..."))
@transfer_argument
@admin_options
def show(client: AdminClient, transfer: str, *, as_json: bool) -> None:
    """Show how far each task of a transfer has come."""
    path = path_of("transfers", transfer)
    if as_json:
        print_json(client.get(path, Raw))
        return
    seen = client.get(path, TransferResponse)
    _print([seen])
    click.echo()
    print_table(("TASK", "AS", "STEP"), [(task.task, task.to_task, task.step.value) for task in seen.tasks])


@command.command("cancel", epilog=example("sparkherd transfers cancel 0f9c..."))
@transfer_argument
@admin_options
def cancel(client: AdminClient, transfer: str, *, as_json: bool) -> None:
    """Have the tasks stay where they are; refused once the other group has been given them."""
    seen = client.call("POST", path_of("transfers", transfer, "cancel"), into=TransferResponse)
    if as_json:
        print_json(seen)
    else:
        click.echo(f"transfer {transfer} is cancelled: the tasks go on in {seen.source}")


def _print(transfers: Iterable[Transfer]) -> None:
    print_table(
        ("TRANSFER", "FROM", "TO", "TASKS", "STEP", "BY", "STARTED", "CAUSE"),
        [(seen.id, seen.source, seen.target, len(seen.tasks), *_how(seen)) for seen in transfers],
    )


def _how(seen: Transfer) -> tuple[object, ...]:
    return seen.step.value, seen.by, ago(seen.started_at_ms), seen.cause
