"""Changing hands: who holds a task's token, and what its state becomes (PROTOCOL.md §5, Ownership)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from manager.core.herd import LIVE_STATES
from protocol.messages.base import decode_opaque
from protocol.messages.events import EventType
from protocol.states import Target, TaskState
from protocol.worker_metadata import PROTOCOL_TYPE, WorkerMetadata

if TYPE_CHECKING:
    from manager.core.group import TimerKey
    from manager.core.member import Member
    from manager.core.rows import OwnershipRow
    from manager.core.turn import Turn

FENCE = "fence"

TOLD = {
    TaskState.STOPPED: EventType.TASK_STOPPED,
    TaskState.COMPLETED: EventType.TASK_COMPLETED,
    TaskState.FAILED: EventType.TASK_FAILED,
}
"""States in which a task no longer runs and does not go on by itself: the outside hears of them."""


def fence_key(task: str) -> TimerKey:
    """The timer that ends the patience with an owner that does not let go."""
    return (FENCE, task)


def grant(turn: Turn, task: str, member: Member) -> OwnershipRow:
    """Give `task` to `member` under the next token."""
    group = turn.group
    herd = group.herd
    before = herd.ownership_of(group.name, task)
    paused = herd.definitions[task].target is Target.PAUSED
    row = msgspec.structs.replace(
        before,
        token=before.token + 1,
        owner=member.id,
        state=TaskState.PAUSED if paused else TaskState.STARTING,
        generation_id=group.generation,
        cause=None,
        since_ms=turn.instant.wall,
        lost_by=None,
    )
    turn.put(row)
    return row


def free(turn: Turn, task: str) -> None:
    """Take `task` from its owner; the token it held is stale from now on."""
    herd = turn.group.herd
    row = herd.ownership[task]
    definition = herd.definitions.get(task)
    state = row.state
    if definition is not None and definition.target is Target.STOPPED:
        state = TaskState.STOPPED
    elif row.state in LIVE_STATES:
        state = TaskState.UNASSIGNED
    settle(turn, msgspec.structs.replace(row, owner=None, state=state))


def settle(turn: Turn, row: OwnershipRow) -> None:
    """Store `row`; a change of state dates from now, and an owner that is gone needs no more patience."""
    herd = turn.group.herd
    before = herd.ownership_of(turn.group.name, row.task)
    if row.owner is None:
        herd.taken_since.pop(row.task, None)
        turn.group.timers.cancel(fence_key(row.task))
    if row.state is before.state:
        turn.put(row)
        return
    turn.put(msgspec.structs.replace(row, since_ms=turn.instant.wall))
    if row.state in TOLD:
        _tell(turn, row, before.owner)


def _tell(turn: Turn, row: OwnershipRow, owner: str | None) -> None:
    turn.tell(
        TOLD[row.state], task=row.task, member=owner, generation_id=turn.group.generation, cause=row.cause
    )


def free_all(turn: Turn, member: Member) -> None:
    """`member` owns nothing any more."""
    for task in turn.group.herd.owned_by(member.id):
        free(turn, task)


def disown_unclaimed(turn: Turn, member: Member) -> None:
    """Free what a rejoining worker no longer says it owns, and is not about to hear that it owns.

    A worker that lost its generation stops its tasks without releasing them and joins as the owner of none
    (PROTOCOL.md §7); without this its tasks would wait for its rebalance timeout.
    """
    group = turn.group
    tasks = group.herd.owned_by(member.id)
    if not tasks or group.protocol_type != PROTOCOL_TYPE:
        return
    told = _told_by(member)
    if told is None:
        return
    claiming = frozenset(told.claiming)
    for task in tasks:
        if task not in claiming and told.owned.get(task) != group.herd.ownership[task].token:
            free(turn, task)


def _told_by(member: Member) -> WorkerMetadata | None:
    for protocol in member.row.protocols:
        try:
            return msgspec.convert(decode_opaque(protocol.metadata), WorkerMetadata)
        except msgspec.ValidationError:
            return None
    return None


def follow_assignment(turn: Turn) -> None:
    """Note which owners the present assignment takes tasks from; each has its rebalance timeout to let go.

    The time runs from the *first* assignment that took the task away (PROTOCOL.md §5).
    """
    group = turn.group
    herd = group.herd
    for member_id, tasks in herd.owned.items():
        patience = group.members[member_id].row.rebalance_timeout_ms
        for task in tasks:
            if herd.assigned.get(task) == member_id:
                herd.taken_since.pop(task, None)
                group.timers.cancel(fence_key(task))
            else:
                since = herd.taken_since.setdefault(task, turn.now)
                group.timers.set(fence_key(task), since + patience)
