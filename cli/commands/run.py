"""`sparkherd run`: the tasks of a file in this very process, without a manager."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from cli.options.common import example, json_option
from cli.options.settings import SettingSources, settings_options, warn_of_stray_variables
from cli.options.task_file import file_group_option, file_option, group_of, print_problems
from telemetry.logs import LogSettings, configure_logging
from worker.settings import WorkerSettings

if TYPE_CHECKING:
    from cli.task_files.reader import TaskEntry, TaskFile
    from worker.standalone.local_manager import LocalTask

OF_MEMBERS: Final = (
    "group",
    "manager",
    "token_file",
    "tls_ca",
    "tls_cert",
    "tls_key",
    "client_id",
    "instance_id",
    "assignor",
    "move_at_once",
    "session_timeout_ms",
    "rebalance_timeout_ms",
    "heartbeat_wait_ms",
    "warm_up_timeout_ms",
    "capacity",
    "max_tasks",
    "label",
    "status_listen",
)
"""Settings of a worker that mean nothing to one that is alone; the group has a flag of its own."""


@click.command("run", epilog=example("sparkherd run -f tasks.yaml", "sparkherd run -f tasks.yaml --once"))
@file_option
@click.option("--once", is_flag=True, help="End when all tasks with trigger available_now are COMPLETED.")
@settings_options(WorkerSettings, LogSettings, leave_out=OF_MEMBERS)
@file_group_option
@json_option
def command(path: str, group: str | None, *, once: bool, as_json: bool, **flags: Any) -> int:
    """Run the tasks of a file in this process, without a manager.

    For trying tasks out, for jobs, and where one machine is enough. A task that fails is started again as on
    any worker. SIGTERM and Ctrl-C stop the queries in order; without them it ends when no task has anything
    left to do. Exit code 1 when a task is FAILED at the end. --json prints how each task is doing then.
    """
    from cli.task_files import reader  # noqa: PLC0415 - `--help` needs no YAML

    sources = SettingSources("worker", flags, (WorkerSettings, LogSettings))
    log_settings = sources.resolve(LogSettings)
    try:
        file = reader.read_task_file(Path(path))
        tasks = _checked(file)
    except reader.TaskFileError as error:
        return print_problems(error.problems)
    _require_work(path, tasks, once=once)
    settings = SettingSources(
        "worker", {**flags, "group": group_of(file, group, path)}, (WorkerSettings, LogSettings)
    )
    warn_of_stray_variables()
    return _run(settings.resolve(WorkerSettings), log_settings, tasks, once=once, as_json=as_json)


def _checked(file: TaskFile) -> list[LocalTask]:
    """The tasks, if every definition is in order; a manager would find the same problems."""
    from cli.task_files.reader import TaskFileError  # noqa: PLC0415 - as above
    from definition.check import check_definition  # noqa: PLC0415 - nor a parser of SQL
    from definition.document import Definition  # noqa: PLC0415 - and no definitions
    from protocol.messages.tasks import Problem  # noqa: PLC0415 - nor messages

    tasks, problems = [], []
    for entry in file.tasks:
        checked = check_definition(msgspec.json.encode(entry.definition))
        if isinstance(checked, Definition):
            tasks.append(_local(entry, checked))
        else:
            problems += [Problem(f"{entry.task}: {each.path}", each.message) for each in checked]
    if problems:
        raise TaskFileError(problems)
    return tasks


def _local(entry: TaskEntry, definition: Any) -> LocalTask:
    from protocol.states import Target  # noqa: PLC0415 - as above
    from worker.standalone.local_manager import LocalTask  # noqa: PLC0415 - as above

    return LocalTask(entry.task, definition, entry.target or Target.RUNNING)


def _require_work(path: str, tasks: list[LocalTask], *, once: bool) -> None:
    if not tasks:
        raise click.UsageError(f"{path} has no tasks")
    if once and not any(task.is_bounded for task in tasks):
        raise click.UsageError(
            f"--once: no task of {path} comes to an end; give one `trigger: {{available_now: true}}`"
        )


def _run(
    settings: WorkerSettings, logs: LogSettings, tasks: list[LocalTask], *, once: bool, as_json: bool
) -> int:
    from cli.views.run_table import print_end, run_view  # noqa: PLC0415 - as above
    from worker.malloc_arenas import use_one_arena  # noqa: PLC0415 - as above
    from worker.standalone.standalone_worker import run_alone  # noqa: PLC0415 - as above

    use_one_arena()
    with run_view(tasks, quiet=as_json) as view:
        configure_logging(logs)  # inside the view, which leads stderr past its table
        code = asyncio.run(run_alone(settings, tasks, once=once, show=view.show))
    if as_json:
        print_end(view.last)
    return code
