"""Changing hands: who holds a task's token, and what its state becomes (protocol §5, Ownership)."""

from __future__ import annotations

from itertools import compress, repeat
from operator import ne
from typing import TYPE_CHECKING

import msgspec

from manager.core.restart_counts import and_one
from manager.core.task_registry import LIVE_STATES
from manager.core.tasks import former_owners
from protocol.fencing import next_number
from protocol.messages.events import EventType
from protocol.states import Target, TaskState
from protocol.worker_metadata import PROTOCOL_TYPE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from manager.core.group import TimerKey
    from manager.core.member import Member
    from manager.core.stored_rows import OwnerLease, OwnershipRow
    from manager.core.task_registry import TaskRegistry
    from manager.core.turn import Turn

FENCE = "fence"
AT_FIRST = {
    Target.RUNNING: TaskState.STARTING,
    Target.PAUSED: TaskState.PAUSED,
    Target.STOPPED: TaskState.STOPPED,
}
"""The state of a task that was granted a moment ago."""

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
    registry = group.tasks
    before = registry.ownership_of(group.name, task)
    row = msgspec.structs.replace(
        before,
        token=next_number(before.token, turn.instant.wall),
        owner=member.id,
        state=AT_FIRST[registry.definitions[task].target],
        generation_id=group.generation,
        cause=None,
        since_ms=turn.instant.wall,
        lost_by=None,
        lease=None,
    )
    group.timers.cancel(former_owners.key(task))
    turn.put(row)
    if registry.is_to_stop(task):
        _begin_patience(turn, task, member)
    return row


def end_patience(turn: Turn, task: str) -> None:
    """The owner of `task` need not let go of it, as far as is known; another assignment may begin it anew."""
    turn.group.tasks.taken_since.pop(task, None)
    turn.group.timers.cancel(fence_key(task))


def free(turn: Turn, task: str) -> None:
    """Its owner runs `task` no more, as it says itself; the token it held is stale from now on."""
    _disown(turn, turn.group.tasks.ownership[task], lease=None)


def take_away(turn: Turn, task: str, since: int) -> None:
    """Take `task` from its owner, which may go on running it; the token it held is stale from now on.

    Args:
        turn: the step this is part of.
        task: one that has an owner.
        since: when that has begun its last lease on itself at the latest; now, if it stays a member.
    """
    group = turn.group
    row = group.tasks.ownership[task]
    lease = former_owners.begin(turn, row, group.members[str(row.owner)], since)
    _disown(turn, msgspec.structs.replace(row, unsettled=True), lease)


def _disown(turn: Turn, row: OwnershipRow, lease: OwnerLease | None) -> None:
    registry, state = turn.group.tasks, row.state
    if state in LIVE_STATES or state is TaskState.STOPPED or registry.is_to_stop(row.task):
        state = registry.state_at_rest(row.task)
    store_state(turn, msgspec.structs.replace(row, owner=None, state=state, lease=lease))


def store_state(turn: Turn, row: OwnershipRow) -> None:
    """Store `row`; a change of state dates from now, and an owner that is gone needs no more patience."""
    registry = turn.group.tasks
    before = registry.ownership_of(turn.group.name, row.task)
    row = msgspec.structs.replace(row, reached=registry.reached_by(row.task))
    if row.owner is None:
        end_patience(turn, row.task)
        registry.probation.pop(row.task, None)
    if row.state is before.state:
        turn.put(row)
        return
    if row.state is TaskState.RESTARTING:
        row = msgspec.structs.replace(row, restarts=and_one(before.restarts or b"", turn.instant.wall))
    turn.update(row, since_ms=turn.instant.wall)
    if row.state in TOLD:
        _tell(turn, row, before.owner)


def _tell(turn: Turn, row: OwnershipRow, owner: str | None) -> None:
    turn.tell(
        TOLD[row.state], task=row.task, member=owner, generation_id=turn.group.generation, cause=row.cause
    )


def free_all(turn: Turn, member: Member) -> None:
    """`member` goes, and runs nothing any more, as it says itself."""
    for task in turn.group.tasks.owned_by(member.id):
        free(turn, task)


def take_all(turn: Turn, member: Member) -> None:
    """`member` goes, and owns nothing any more; its queries may go on running."""
    for task in turn.group.tasks.owned_by(member.id):
        take_away(turn, task, member.heard_at)


def disown_unclaimed(turn: Turn, member: Member) -> None:
    """Take away what a rejoining worker no longer says it owns, and is not about to hear that it owns.

    A worker that lost its generation stops its tasks without releasing them and joins as the owner of none
    (protocol §7); without this its tasks would wait for its rebalance timeout. It may be at it still.
    """
    group = turn.group
    tasks = group.tasks.owned_by(member.id)
    if not tasks or group.protocol_type != PROTOCOL_TYPE:
        return
    metadata = member.worker_metadata()
    if metadata is None or metadata.owned == group.tasks.owned[member.id]:
        return
    claiming = frozenset(metadata.claiming)
    for task in tasks:
        if task not in claiming and metadata.owned.get(task) != group.tasks.ownership[task].token:
            take_away(turn, task, turn.now)


def follow_assignment(turn: Turn) -> None:
    """Note which owners the present assignment takes tasks from; each has its rebalance timeout to let go.

    The time runs from the *first* assignment that took the task away (protocol §5). One that is to stop is
    let go of by whoever it is assigned to as well: it is given away to be settled, not to be kept.
    """
    group = turn.group
    registry = group.tasks
    for task in [task for task in registry.taken_since if _may_keep(registry, task)]:
        end_patience(turn, task)
    for member_id, tasks in registry.owned.items():
        for task in _taken_from(registry, member_id, tasks):
            _begin_patience(turn, task, group.members[member_id])


def _may_keep(registry: TaskRegistry, task: str) -> bool:
    owner = registry.owner_of(task)
    return owner is not None and registry.assigned.get(task) == owner and not registry.is_to_stop(task)


def _taken_from(registry: TaskRegistry, member_id: str, tasks: Mapping[str, int]) -> list[str]:
    """What an owner is to let go of. Nearly all are kept by whom they had, so little is done for each."""
    assigned = registry.assigned
    given_away = [*compress(tasks, map(ne, map(assigned.get, tasks), repeat(member_id)))]
    return given_away + [task for task in tasks.keys() & registry.to_stop if assigned.get(task) == member_id]


def _begin_patience(turn: Turn, task: str, member: Member) -> None:
    """From now on if it has not begun yet; a rebalance does not begin it anew."""
    group = turn.group
    since = group.tasks.taken_since.setdefault(task, turn.now)
    group.timers.set(fence_key(task), since + group.patience_with(member))
