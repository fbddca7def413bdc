"""Tasks as they are shown (protocol §5, Admin endpoints)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manager.core import checks
from manager.core.tasks import former_owners, quarantine, settling
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.tasks import TaskListResponse, TaskResponse, TaskStatusResponse, TaskView
from protocol.states import TaskState

if TYPE_CHECKING:
    from manager.core.commands import GetTask, GetTaskStatus, ListTasks
    from manager.core.group import Group
    from manager.core.parked import Parked
    from manager.core.rows import OwnershipRow, TaskRow
    from manager.core.turn import Turn


def find(group: Group, task: str) -> TaskRow:
    """The task called so.

    Raises:
        RefusedError: GROUP_ID_NOT_FOUND or UNKNOWN_TASK.
    """
    checks.known(group)
    row = group.herd.definitions.get(task)
    if row is None:
        raise RefusedError(ErrorCode.UNKNOWN_TASK, f"there is no task {task} in group {group.name}")
    return row


def list_all(turn: Turn, _: ListTasks, parked: Parked) -> None:
    """Answer with every task, by name."""
    group = turn.group
    checks.known(group)
    definitions = group.herd.definitions
    views = tuple(TaskView(**_view(group, definitions[name])) for name in sorted(definitions))
    turn.answer(parked, TaskListResponse(tasks=views, tasks_revision=group.header.tasks_revision))


def get(turn: Turn, request: GetTask, parked: Parked) -> None:
    """Answer with one task."""
    turn.answer(parked, task_response(turn.group, find(turn.group, request.task)))


def get_status(turn: Turn, request: GetTaskStatus, parked: Parked) -> None:
    """Answer with the status of one task."""
    turn.answer(parked, status_response(turn.group, find(turn.group, request.task)))


def task_response(group: Group, row: TaskRow) -> TaskResponse:
    """A task in full."""
    return TaskResponse(**_view(group, row))


def status_response(group: Group, row: TaskRow) -> TaskStatusResponse:
    """How a task is doing."""
    return TaskStatusResponse(**_status(group, row))


def _view(group: Group, row: TaskRow) -> dict[str, Any]:
    return {
        **_status(group, row),
        "definition": row.definition,
        "definition_version": row.definition_version,
    }


def _status(group: Group, row: TaskRow) -> dict[str, Any]:
    herd = group.herd
    ownership = herd.ownership_of(group.name, row.task)
    progress = herd.progress.get(row.task)
    assigned = herd.assigned.get(row.task)
    return {
        "task": row.task,
        "state": ownership.state.value,
        "target": row.target.value,
        "owner": ownership.owner,
        "token": ownership.token,
        "generation_id": ownership.generation_id,
        "batch_id": progress.batch_id if progress else ownership.batch_id,
        "metrics": progress.metrics if progress else None,
        "cause": ownership.cause or _why_unsettled(group, ownership) or why_unassigned(group, row, assigned),
        "since_ms": ownership.since_ms,
        "restart_count": row.restart_count,
        "assigned_to": assigned,
        "reset": ownership.reset,
    }


def _why_unsettled(group: Group, ownership: OwnershipRow) -> str | None:
    """A stopped task says that it still is of concern to a worker."""
    if ownership.state is not TaskState.STOPPED or not ownership.unsettled:
        return None
    what = "a worker has yet to see to it that nobody who had it before writes to its sink"
    if settling.is_possible(group):
        return what
    return f"{what} (none is asked while one of an earlier version is in the group)"


def why_unassigned(group: Group, row: TaskRow, assigned: str | None) -> str | None:
    """A task nobody runs says what it waits for."""
    ownership = group.herd.ownership_of(group.name, row.task)
    if ownership.state is not TaskState.UNASSIGNED:
        return None
    former = former_owners.holder(ownership)
    if former is not None:
        return f"it has no fence, and {former} may still run it: it was heard not long enough ago"
    if ownership.lost_by is not None:
        return f"it is kept for {ownership.lost_by}, which was lost and may return (lost_task_delay_ms)"
    if not group.members:
        return "the group has no workers"
    if assigned is not None:
        return quarantine.why_waiting(ownership)
    silent = (
        "the leader gave it to no worker, and did not say why" if row.task in group.herd.offered else None
    )
    return group.herd.left_out.get(row.task, silent)
