"""`--wait`, and what it waits for: tasks in the state that is wanted, idle workers, a group at rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from cli.client.admin_client import path_of
from cli.exit_codes import DONE, FAILED
from cli.views.progress import WaitProgress, wait_for
from protocol.messages.groups import DescribeGroupResponse
from protocol.messages.tasks import TaskListResponse
from protocol.states import GroupState, Target, TaskState

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from cli.client.admin_client import AdminClient
    from protocol.messages.tasks import TaskView

    Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_REACHED = {
    Target.RUNNING.value: {TaskState.RUNNING.value, TaskState.COMPLETED.value},
    Target.PAUSED.value: {TaskState.PAUSED.value},
    Target.STOPPED.value: {TaskState.STOPPED.value, TaskState.COMPLETED.value},
}


def wait_options(command: Decorated) -> Decorated:
    """`--wait` and `--timeout`, for commands that ask for what takes a while."""
    timeout = click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0),
        default=300,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait at most.",
    )
    return click.option("--wait", is_flag=True, help="Wait until it is done; exit code 1 if it fails.")(
        timeout(command)
    )


def failures(client: AdminClient, group: str, tasks: Collection[str]) -> dict[str, int]:
    """Those of the tasks that are FAILED, and since when."""
    return {
        task.task: task.since_ms
        for task in _tasks(client, group)
        if task.task in tasks and task.state == TaskState.FAILED.value
    }


def until_on_target(
    client: AdminClient,
    group: str,
    tasks: Collection[str],
    timeout_s: float,
    mended: Mapping[str, int] | None = None,
) -> int:
    """Wait until each task's state is what is wanted of it; the exit code.

    A query that is to be replaced by a newer one of the same state cannot be told from that. Those that are
    `mended` were FAILED, since then, when something was done about it: that is not taken for a new failure.
    """
    known = mended or {}

    def look() -> WaitProgress:
        views = [task for task in _tasks(client, group) if task.task in tasks]
        done = sum(task.state in _REACHED.get(task.target, ()) for task in views)
        return WaitProgress(
            done, len(tasks), _failure(task for task in views if task.since_ms != known.get(task.task))
        )

    return _wait(look, f"tasks of {group}", timeout_s)


def until_balanced(client: AdminClient, group: str, timeout_s: float, after: int) -> int:
    """Wait until a generation later than `after` is at rest, each task where it belongs; the exit code."""

    def look() -> WaitProgress:
        described = client.get(path_of("groups", group), DescribeGroupResponse)
        tasks = _tasks(client, group)
        settled = sum(task.owner == task.assigned_to for task in tasks)
        is_new = described.state == GroupState.STABLE.value and described.generation_id > after
        return WaitProgress(settled + (is_new or described.state == GroupState.EMPTY.value), len(tasks) + 1)

    return _wait(look, f"{group} is balanced", timeout_s)


def until_drained(client: AdminClient, group: str, worker: str, timeout_s: float) -> int:
    """Wait until the worker owns nothing; the exit code."""
    most = 0

    def look() -> WaitProgress:
        nonlocal most
        left = sum(task.owner == worker for task in _tasks(client, group))
        most = max(most, left)
        return WaitProgress(most - left, most)

    return _wait(look, f"tasks moved away from {worker}", timeout_s)


def _wait(look: Callable[[], WaitProgress], what: str, timeout_s: float) -> int:
    fault = wait_for(look, what, within_s=timeout_s)
    if fault is None:
        return DONE
    click.echo(f"sparkherd: {fault}", err=True)
    return FAILED


def _failure(tasks: Iterable[TaskView]) -> str | None:
    """The first task that is FAILED though it is to run, with the first line of its cause."""
    for task in tasks:
        if task.state == TaskState.FAILED.value and task.target == Target.RUNNING.value:
            return f"{task.task} is FAILED: {(task.cause or 'no cause was told').splitlines()[0]}"
    return None


def _tasks(client: AdminClient, group: str) -> tuple[TaskView, ...]:
    return client.get(path_of("groups", group, "tasks"), TaskListResponse).tasks
