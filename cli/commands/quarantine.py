"""`sparkherd tasks quarantine`: rows that a task has put aside instead of failing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import click

from cli.client.admin_client import AdminClient, path_of
from cli.client.patience import until_free
from cli.exit_codes import DONE, FAILED
from cli.options.common import admin_options, example, group_option, task_argument
from cli.views.output import print_json
from cli.views.quarantined_rows import show_change, show_list, show_row
from protocol.errors import ErrorCode
from protocol.messages.errands import SHORTEST_MS
from protocol.messages.quarantine import (
    DEFAULT_MS,
    LONGEST_MS,
    MOST_ROWS,
    QuarantineChangeRequest,
    QuarantineResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable

PASSES: Final = frozenset({ErrorCode.QUARANTINE_BUSY, ErrorCode.REBALANCE_IN_PROGRESS})
"""What is over in a moment; a task that nobody owns may not be owned for long."""


@click.group("quarantine")
def command() -> None:
    """See, play again or discard rows that a task has put aside.

    They are where the task's worker keeps them: the task needs an owner, so it may run, be paused or have
    failed, and not be stopped.
    """


_reason_option = click.option(
    "--reason",
    type=click.Choice(["unreadable", "violation", "refused"]),
    help="Only rows that were put aside for this reason.",
)
_name_option = click.option(
    "--name",
    metavar="NAME",
    help="Only rows of this name, as lists show it: an expectation, or a place such as source.value or sink.",
)
_timeout_option = click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(SHORTEST_MS / 1000, LONGEST_MS / 1000),
    default=DEFAULT_MS / 1000,
    show_default=True,
    metavar="SECONDS",
    help="How long the worker may take.",
)


@command.command("list", epilog=example("sparkherd tasks quarantine list delays --group flights"))
@task_argument
@_reason_option
@_name_option
@click.option(
    "--limit",
    type=click.IntRange(1, MOST_ROWS),
    default=20,
    show_default=True,
    help="How many rows to show.",
)
@_timeout_option
@group_option
@admin_options
def list_rows(
    client: AdminClient,
    group: str,
    task: str,
    *,
    limit: int,
    reason: str | None,
    name: str | None,
    timeout_s: float,
    as_json: bool,
) -> None:
    """List rows that a task has put aside, the newest batch first.

    With a viewer's token their shape is shown, and not what is in them.
    """
    asked = {"limit": limit, "reason": reason, "name": name}
    found = _get(client, path_of("groups", group, "tasks", task, "quarantine"), timeout_s, **asked)
    if as_json:
        print_json(found)
    else:
        show_list(found)


@command.command("show", epilog=example("sparkherd tasks quarantine show delays 0-41-3 --group flights"))
@task_argument
@click.argument("row", metavar="ID")
@_timeout_option
@group_option
@admin_options
def show(client: AdminClient, group: str, task: str, row: str, *, timeout_s: float, as_json: bool) -> None:
    """Show one row that a task has put aside.

    With what was wrong with it. ID is as lists show it: RESETS-BATCH-N.
    """
    found = _get(client, path_of("groups", group, "tasks", task, "quarantine", "rows", row), timeout_s)
    if as_json:
        print_json(found)
    else:
        show_row(found)


def _get(client: AdminClient, path: str, timeout_s: float, **asked: Any) -> QuarantineResponse:
    asked["timeout_ms"] = round(timeout_s * 1000)
    query = urlencode({name: value for name, value in asked.items() if value is not None})
    return _patiently(lambda: _asked(client, "GET", f"{path}?{query}", None, timeout_s), timeout_s)


def _asked(client: AdminClient, method: str, path: str, body: Any, timeout_s: float) -> QuarantineResponse:
    return client.call(method, path, body, into=QuarantineResponse, held_s=timeout_s)


def _patiently(ask: Callable[[], QuarantineResponse], timeout_s: float) -> QuarantineResponse:
    return until_free(ask, timeout_s, PASSES.__contains__)


def _changing(verb: str, help_text: str) -> click.Command:
    """A command that changes what there is of some rows, or all."""

    @click.command(
        verb,
        help=help_text,
        epilog=example(
            f"sparkherd tasks quarantine {verb} delays 0-41-3 0-41-7 --group flights",
            f"sparkherd tasks quarantine {verb} delays --all --reason unreadable --group flights",
        ),
    )
    @task_argument
    @click.argument("rows", metavar="[ID]...", nargs=-1)
    @click.option("--all", "every", is_flag=True, help="All rows, or all that --reason and --name meet.")
    @_reason_option
    @_name_option
    @_timeout_option
    @group_option
    @admin_options
    def change(
        client: AdminClient, group: str, task: str, *, timeout_s: float, as_json: bool, **meant: Any
    ) -> int:
        path = f"{path_of('groups', group, 'tasks', task, 'quarantine')}/{verb}"
        body = _meant(**meant, timeout_ms=round(timeout_s * 1000))
        done = _patiently(lambda: _asked(client, "POST", path, body, timeout_s), timeout_s)
        if as_json:
            print_json(done)
        else:
            show_change(task, done)
        return FAILED if done.stayed else DONE

    return change


def _meant(
    *, rows: tuple[str, ...], every: bool, reason: Any, name: str | None, timeout_ms: int
) -> QuarantineChangeRequest:
    if bool(rows) is every:
        raise click.UsageError("name rows by their ids, or all with --all")
    if rows and (reason is not None or name is not None):
        raise click.UsageError("--reason and --name go with --all, and not with ids")
    return QuarantineChangeRequest(ids=rows, all=every, reason=reason, name=name, timeout_ms=timeout_ms)


command.add_command(
    _changing(
        "replay",
        "Play rows again by the query that the task has now.\n\n"
        "Name them by their IDs, as lists show them, or all with --all. Those that the query still cannot"
        " take stay (exit code 1). Asking twice plays no row twice; if no answer comes, rows may have been"
        " played all the same.\n\n"
        "Into a sink that upserts, a row takes the place of the one with its key, also of a younger one that"
        " was written since: discard it if that one is to stay.",
    )
)
command.add_command(
    _changing(
        "discard",
        "Forget rows, which cannot be taken back.\n\n"
        "Name them by their IDs, as lists show them, or all with --all. If no answer comes, they may be gone"
        " all the same.",
    )
)
