"""Starting a stopped task anew, on an empty checkpoint (protocol §5; after KIP-875)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from definition.document import is_fenced
from definition.resets import faults, meaning, read_ends, refused_offsets
from manager.core import checks, scheduling
from manager.core.tasks import definitions, former_owners
from protocol.errors import ErrorCode, RefusedError
from protocol.fencing import next_number
from protocol.messages.events import EventType
from protocol.messages.tasks import ResetTaskResponse, TaskReset
from protocol.states import Target

if TYPE_CHECKING:
    from manager.core.commands import ResetTask
    from manager.core.group import Group
    from manager.core.member import Parked
    from manager.core.stored_rows import TaskRow
    from manager.core.turn import Turn
    from protocol.messages.tasks import Offsets


def reset(turn: Turn, request: ResetTask, parked: Parked) -> None:
    """Have a task that nobody runs begin anew, under a higher token, which is the reset's number as well.

    Its old checkpoint stays where it is, of no use to anybody: sinks refuse whoever goes on from it. They are
    told at once, by a worker that the task is given to for nothing else: an owner of before that was frozen
    might still write into a sink that has been emptied for the rows to come.
    """
    group = turn.group
    row = checks.movable(group, request.task)
    _check_stopped(group, row)
    ends = read_ends(row.definition)
    if problems := tuple(faults(ends, request.offsets)):
        raise refused_offsets(problems)
    token, stored = _begin_anew(turn, row, request.offsets)
    told = meaning(ends, request.offsets)
    turn.answer(parked, ResetTaskResponse(task=row.task, token=token, reset=stored, meaning=told))


def _check_stopped(group: Group, row: TaskRow) -> None:
    """It is to be stopped and, which takes its owner a while, has stopped: nobody is to write any more."""
    if row.target is not Target.STOPPED:
        raise RefusedError(
            ErrorCode.INVALID_REQUEST,
            f"target: task {row.task} is to be {row.target.value}; only one that is STOPPED can be reset",
        )
    owner = group.tasks.owner_of(row.task)
    if owner is not None:
        raise RefusedError(
            ErrorCode.REBALANCE_IN_PROGRESS,
            f"task {row.task} is still being stopped by {owner}; reset it when it has no owner any more",
        )
    former = former_owners.holder(group.tasks.ownership_of(group.name, row.task))
    if former is not None:
        raise RefusedError(
            ErrorCode.REBALANCE_IN_PROGRESS,
            f"task {row.task} has no fence, and {former}, which was lost, may still run it;"
            " reset it when that worker was heard 1.25 session timeouts ago",
        )


def _begin_anew(turn: Turn, row: TaskRow, offsets: Offsets) -> tuple[int, TaskReset]:
    """Store the reset; returns the token that fences all before it, and the reset."""
    registry = turn.group.tasks
    definitions.start_over(turn, definitions.change(turn, row, EventType.TASK_RESET))
    ownership = registry.ownership[row.task]
    token = next_number(ownership.token, turn.instant.wall)
    stored = TaskReset(token, offsets)
    unsettled = ownership.unsettled or is_fenced(row.definition)
    turn.update(ownership, token=token, reset=stored, unsettled=unsettled)
    scheduling.rebalance_soon(turn)
    registry.forget_progress(row.task)
    turn.note(f"task {row.task} was reset under token {token}")
    return token, stored
