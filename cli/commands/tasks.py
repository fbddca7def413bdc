"""`sparkherd tasks`: create, see and steer tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import Raw, json

from cli.client.admin_client import AdminClient, path_of
from cli.client.task_pages import as_one, task_pages
from cli.commands import quarantine, reset, transfers
from cli.commands.apply import apply_command, create_command
from cli.commands.check import check_command
from cli.exit_codes import DONE
from cli.options.common import admin_options, example, group_option, task_argument, tasks_argument
from cli.options.wait import until_on_target, wait_options
from cli.views.left_out import left_out_sentence
from cli.views.output import ago, print_json, print_table, print_yaml
from protocol.messages.base import Response
from protocol.messages.tasks import TaskResponse, TaskStatus, TaskStatusResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from protocol.messages.lag import TaskLag


_QUARANTINED: Final = (
    "is in quarantine: nobody is given it before `sparkherd tasks restart`, `resume` or another definition"
)


@click.group("tasks")
def command() -> None:
    """Create, see and steer the tasks of a group."""


command.add_command(apply_command)
command.add_command(create_command)
command.add_command(check_command)


@command.command("list", epilog=example("sparkherd tasks list --group flights"))
@group_option
@admin_options
def list_tasks(client: AdminClient, group: str, *, as_json: bool) -> None:
    """List the tasks of a group and how they are doing."""
    pages = task_pages(client, group)
    if as_json:
        print_json(as_one(pages))
        return
    _print_statuses(task for page in pages for task in json.decode(page["tasks"], type=list[TaskStatus]))


@command.command("describe", epilog=example("sparkherd tasks describe delays --group flights"))
@task_argument
@group_option
@admin_options
def describe(client: AdminClient, group: str, task: str, *, as_json: bool) -> None:
    """Show one task with its definition."""
    path = path_of("groups", group, "tasks", task)
    if as_json:
        print_json(client.get(path, Raw))
        return
    view = client.get(path, TaskResponse)
    _print_statuses([view])
    click.echo()
    print_yaml({"definition": json.decode(view.definition)})


@command.command("status", epilog=example("sparkherd tasks status delays --group flights"))
@tasks_argument
@group_option
@admin_options
def status(client: AdminClient, group: str, tasks: tuple[str, ...], *, as_json: bool) -> None:
    """Show how tasks are doing, and why one failed."""
    if as_json:
        print_json([client.get(_status_path(group, task), Raw) for task in tasks])
        return
    statuses = [client.get(_status_path(group, task), TaskStatusResponse) for task in tasks]
    _print_statuses(statuses)
    for task in statuses:
        if task.cause:
            click.echo(f"\n{task.task}: {task.cause}")
        if task.quarantined:
            click.echo(f"\n{task.task}: {_QUARANTINED}")
        if task.heap_suspicion:
            click.echo(f"\n{task.task}: is suspected: {task.heap_suspicion.said}")
        if task.transfer:
            click.echo(f"\n{task.task}: is on its way to another group: transfer {task.transfer}")
        if said := left_out_sentence(task.metrics):
            click.echo(f"\n{task.task}: {said}")
        if task.reset:
            click.echo(f"\n{task.task}: has begun anew {reset.described_reset(task.reset)}")


def _status_path(group: str, task: str) -> str:
    return path_of("groups", group, "tasks", task, "status")


def _print_statuses(statuses: Iterable[TaskStatus]) -> None:
    print_table(
        ("TASK", "STATE", "TARGET", "OWNER", "TOKEN", "BATCH", "LAG", "RESTARTS", "SINCE", "CAUSE"),
        map(_status_row, statuses),
    )


def _status_row(s: TaskStatus) -> tuple[object, ...]:
    cause = s.cause.splitlines()[0] if s.cause else None
    known = s.task, s.state, s.target, s.owner, s.token, s.batch_id, _lag(s.lag)
    return *known, s.restart_count, ago(s.since_ms), cause


def _lag(lag: TaskLag | None) -> str | None:
    """Rows behind, with a `+` if there are partitions besides that nobody knows of; `?` if all are such."""
    if lag is None:
        return None
    if lag.rows is None:
        return "?" if lag.trouble is not None or lag.unknown else None
    return f"{lag.rows:,}+" if lag.unknown else f"{lag.rows:,}"


def _steering(verb: str, help_text: str, method: str, result: str) -> click.Command:
    """A command that asks one thing of each of some tasks."""

    @click.command(
        verb, help=help_text, epilog=example(f"sparkherd tasks {verb} delays late --group flights")
    )
    @tasks_argument
    @_wait_where_it_shows(verb)
    @group_option
    @admin_options
    def steer(
        client: AdminClient, group: str, tasks: tuple[str, ...], *, as_json: bool, **waiting: Any
    ) -> int:
        for task in tasks:
            path = path_of("groups", group, "tasks", task)
            client.call(method, path if method == "DELETE" else f"{path}/{verb}", into=Response)
        _tell_results(tasks, result, as_json=as_json)
        if not waiting.get("wait"):
            return DONE
        return until_on_target(client, group, tasks, waiting["timeout_s"])

    return steer


def _wait_where_it_shows(verb: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """A deleted task has no state to wait for, and a restarted one has the same before and after."""
    return wait_options if verb in {"pause", "resume", "stop"} else (lambda steer: steer)


def _tell_results(tasks: Iterable[str], result: str, *, as_json: bool) -> None:
    if as_json:
        print_json([{"task": task, "result": result} for task in tasks])
        return
    for task in tasks:
        click.echo(f"{task}: {result}")


for _verb, _help, _method, _result in (
    ("pause", "Pause tasks; each stays with its worker.", "PUT", "pause asked for"),
    ("resume", "Let paused or stopped tasks run again.", "PUT", "resume asked for"),
    ("stop", "Stop tasks; they belong to nobody until resumed.", "PUT", "stop asked for"),
    ("restart", "Restart tasks where they are.", "POST", "restart asked for"),
    ("delete", "Delete tasks; their checkpoints stay.", "DELETE", "deleted"),
):
    command.add_command(_steering(_verb, _help, _method, _result))
command.add_command(reset.command)
command.add_command(transfers.transfer_command)
command.add_command(quarantine.command)
