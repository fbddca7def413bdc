"""A task as it is shown, and why it is nobody's (protocol §5, Admin endpoints)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manager.core.tasks import former_owners, heap_shown, homes, lag, quarantine, settling
from protocol.messages.tasks import TaskResponse, TaskStatusResponse
from protocol.states import TaskState

if TYPE_CHECKING:
    from manager.core.group import Group
    from manager.core.stored_rows import OwnershipRow, TaskRow
    from manager.core.turn import Turn


def task_response(turn: Turn, row: TaskRow) -> TaskResponse:
    """A task in full."""
    return TaskResponse(**task_fields(turn, row))


def status_response(turn: Turn, row: TaskRow) -> TaskStatusResponse:
    """How a task is doing."""
    return TaskStatusResponse(**_status_fields(turn, row))


def task_fields(turn: Turn, row: TaskRow) -> dict[str, Any]:
    """The fields that a task has in lists and by itself."""
    return {
        **_status_fields(turn, row),
        "definition": row.definition,
        "definition_version": row.definition_version,
    }


def _status_fields(turn: Turn, row: TaskRow) -> dict[str, Any]:
    group, registry = turn.group, turn.group.tasks
    ownership = registry.ownership_of(group.name, row.task)
    progress = registry.progress.get(row.task)
    assigned = registry.assigned.get(row.task)
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
        "lag": lag.shown(turn, row.task),
        "quarantined": ownership.is_quarantined,
        "heap_suspicion": heap_shown.of_task(turn, row.task),
        "home": ownership.home,
        "transfer": group.transfers.moving.get(row.task),
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
    ownership = group.tasks.ownership_of(group.name, row.task)
    if ownership.state is not TaskState.UNASSIGNED:
        return None
    former = former_owners.holder(ownership)
    if former is not None:
        return f"it has no fence, and {former} may still run it: it was heard not long enough ago"
    if ownership.lost_by is not None:
        return f"it is kept for {ownership.lost_by}, which was lost and may return (lost_task_delay_ms)"
    if not group.members:
        return "the group has no workers"
    return _why_not_given(group, row.task) if assigned is None else quarantine.why_waiting(ownership)


def _why_not_given(group: Group, task: str) -> str | None:
    if homes.has_home(group, task) and not homes.are_known(group):
        return homes.WHY_NOBODY
    silent = "the leader gave it to no worker, and did not say why" if task in group.tasks.offered else None
    return group.tasks.left_out.get(task, silent)
