"""`sparkherd tasks apply` and `create`: tasks from files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.exit_codes import DONE
from cli.options.common import admin_options, example, group_option, task_argument
from cli.options.task_file import file_group_option, file_option, group_of, print_problems
from cli.options.wait import failures, until_on_target, wait_options
from cli.views.output import print_json, tell
from protocol.states import Target

if TYPE_CHECKING:
    from cli.client.admin_client import AdminClient
    from cli.task_files.plan import Applied


@click.command(
    "apply",
    epilog=example(
        "sparkherd tasks apply -f tasks.yaml --dry-run",
        "sparkherd tasks apply -f tasks.yaml --prune --wait",
    ),
)
@file_option
@click.option("--prune", is_flag=True, help="Delete the group's tasks that are not in the file.")
@click.option("--dry-run", is_flag=True, help="Only check, and show what would be done, field by field.")
@wait_options
@file_group_option
@admin_options
def apply_command(
    client: AdminClient,
    path: str,
    group: str | None,
    *,
    prune: bool,
    dry_run: bool,
    as_json: bool,
    **waiting: Any,
) -> int:
    """Create or change the tasks in a file.

    All of it comes true or, if anything is wrong, nothing; doing it twice changes nothing more.
    An entry with `for_each` stands for many tasks (docs/tasks.md).
    """
    from cli.task_files import plan, reader  # noqa: PLC0415 - the other commands need no YAML

    try:
        file = reader.read_task_file(Path(path))
        group = group_of(file, group, path)
        if prune and not file.tasks:
            raise click.UsageError(f"{path} has no tasks: with --prune, all of {group} would be deleted")
        planned = plan.plan(client, group, file.tasks, prune=prune)
        changed = {applied.task for applied in planned if applied.action == "changed"}
        mended = failures(client, group, changed) if changed and waiting["wait"] and not dry_run else {}
        done = plan.carry_out(client, group, file.tasks, planned, validate_only=dry_run)
    except reader.TaskFileError as error:
        return print_problems(error.problems)
    _show(group, planned if dry_run else done, dry_run=dry_run, as_json=as_json)
    if dry_run:
        return DONE
    names = {entry.task for entry in file.tasks}
    return until_on_target(client, group, names, waiting["timeout_s"], mended) if waiting["wait"] else DONE


@click.command(
    "create",
    epilog=example(
        "sparkherd tasks create delays --group flights -f delays.yaml",
        "sparkherd tasks create delays --group flights -f - < delays.json",
    ),
)
@task_argument
@click.option(
    "-f", "--file", "path", required=True, metavar="FILE", help="The definition, YAML or JSON; - reads stdin."
)
@click.option(
    "--target",
    type=click.Choice([target.value for target in Target]),
    default=Target.RUNNING.value,
    show_default=True,
    help="What is wanted of it.",
)
@wait_options
@group_option
@admin_options
def create_command(
    client: AdminClient, group: str, task: str, path: str, target: str, *, as_json: bool, **waiting: Any
) -> int:
    """Create one task from its definition; refused if it is there already."""
    from cli.task_files import plan, reader  # noqa: PLC0415 - as above

    try:
        definition = reader.read_definition(sys.stdin if path == "-" else Path(path))
        plan.check(client, [reader.TaskEntry(task=task, definition=definition)])
    except reader.TaskFileError as error:
        return print_problems(error.problems)
    plan.create(client, group, task, definition, Target(target))
    tell({"group": group, "task": task, "result": "created"}, f"{task}: created", as_json=as_json)
    return until_on_target(client, group, {task}, waiting["timeout_s"]) if waiting["wait"] else DONE


def _show(group: str, done: list[Applied], *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        print_json({"group": group, "dry_run": dry_run, "tasks": done})
        return
    for applied in done:
        click.echo(f"{applied.task}: {'would be ' * dry_run}{applied.action}")
        for change in applied.changes if dry_run else ():
            click.echo(f"    {change}")
