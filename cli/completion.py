"""`sparkherd completion`: has a shell complete commands, options and the names that a manager knows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import click

from cli.client import Client, UnreachableError, path_of
from cli.help import example
from protocol.errors import RefusedError, StartupError
from protocol.messages.groups import DescribeGroupResponse, GroupListResponse
from protocol.messages.tasks import TaskListResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

TIMEOUT_S: Final = 0.5
"""A person waits with the finger on the key: no names are better than late ones."""
_WHERE: Final = {
    "bash": 'add to ~/.bashrc:  eval "$(sparkherd completion bash)"',
    "zsh": 'add to ~/.zshrc:  eval "$(sparkherd completion zsh)"',
    "fish": "sparkherd completion fish > ~/.config/fish/completions/sparkherd.fish",
}


@click.command("completion", epilog=example('eval "$(sparkherd completion bash)"'))
@click.argument("shell", type=click.Choice(sorted(_WHERE)))
def command(shell: str) -> None:
    """Print what makes SHELL complete commands, options, groups, tasks and workers.

    For bash 4.4 or newer and for zsh, evaluate it in the shell's start file; for fish, write it into
    ~/.config/fish/completions/sparkherd.fish.
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - the parsers of help need none

    from cli.main import sparkherd  # noqa: PLC0415 - which imports this module

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"click knows no completion for {shell}")
    click.echo(f"# {_WHERE[shell]}")
    click.echo(kind(sparkherd, {}, "sparkherd", "_SPARKHERD_COMPLETE").source())


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


def _names(ctx: click.Context, incomplete: str, ask: Callable[[Client], Iterable[str]]) -> list[str]:
    """What the manager says; nothing if there is none, or it has other worries."""
    client = ctx.params.get("client")
    if not isinstance(client, Client):
        return []
    try:
        return sorted(name for name in ask(client.giving_up_after(TIMEOUT_S)) if name.startswith(incomplete))
    except (UnreachableError, RefusedError, StartupError, OSError):
        return []
