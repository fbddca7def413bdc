"""What all admin commands share: where the manager is, which group, and in which form to answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from cli.client import Client

if TYPE_CHECKING:
    from collections.abc import Callable

    Decorated = TypeVar("Decorated", bound=Callable[..., Any])

DEFAULT_MANAGER: Final = "http://127.0.0.1:8470"


def _client(ctx: click.Context, param: click.Parameter, value: str) -> Client:  # noqa: ARG001 - click's signature
    """A client of the managers that `value` lists."""
    return Client([url.strip() for url in value.split(",")])


manager_option = click.option(
    "--manager",
    "client",
    callback=_client,
    metavar="URL",
    envvar="SPARKHERD_MANAGER",
    default=DEFAULT_MANAGER,
    show_default=True,
    help="Where the manager is; several, separated by commas, are tried in order.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
group_option = click.option(
    "--group", envvar="SPARKHERD_GROUP", required=True, metavar="GROUP", help="The group."
)


def admin_options(command: Decorated) -> Decorated:
    """`--manager` and `--json`."""
    return manager_option(json_option(command))
