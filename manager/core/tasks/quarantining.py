"""How a task comes into quarantine, where nobody is given it, and out of it (protocol §5, Quarantine).

It comes there by the deaths of its workers (`manager.core.tasks.probation`), because its owner asks for that
whose query takes more than a limit of its definition allows, or because heaps grow with it beyond such a
limit (`manager.core.tasks.heap_watch`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from manager.core import scheduling
from manager.core.stored_rows import Blame
from manager.core.tasks import last_words, ownership
from protocol.messages.events import EventType
from protocol.states import Target, TaskState

if TYPE_CHECKING:
    from manager.core.group import Group
    from manager.core.stored_rows import OwnershipRow
    from manager.core.turn import Turn
    from protocol.messages.ownership import TaskReport


def is_asked_for(group: Group, entry: TaskReport) -> bool:
    """Whether the report of a task's owner has it put into quarantine."""
    task = group.tasks.definitions[entry.task]
    return entry.quarantine and task.target is Target.RUNNING and not last_words.is_overtaken(group, entry)


def grant_request(turn: Turn, row: OwnershipRow, owner: str) -> None:
    """`owner` has asked for it, whose query is over: the task is nobody's at once, and dealt to nobody.

    Args:
        turn: the step this is part of.
        row: as the owner has told it, with the cause.
        owner: the member's id.
    """
    blame = Blame((), quarantined=True)
    begin(turn, msgspec.structs.replace(row, owner=None, lease=None, blame=blame), owner)
    scheduling.rebalance_soon(turn)


def impose(turn: Turn, task: str, cause: str, member_id: str) -> None:
    """Nobody has asked for it: who runs the task is not waited for, and hears that its token is stale.

    Args:
        turn: the step this is part of.
        task: one that is to run, in quarantine or not.
        cause: why.
        member_id: the worker that it was found at.
    """
    registry = turn.group.tasks
    row = registry.ownership_of(turn.group.name, task)
    if row.is_quarantined or row.state is TaskState.COMPLETED:
        return
    if row.owner is not None:
        ownership.take_away(turn, task, turn.now)
        row = registry.ownership[task]
    begin(turn, msgspec.structs.replace(row, cause=cause, blame=Blame((), quarantined=True)), member_id)
    scheduling.rebalance_soon(turn)


def begin(turn: Turn, row: OwnershipRow, member_id: str) -> None:
    """Store that a task is in quarantine, and tell the outside.

    Args:
        turn: the step this is part of.
        row: of the task, with the cause, and what is held against it.
        member_id: the worker that it was found at.
    """
    ownership.store_state(turn, msgspec.structs.replace(row, state=TaskState.FAILED, lost_by=None))
    turn.note(f"task {row.task} is quarantined")
    turn.tell(
        EventType.TASK_QUARANTINED,
        task=row.task,
        member=member_id,
        generation_id=turn.group.generation,
        cause=row.cause,
    )


def end(turn: Turn, row: OwnershipRow) -> None:
    """Somebody takes the task's side: store that nothing is held against it any more."""
    state = turn.group.tasks.state_at_rest(row.task)
    ownership.store_state(turn, msgspec.structs.replace(row, state=state, cause=None, blame=None))
