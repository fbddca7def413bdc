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
    from collections.abc import Iterable, Mapping

    from cli.client.admin_client import AdminClient
    from cli.demo.plan import DemoTask, Plan


@dataclass(frozen=True, slots=True)
class TaskLine:
    """One task: what it is doing, for whom, how far it is.

    `owner` is a worker's name; `rows` are those in the sink, of `rows_in_all` where that is known; `lag` is
    how many rows of its topic it has still to read, None where nobody can tell.
    """

    name: str
    state: TaskState
    owner: str | None
    token: int
    batch_id: int | None
    rows: int
    rows_in_all: int | None
    lag: int | None
    cause: str | None

    @property
    def running(self) -> bool:
        """Whether its owner runs it."""
        return self.state is TaskState.RUNNING


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The group at one moment; `rows_in_all` is what all tasks together are to write."""

    state: str
    generation: int
    leader: str | None
    workers: tuple[str, ...]
    tasks: Mapping[str, TaskLine]
    rows_in_all: int

    @property
    def rows(self) -> int:
        """The rows that all tasks together have written."""
        return sum(task.rows for task in self.tasks.values())

    @property
    def share_done(self) -> float:
        """The share of all rows that was written, 0 to 1; more where some are there twice."""
        return self.rows / self.rows_in_all if self.rows_in_all else 0.0

    @property
    def lag(self) -> int | None:
        """How many rows all tasks together have still to read; None unless it is known of each."""
        known = [task.lag for task in self.tasks.values() if task.lag is not None]
        return sum(known) if known and len(known) == len(self.tasks) else None

    @property
    def stable(self) -> bool:
        """Whether no rebalance is going on."""
        return self.state == GroupState.STABLE.value

    def owned_by(self, worker: str) -> list[str]:
        """The tasks of a worker, by name."""
        return sorted(task.name for task in self.tasks.values() if task.owner == worker)


NOBODY_YET = Snapshot(
    state=GroupState.EMPTY.value, generation=0, leader=None, workers=(), tasks={}, rows_in_all=0
)


def snapshot(client: AdminClient, group: str, plan: Plan, rows: Mapping[str, int]) -> Snapshot:
    """Ask the manager how the group is doing; `rows` are those in the sink, by task."""
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
        tasks=_task_lines(tasks, plan, rows, names),
        rows_in_all=plan.rows,
    )


def _task_lines(
    tasks: Iterable[TaskView], plan: Plan, rows: Mapping[str, int], names: Mapping[str, str]
) -> dict[str, TaskLine]:
    planned = {task.name: task for task in plan.tasks}
    return {view.task: _task_line(view, planned[view.task], rows, names) for view in tasks}


def _task_line(view: TaskView, task: DemoTask, rows: Mapping[str, int], names: Mapping[str, str]) -> TaskLine:
    return TaskLine(
        name=view.task,
        state=TaskState(view.state),
        owner=names.get(view.owner or ""),
        token=view.token,
        batch_id=view.batch_id,
        rows=rows[view.task],
        rows_in_all=task.rows,
        lag=None if view.lag is None else view.lag.rows,
        cause=view.cause,
    )
