"""How far tasks are behind their topics, as their owners say; of those without one the leader says it.

Held in memory only: it is measured again within moments, and worth nothing when it is old, or of what the
task was before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from manager.core import checks, sessions
from manager.core.task_registry import TaskProgress
from protocol.connectors import KAFKA
from protocol.messages.ownership import LagResponse, OwnerlessTask

if TYPE_CHECKING:
    from manager.core.group import Group
    from manager.core.member import Parked
    from manager.core.stored_rows import TaskRow
    from manager.core.turn import Turn
    from protocol.messages.lag import TaskLag
    from protocol.messages.ownership import LagRequest

MOST_AT_ONCE: Final = 100
"""Tasks that the leader is asked for in one answer."""
KEPT_MS: Final = 900_000
"""How long a word is shown. Whoever has the task by now may not be able to measure it."""


def tell(turn: Turn, request: LagRequest, parked: Parked) -> None:
    """Take in what the leader has measured, and tell it what to measure next; others are told of nothing."""
    group = turn.group
    member = checks.member(group, request.member_id, request.instance_id)
    sessions.request_accepted(turn, member, parked)
    if not group.is_leader(member):
        turn.answer(parked, LagResponse())
        return
    for task, lag in request.tasks.items():
        if task in group.tasks.definitions and group.tasks.owner_of(task) is None:
            note(turn, task, lag)
    if request.more:
        turn.answer(parked, LagResponse(tasks_revision=group.header.tasks_revision))
        return
    rows = _ownerless(group)
    asked = tuple(_asked(turn, row) for row in rows[:MOST_AT_ONCE])
    revision = group.header.tasks_revision
    turn.answer(parked, LagResponse(tasks=asked, ownerless=len(rows), tasks_revision=revision))


def note(turn: Turn, task: str, lag: TaskLag) -> None:
    """The latest word on a task counts, whoever has it, unless it is about the task as it was before."""
    registry = turn.group.tasks
    if lag.tasks_revision is not None and lag.tasks_revision < registry.definitions[task].revision:
        return
    progress = _progress(turn.group, task)
    progress.lag, progress.lag_heard_at = lag, turn.instant.wall
    progress.figures.note_lag(turn.instant.wall, lag.rows)


def forget(turn: Turn, task: str) -> None:
    """The task reads something else from now on, or nothing that can be measured."""
    if (progress := turn.group.tasks.progress.get(task)) is not None:
        progress.lag = None


def shown(turn: Turn, task: str) -> TaskLag | None:
    """How far the task is behind, None if that is not known or was told too long ago."""
    progress = turn.group.tasks.progress.get(task)
    if progress is None or turn.instant.wall > progress.lag_heard_at + KEPT_MS:
        return None
    return progress.lag


def _ownerless(group: Group) -> list[TaskRow]:
    """Those asked for longest ago come first: whatever cannot be measured is in the way of none."""
    registry = group.tasks
    rows = [
        row
        for row in registry.definitions.values()
        if row.needs is not None and KAFKA in row.needs.sources and registry.owner_of(row.task) is None
    ]
    return sorted(rows, key=lambda each: (_asked_at(group, each), each.task))


def _asked(turn: Turn, row: TaskRow) -> OwnerlessTask:
    group = turn.group
    _progress(group, row.task).lag_asked_at = turn.now
    known = group.tasks.ownership_of(group.name, row.task)
    return OwnerlessTask(task=row.task, definition=row.definition, reset=known.reset, home=known.home)


def _asked_at(group: Group, row: TaskRow) -> int:
    progress = group.tasks.progress.get(row.task)
    return -1 if progress is None else progress.lag_asked_at


def _progress(group: Group, task: str) -> TaskProgress:
    registry = group.tasks
    return registry.progress.setdefault(task, TaskProgress(registry.ownership_of(group.name, task).batch_id))
