"""Tells the outside that a task takes more than a limit of its definition allows (docs/events.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from definition.limits import NAMES
from manager.core.task_registry import TaskProgress
from protocol.messages.events import EventType
from protocol.task_metrics import figures

if TYPE_CHECKING:
    from manager.core.turn import Turn
    from protocol.messages.ownership import TaskReport

EVERY_MS: Final = 60_000
"""The shortest time between two events of one task; what comes sooner is told by a report after it."""


def begin(turn: Turn, task: str) -> None:
    """The task was granted, under a new token, and its worker counts from 0."""
    registry = turn.group.tasks
    row = registry.ownership_of(turn.group.name, task)
    registry.progress.setdefault(task, TaskProgress(row.batch_id)).exceeded = {}


def note(turn: Turn, entry: TaskReport, progress: TaskProgress) -> None:
    """Take a report in: what it counts more than was told is told.

    Where a manager finds a task with an owner, it begins with the first count that it hears.
    """
    told = figures(entry.metrics, "exceeded")
    counts = {name: int(told[name]) for name in NAMES if told.get(name, 0) > 0}
    before = progress.exceeded
    if before is None:
        progress.exceeded = counts if entry.metrics is not None else None
        return
    more = {name: count - before.get(name, 0) for name, count in counts.items()}
    more = {name: times for name, times in more.items() if times > 0}
    last_at = progress.exceeded_told_at
    if not more or (last_at is not None and turn.now - last_at < EVERY_MS):
        return
    progress.exceeded, progress.exceeded_told_at = counts, turn.now
    turn.tell(
        EventType.TASK_LIMIT_EXCEEDED,
        task=entry.task,
        member=turn.group.tasks.owner_of(entry.task),
        generation_id=turn.group.generation,
        cause=entry.cause,
        reasons=more,
    )
