"""Tells the outside that tasks put rows aside, by the rule of `manager.core.aside`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from definition.left_out import reasons_in
from manager.core.task_registry import TaskProgress
from protocol.messages.events import EventType

if TYPE_CHECKING:
    from manager.core.aside import AsideWatch
    from manager.core.group import TimerKey
    from manager.core.turn import Turn
    from protocol.messages.ownership import TaskReport

ASIDE: Final = "aside"


def key(task: str) -> TimerKey:
    """The timer that tells what could not be told at once."""
    return (ASIDE, task)


def begin(turn: Turn, task: str) -> None:
    """The task was granted, under a new token."""
    registry = turn.group.tasks
    row = registry.ownership_of(turn.group.name, task)
    registry.progress.setdefault(task, TaskProgress(row.batch_id)).aside.begin()


def note(turn: Turn, entry: TaskReport, watch: AsideWatch) -> None:
    """Take a report in, and tell what is to be told by now."""
    document = turn.group.tasks.definitions[entry.task].definition
    watch.take_in(entry.batch_id, entry.metrics, lambda: reasons_in(document).quarantined)
    _tell(turn, entry.task, watch)


def time_over(turn: Turn, task: str) -> None:
    """What was put aside since the last event may be told; the task may be gone by now."""
    progress = turn.group.tasks.progress.get(task)
    if progress is not None:
        _tell(turn, task, progress.aside)


def _tell(turn: Turn, task: str, watch: AsideWatch) -> None:
    due_at = watch.due_at(turn.now)
    if due_at is None:
        return
    if due_at > turn.now:
        turn.group.timers.set(key(task), due_at)
        return
    news = watch.tell(turn.now)
    turn.tell(
        EventType.ROWS_QUARANTINED,
        task=task,
        member=turn.group.tasks.owner_of(task),
        generation_id=turn.group.generation,
        rows=news.rows,
        reasons=news.reasons,
    )
