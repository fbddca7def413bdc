"""Looking at tasks: what they are, how they are doing, what became of them (protocol §5, Admin endpoints)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from manager.core import checks
from manager.core.task_metrics import INTERVAL_MS
from manager.core.tasks.responses import status_response, task_fields, task_response
from protocol.messages.history import MovesResponse, TaskHistoryResponse
from protocol.messages.tasks import TaskListResponse, TaskView

if TYPE_CHECKING:
    from manager.core.commands import GetTask, GetTaskHistory, GetTaskStatus, ListMoves, ListTasks
    from manager.core.member import Parked
    from manager.core.turn import Turn


def list_all(turn: Turn, _: ListTasks, parked: Parked) -> None:
    """Answer with every task, by name."""
    group = turn.group
    checks.known(group)
    definitions = group.tasks.definitions
    views = tuple(_listed(task_fields(turn, definitions[name])) for name in sorted(definitions))
    turn.answer(parked, TaskListResponse(tasks=views, tasks_revision=group.header.tasks_revision))


def _listed(fields: dict[str, Any]) -> TaskView:
    """In a list a lag has its sums only: a task may have hundreds of partitions."""
    lag = fields["lag"]
    return TaskView(**fields | {"lag": lag and msgspec.structs.replace(lag, partitions=())})


def get(turn: Turn, request: GetTask, parked: Parked) -> None:
    """Answer with one task."""
    turn.answer(parked, task_response(turn, checks.task(turn.group, request.task)))


def get_status(turn: Turn, request: GetTaskStatus, parked: Parked) -> None:
    """Answer with the status of one task."""
    turn.answer(parked, status_response(turn, checks.task(turn.group, request.task)))


def get_history(turn: Turn, request: GetTaskHistory, parked: Parked) -> None:
    """Answer with the last hour of one task, and its history."""
    task = checks.task(turn.group, request.task).task
    registry = turn.group.tasks
    progress = registry.progress.get(task)
    turn.answer(
        parked,
        TaskHistoryResponse(
            task=task,
            since_ms=registry.history.since_ms,
            interval_ms=INTERVAL_MS,
            points=tuple(progress.figures.points(turn.instant.wall)) if progress is not None else (),
            history=tuple(registry.history.of_task(task)),
        ),
    )


def list_moves(turn: Turn, _: ListMoves, parked: Parked) -> None:
    """Answer with the latest moves of all tasks."""
    checks.known(turn.group)
    history = turn.group.tasks.history
    turn.answer(parked, MovesResponse(since_ms=history.since_ms, moves=tuple(history.moves)))
