"""What all admin commands share: where the manager is, which group, and in which form to answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from cli import completion
from cli.client import Client

if TYPE_CHECKING:
    from collections.abc import Callable

    Decorated = TypeVar("Decorated", bound=Callable[..., Any])

DEFAULT_MANAGER: Final = "http://127.0.0.1:8470"


def _client(
    ctx: click.Context,  # noqa: ARG001 - click's signature
    param: click.Parameter,  # noqa: ARG001 - click's signature
    value: tuple[str, ...],
) -> Client:
    """A client of the managers that `value` lists."""
    return Client([url.strip() for urls in value for url in urls.split(",")])


manager_option = click.option(
    "--manager",
    "client",
    callback=_client,
    metavar="URL",
    envvar="SPARKHERD_MANAGER",
    default=(DEFAULT_MANAGER,),
    show_default=True,
    multiple=True,
    help="Where a manager is; several, repeated or separated by commas, are tried in order.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
group_option = click.option(
    "--group",
    envvar="SPARKHERD_GROUP",
    required=True,
    metavar="GROUP",
    shell_complete=completion.groups,
    help="The group.",
)
file_group_option = click.option(
    "--group",
    envvar="SPARKHERD_GROUP",
    metavar="GROUP",
    shell_complete=completion.groups,
    help="Instead of the file's `group`.",
)
group_argument = click.argument("group", metavar="GROUP", shell_complete=completion.groups)
task_argument = click.argument("task", metavar="TASK", shell_complete=completion.tasks)
tasks_argument = click.argument(
    "tasks", metavar="TASK...", nargs=-1, required=True, shell_complete=completion.tasks
)
worker_argument = click.argument("worker", metavar="WORKER", shell_complete=completion.workers)


def wait_options(command: Decorated) -> Decorated:
    """`--wait` and `--timeout`, for commands that ask for what takes a while."""
    timeout = click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0),
        default=300,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait at most.",
    )
    return click.option("--wait", is_flag=True, help="Wait until it is done; exit code 1 if it fails.")(
        timeout(command)
    )


def admin_options(command: Decorated) -> Decorated:
    """`--manager` and `--json`."""
    return manager_option(json_option(command))
