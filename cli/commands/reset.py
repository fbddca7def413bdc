"""`sparkherd tasks reset`: have a stopped task begin anew, once a person has read what that means."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from cli.client.admin_client import AdminClient, path_of
from cli.options.common import admin_options, example, group_option, task_argument
from cli.views.output import print_json
from definition.resets import meaning, read_ends
from protocol.messages.base import encode_opaque
from protocol.messages.tasks import EARLIEST, ResetTaskRequest, ResetTaskResponse, TaskReset, TaskResponse

if TYPE_CHECKING:
    from protocol.messages.tasks import Offsets, Options


@click.command("reset", epilog=example("sparkherd tasks reset delays --group flights"))
@task_argument
@click.option(
    "--offset",
    "given",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of the source that says where to begin, as startingTimestamp=1700000000000."
    " Without any, the earliest offsets.",
)
@click.option("--yes", is_flag=True, help="Do it without asking.")
@group_option
@admin_options
def command(
    client: AdminClient, group: str, task: str, given: tuple[str, ...], *, yes: bool, as_json: bool
) -> None:
    """Have a stopped task begin anew, on an empty checkpoint.

    Says what that means for its sink, and asks before it does it.
    """
    offsets = _offsets(given)
    path = path_of("groups", group, "tasks", task)
    if not yes:
        _ask(client.get(path, TaskResponse), offsets)
    body = ResetTaskRequest(offsets=encode_opaque(offsets))
    answer = client.call("POST", f"{path}/reset", body, into=ResetTaskResponse)
    if as_json:
        print_json(answer)
        return
    click.echo(
        f"{task}: begins anew {described_reset(answer.reset)} when it is resumed,"
        f" under tokens above {answer.token}"
    )
    if yes:
        click.echo(answer.meaning)


def described_reset(reset: TaskReset) -> str:
    """Which reset it was, and where it begins."""
    return f"(reset {reset.number}) {_place(reset.offsets)}"


def _place(offsets: Offsets) -> str:
    if offsets == EARLIEST:
        return "at the earliest offsets"
    return "at " + ", ".join(f"{name}={value}" for name, value in offsets.items())


def _offsets(given: tuple[str, ...]) -> Offsets:
    if not given:
        return EARLIEST
    offsets: Options = {}
    for item in given:
        name, separator, value = item.partition("=")
        if not name or not separator:
            raise click.UsageError(f"--offset: expected KEY=VALUE, got {item!r}")
        offsets[name] = value
    return offsets


def _ask(task: TaskResponse, offsets: Offsets) -> None:
    if not sys.stdin.isatty():
        raise click.UsageError("there is no terminal to ask on; give --yes to reset the task without asking")
    click.echo(f"{task.task} would begin anew. {meaning(read_ends(task.definition), offsets)}", err=True)
    click.confirm("Reset it?", abort=True, err=True)
