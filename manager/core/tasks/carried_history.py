"""What a transferred task brings along of what became of it (protocol §5, Transfers).

A history is in memory, and that of a group goes on without a task that has left it. So what is remembered
of the task is packed with all else that it is, and stored by the group that takes it in, in the transaction
that does so. It is a row of that group as long as the task is there, and goes along again from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from manager.core.history import TASK_LINES_KEPT
from manager.core.stored_rows import CarriedHistoryRow

if TYPE_CHECKING:
    from manager.core.group import Group
    from manager.core.turn import Turn
    from protocol.messages.history import TaskHistoryLine

CAUSE_LENGTH: Final = 300
"""Characters of a cause that go along: 50 tasks change hands in one turn, of 50 lines each."""


def packed(group: Group, task: str) -> tuple[TaskHistoryLine, ...]:
    """The history of `task`, oldest first; each line says from now on in which group it was, and its name.

    Args:
        group: the one that it leaves.
        task: its name there.

    Returns:
        As many lines as a history has at most. A longer cause is cut; the present one is in the ownership.
    """
    return tuple(_named(line, group.name, task) for line in group.tasks.history.of_task(task))


def _named(line: TaskHistoryLine, group: str, task: str) -> TaskHistoryLine:
    cause = None if line.cause is None else line.cause[:CAUSE_LENGTH]
    if line.group is not None:
        return msgspec.structs.replace(line, cause=cause)
    return msgspec.structs.replace(line, cause=cause, group=group, task=task)


def unpack(turn: Turn, task: str, lines: tuple[TaskHistoryLine, ...]) -> None:
    """Store that `task`, which has just been taken in, comes with `lines`."""
    if lines:
        turn.put(CarriedHistoryRow(group=turn.group.name, task=task, lines=lines[-TASK_LINES_KEPT:]))


def forget(turn: Turn, task: str) -> None:
    """`task` leaves, or is deleted: a later one of its name has a history of its own."""
    if turn.group.tasks.history.has_carried(task):
        turn.drop(CarriedHistoryRow(group=turn.group.name, task=task, lines=()))
