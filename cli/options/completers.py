"""The names that a shell completes: those that a manager knows, if it answers at once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from cli.client.admin_client import AdminClient, UnreachableError, path_of
from protocol.errors import RefusedError, StartupError
from protocol.messages.groups import DescribeGroupResponse, GroupListResponse
from protocol.messages.tasks import TaskListResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import click

TIMEOUT_S: Final = 0.5
"""A person waits with the finger on the key: no names are better than late ones."""


def groups(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - click's signature
    """The groups that begin so."""
    return _names(
        ctx,
        incomplete,
        lambda client: (each.group for each in client.get(path_of("groups"), GroupListResponse).groups),
    )


def tasks(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - click's signature
    """The tasks of the group that begin so, and are not named yet."""
    group, named = _group(ctx), set(ctx.params.get("tasks") or ())
    if group is None:
        return []
    found = _names(
        ctx,
        incomplete,
        lambda client: (
            each.task for each in client.get(path_of("groups", group, "tasks"), TaskListResponse).tasks
        ),
    )
    return [name for name in found if name not in named]


def workers(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - click's signature
    """The members of the group that begin so."""
    if (group := _group(ctx)) is None:
        return []
    return _names(
        ctx,
        incomplete,
        lambda client: (
            each.member_id for each in client.get(path_of("groups", group), DescribeGroupResponse).members
        ),
    )


def _group(ctx: click.Context) -> str | None:
    """The group on the command line so far, or in the environment."""
    return ctx.params.get("group") or os.environ.get("SPARKHERD_GROUP")


def _names(ctx: click.Context, incomplete: str, ask: Callable[[AdminClient], Iterable[str]]) -> list[str]:
    """What the manager says; nothing if there is none, or it has other worries."""
    client = ctx.params.get("client")
    if not isinstance(client, AdminClient):
        return []
    try:
        return sorted(name for name in ask(client.giving_up_after(TIMEOUT_S)) if name.startswith(incomplete))
    except (UnreachableError, RefusedError, StartupError, OSError):
        return []
