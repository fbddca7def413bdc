"""`sparkherd tasks`: create, see and steer tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.admin import admin_options, group_option
from cli.client import Client, path_of
from cli.exits import USAGE
from cli.output import ago, print_json, print_table
from protocol.messages.base import Response
from protocol.messages.tasks import TaskListResponse, TaskStatus, TaskStatusResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cli.apply import Applied

task_argument = click.argument("tasks", metavar="TASK...", nargs=-1, required=True)


@click.group("tasks")
def command() -> None:
    """Create, see and steer the tasks of a group."""


@command.command("apply")
@click.option("-f", "--file", "path", required=True, metavar="FILE", help="The YAML file with the tasks.")
@click.option("--group", envvar="SPARKHERD_GROUP", metavar="GROUP", help="Instead of the file's `group`.")
@click.option("--dry-run", is_flag=True, help="Only check, and show what would be done.")
@admin_options
def apply_file(client: Client, path: str, group: str | None, *, dry_run: bool, as_json: bool) -> int:
    """Create or change the tasks in a file.

    Nothing is created before every definition was found to be in order; doing it twice changes nothing more.
    """
    from cli import apply, task_file  # noqa: PLC0415 - the other commands need no YAML

    try:
        file = task_file.read_task_file(Path(path))
        apply.check(client, file.tasks)
    except task_file.TaskFileError as error:
        for problem in error.problems:
            click.echo(f"sparkherd: {task_file.describe(problem)}", err=True)
        return USAGE
    if (group := group or file.group) is None:
        raise click.UsageError(f"{path} names no group; add `group:` to it, or give --group")
    done = (apply.plan if dry_run else apply.apply)(client, group, file.tasks)
    _show_applied(group, done, dry_run=dry_run, as_json=as_json)
    return 0


def _show_applied(group: str, done: list[Applied], *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        print_json({"group": group, "dry_run": dry_run, "tasks": done})
        return
    for applied in done:
        click.echo(f"{applied.task}: {'would be ' * dry_run}{applied.action}")


@command.command("list")
@group_option
@admin_options
def list_tasks(client: Client, group: str, *, as_json: bool) -> None:
    """List the tasks of a group and how they are doing."""
    tasks = client.get(path_of("groups", group, "tasks"), TaskListResponse).tasks
    if as_json:
        print_json(tasks)
    else:
        _print_statuses(tasks)


@command.command("status")
@group_option
@task_argument
@admin_options
def status(client: Client, group: str, tasks: tuple[str, ...], *, as_json: bool) -> None:
    """Show how tasks are doing, and why one failed."""
    statuses = [_status(client, group, task) for task in tasks]
    if as_json:
        print_json(statuses)
        return
    _print_statuses(statuses)
    for task in statuses:
        if task.cause:
            click.echo(f"\n{task.task}: {task.cause}")


def _status(client: Client, group: str, task: str) -> TaskStatusResponse:
    return client.get(path_of("groups", group, "tasks", task, "status"), TaskStatusResponse)


def _print_statuses(statuses: Iterable[TaskStatus]) -> None:
    print_table(
        ("TASK", "STATE", "TARGET", "OWNER", "TOKEN", "BATCH", "RESTARTS", "SINCE", "CAUSE"),
        map(_status_row, statuses),
    )


def _status_row(s: TaskStatus) -> tuple[object, ...]:
    cause = s.cause.splitlines()[0] if s.cause else None
    return s.task, s.state, s.target, s.owner, s.token, s.batch_id, s.restart_count, ago(s.since_ms), cause


def _steering(verb: str, help_text: str, method: str, result: str) -> click.Command:
    """A command that asks one thing of each of some tasks."""

    @click.command(verb, help=help_text)
    @group_option
    @task_argument
    @admin_options
    def steer(client: Client, group: str, tasks: tuple[str, ...], *, as_json: bool) -> None:
        for task in tasks:
            path = path_of("groups", group, "tasks", task)
            client.call(method, path if method == "DELETE" else f"{path}/{verb}", into=Response)
        if as_json:
            print_json([{"task": task, "result": result} for task in tasks])
            return
        for task in tasks:
            click.echo(f"{task}: {result}")

    return steer


for _verb, _help, _method, _result in (
    ("pause", "Pause tasks; each stays with its worker.", "PUT", "pause asked for"),
    ("resume", "Let paused or stopped tasks run again.", "PUT", "resume asked for"),
    ("stop", "Stop tasks; they belong to nobody until resumed.", "PUT", "stop asked for"),
    ("restart", "Restart tasks where they are.", "POST", "restart asked for"),
    ("delete", "Delete tasks; their checkpoints stay.", "DELETE", "deleted"),
):
    command.add_command(_steering(_verb, _help, _method, _result))
