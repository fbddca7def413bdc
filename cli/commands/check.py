"""`sparkherd tasks check`: what is wrong with the tasks of a file, by the manager's word or a worker's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from cli.client.admin_client import path_of
from cli.client.patience import until_free
from cli.exit_codes import DONE, FAILED, USAGE
from cli.options.common import admin_options, example
from cli.options.task_file import file_group_option, file_option, group_of, print_problems
from cli.views.check_result import show_result
from cli.views.output import print_json
from protocol.errors import RefusedError
from protocol.messages.checks import LONGEST_MS, MOST_ROWS, CheckRequest, CheckResponse
from protocol.messages.errands import SHORTEST_MS
from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cli.client.admin_client import AdminClient
    from cli.task_files.reader import TaskEntry
    from protocol.messages.checks import Begin


@click.command(
    "check",
    epilog=example(
        "sparkherd tasks check -f tasks.yaml",
        "sparkherd tasks check -f tasks.yaml --on-spark --rows 5 --from end",
    ),
)
@file_option
@click.option(
    "--on-spark", is_flag=True, help="Have a worker of the group look, and show what it would write."
)
@click.option(
    "--rows",
    type=click.IntRange(0, MOST_ROWS),
    default=10,
    show_default=True,
    help="How many rows to show, with --on-spark.",
)
@click.option(
    "--from",
    "begin",
    type=click.Choice(["beginning", "end"]),
    default="beginning",
    show_default=True,
    help="From which end of the sources, with --on-spark.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(SHORTEST_MS / 1000, LONGEST_MS / 1000),
    default=30,
    show_default=True,
    metavar="SECONDS",
    help="How long each task may take, with --on-spark.",
)
@file_group_option
@admin_options
def check_command(
    client: AdminClient, path: str, group: str | None, *, on_spark: bool, as_json: bool, **asked: Any
) -> int:
    """Check the tasks in a file; creates and changes nothing.

    The manager looks at the definitions. With --on-spark, a worker also analyses each with its Spark and
    compares the columns with the sink's table. It shows rows as they would be written, writes none, and
    keeps no checkpoint. Exit code 2 if there is a problem, 1 if a task could not be looked at.
    """
    from cli.task_files import plan, reader  # noqa: PLC0415 - the other commands need no YAML

    try:
        file = reader.read_task_file(Path(path))
        if on_spark:
            group = group_of(file, group, path)
        plan.check(client, file.tasks)
    except reader.TaskFileError as error:
        return print_problems(error.problems)
    if not on_spark or group is None:
        _tell_sound(file.tasks, as_json=as_json)
        return DONE
    found = [(entry.task, _check(client, group, entry, **asked)) for entry in file.tasks]
    if as_json:
        print_json({"group": group, "tasks": [_as_json(task, each) for task, each in found]})
    return max((_told(task, each, is_shown=not as_json) for task, each in found), default=DONE)


def _tell_sound(tasks: Sequence[TaskEntry], *, as_json: bool) -> None:
    if as_json:
        print_json({"tasks": [{"task": entry.task, "problems": []} for entry in tasks]})
        return
    for entry in tasks:
        click.echo(f"{entry.task}: the definition is in order")


def _check(
    client: AdminClient, group: str, entry: TaskEntry, *, rows: int, begin: Begin, timeout_s: float
) -> CheckResponse | RefusedError:
    """One after the other: a worker does one at a time, and whoever looks reads them so."""
    body = CheckRequest(
        definition=msgspec.Raw(msgspec.json.encode(entry.definition)),
        rows=rows,
        begin=begin,
        timeout_ms=round(timeout_s * 1000),
    )
    place, held_s = path_of("groups", group, "checks"), LONGEST_MS / 1000
    try:
        return until_free(
            lambda: client.call("POST", place, body, into=CheckResponse, held_s=held_s),
            timeout_s,
            lambda code: code.retriable,
        )
    except RefusedError as error:
        return error


def _told(task: str, found: CheckResponse | RefusedError, *, is_shown: bool) -> int:
    """The exit code of one task, which is shown or was."""
    if isinstance(found, RefusedError):
        click.echo(f"sparkherd: {task}: {found.failure.code.name}: {found}", err=True)
        return FAILED
    if is_shown:
        show_result(task, found)
    if found.problems:
        problems = [Problem(f"{task}: {each.path}".rstrip(": "), each.message) for each in found.problems]
        print_problems(problems)
        return USAGE
    return DONE


def _as_json(task: str, found: CheckResponse | RefusedError) -> dict[str, Any]:
    told = found.failure.body() if isinstance(found, RefusedError) else msgspec.to_builtins(found)
    return {"task": task, **told}
