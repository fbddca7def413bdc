"""`-f FILE`, the group that its tasks are for, and what is said of a file that cannot be used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli.exit_codes import USAGE
from cli.options.common import optional_group_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cli.task_files.reader import TaskFile
    from protocol.messages.tasks import Problem

file_option = click.option(
    "-f", "--file", "path", required=True, metavar="FILE", help="The YAML file with the tasks."
)
file_group_option = optional_group_option("Instead of the file's `group`.")


def group_of(file: TaskFile, group: str | None, path: str) -> str:
    """The group that a file is for: `group` if it is given, else the file's own.

    Raises:
        click.UsageError: there is neither.
    """
    if (group := group or file.group) is None:
        raise click.UsageError(f"{path} names no group; add `group:` to it, or give --group")
    return group


def print_problems(problems: Sequence[Problem]) -> int:
    """Tell every problem on stderr, each on its line; the exit code."""
    for problem in problems:
        place = f"{problem.path}: " if problem.path else ""
        click.echo(f"sparkherd: {place}{problem.message}", err=True)
    return USAGE
