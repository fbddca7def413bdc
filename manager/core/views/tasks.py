"""Looking at tasks: what they are, how they are doing, what became of them (protocol §5, Admin endpoints)."""

from __future__ import annotations

from bisect import bisect_right
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from manager.core import checks
from manager.core.task_metrics import INTERVAL_MS
from manager.core.tasks.responses import status_response, task_fields, task_response
from protocol.messages.history import MovesResponse, TaskHistoryResponse
from protocol.messages.tasks import TaskListResponse, TaskView

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from manager.core.commands import GetTask, GetTaskHistory, GetTaskStatus, ListMoves, ListTasks
    from manager.core.group import Group
    from manager.core.member import Parked
    from manager.core.task_registry import TaskRegistry
    from manager.core.turn import Turn


def list_tasks(turn: Turn, request: ListTasks, parked: Parked) -> None:
    """Answer with the tasks that are asked for, by name."""
    group = turn.group
    checks.known(group)
    found = [*islice(_wanted(group, request), request.limit and request.limit + 1)]
    page = found[: request.limit]
    views = tuple(listed(turn, name) for name in page)
    turn.answer(
        parked,
        TaskListResponse(
            tasks=views,
            tasks_revision=group.header.tasks_revision,
            next=page[-1] if len(found) > len(page) else None,
            etag=checks.list_tag(group),
        ),
    )


def _wanted(group: Group, request: ListTasks) -> Iterator[str]:
    """Names stay where they are as others come and go: nothing that stays is told twice, or never."""
    registry = group.tasks
    names = _in_order(registry, request)
    begin = 0 if request.after is None else bisect_right(names, request.after)
    in_state = None if request.state is None else registry.tally.in_state(request.state)
    for place in range(begin, len(names)):  # a later page does not walk past those before it
        name = names[place]
        if (in_state is None or name in in_state) and (
            request.target is None or registry.definitions[name].target.value == request.target
        ):
            yield name


def _in_order(registry: TaskRegistry, request: ListTasks) -> Sequence[str]:
    """The names among which to look: there are fewer of one owner, and mostly of one state."""
    if request.owner is not None:
        return sorted(registry.owned_by(request.owner))
    if request.state is not None and registry.tally.is_few(request.state, len(registry.names)):
        return sorted(registry.tally.in_state(request.state))
    return registry.names


def listed(turn: Turn, task: str) -> TaskView:
    """In a list a lag has its sums only: a task may have hundreds of partitions."""
    fields = task_fields(turn, turn.group.tasks.definitions[task])
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
