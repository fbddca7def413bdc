"""The group as the demo sees it at one moment, read through the manager's API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cli.client.admin_client import path_of
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.groups import DescribeGroupResponse
from protocol.messages.tasks import TaskListResponse, TaskView
from protocol.states import GroupState, TaskState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cli.client.admin_client import AdminClient
    from cli.demo.demo_tasks import DemoTask


@dataclass(frozen=True, slots=True)
class TaskLine:
    """One task: what it is doing, for whom, how far it is. `owner` is a worker's name."""

    name: str
    state: TaskState
    owner: str | None
    token: int
    batch_id: int | None
    rows: int
    rows_in_all: int
    cause: str | None

    @property
    def running(self) -> bool:
        """Whether its owner runs it."""
        return self.state is TaskState.RUNNING


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The group at one moment."""

    state: str
    generation: int
    leader: str | None
    workers: tuple[str, ...]
    tasks: Mapping[str, TaskLine]

    @property
    def rows(self) -> int:
        """The rows that all tasks together have dealt with."""
        return sum(task.rows for task in self.tasks.values())

    @property
    def done(self) -> bool:
        """Whether every row was read and written."""
        return bool(self.tasks) and all(task.rows == task.rows_in_all for task in self.tasks.values())

    @property
    def stable(self) -> bool:
        """Whether no rebalance is going on."""
        return self.state == GroupState.STABLE.value

    def owned_by(self, worker: str) -> list[str]:
        """The tasks of a worker, by name."""
        return sorted(task.name for task in self.tasks.values() if task.owner == worker)


NOBODY_YET = Snapshot(state=GroupState.EMPTY.value, generation=0, leader=None, workers=(), tasks={})


def snapshot(client: AdminClient, group: str, plan: Sequence[DemoTask]) -> Snapshot:
    """Ask the manager how the group is doing."""
    try:
        described = client.get(path_of("groups", group), DescribeGroupResponse)
        tasks = client.get(path_of("groups", group, "tasks"), TaskListResponse).tasks
    except RefusedError as error:
        if error.failure.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return NOBODY_YET
        raise
    names = {member.member_id: member.client_id for member in described.members}
    return Snapshot(
        state=described.state,
        generation=described.generation_id,
        leader=names.get(described.leader_id or ""),
        workers=tuple(sorted(names.values())),
        tasks=_task_lines(tasks, plan, names),
    )


def _task_lines(
    tasks: Iterable[TaskView], plan: Sequence[DemoTask], names: Mapping[str, str]
) -> dict[str, TaskLine]:
    planned = {task.name: task for task in plan}
    return {view.task: _task_line(view, planned[view.task], names) for view in tasks}


def _task_line(view: TaskView, task: DemoTask, names: Mapping[str, str]) -> TaskLine:
    return TaskLine(
        name=view.task,
        state=TaskState(view.state),
        owner=names.get(view.owner or ""),
        token=view.token,
        batch_id=view.batch_id,
        rows=task.rows_done(view.batch_id),
        rows_in_all=task.rows,
        cause=view.cause,
    )
