"""Taking a group up as it was last stored (protocol §4, Failover)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core import scheduling, sessions
from manager.core.membership import rebalance
from manager.core.stored_rows import GroupRow, OwnershipRow, Unreadable, UnreadableError
from manager.core.tasks import assignments, former_owners, lost_workers, ownership, probation
from protocol.states import GroupState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from manager.core.group import Group
    from manager.core.stored_rows import Row
    from manager.core.turn import Turn


def load(turn: Turn, rows: Iterable[Row]) -> None:
    """Bring the group back from its rows, on a turn of its own.

    Every member gets a full new session: one in Stable notices nothing. A group that was in the middle of
    a rebalance simply rebalances.

    Args:
        turn: the step this is; its group is new.
        rows: all rows of the group, members in the order of their positions.

    Raises:
        UnreadableError: one of them makes no sense, or another that it refers to is gone.
    """
    group = turn.group
    _apply(group, rows)
    group.state = group.header.state
    group.protocol_type = group.header.protocol_type
    if group.header.leader_id in group.members:
        group.leader_id = group.header.leader_id
    turn.note("restored from storage")
    group.tasks.history.since_ms = turn.instant.wall
    group.alarms.loaded_at = turn.now
    for member in group.members.values():
        member.confirmed = True
        sessions.note_contact(turn, member)
        member.concern_revision = group.header.tasks_revision
        sessions.renew(turn, member)
    assignments.on_load(group)
    lost_workers.on_load(turn)
    former_owners.on_load(turn)
    probation.on_load(turn)
    if group.state is GroupState.STABLE:
        ownership.follow_assignment(turn)
    elif group.state is GroupState.PREPARING_REBALANCE:
        rebalance.open_round(turn, "taken up in the middle of a rebalance")
        group.timers.set(rebalance.JOIN_PHASE, turn.now + group.largest_rebalance_timeout())
        rebalance.maybe_complete(turn)
    elif group.generation:
        _retain(turn)


def _retain(turn: Turn) -> None:
    if turn.group.header.idle_since_ms:
        scheduling.resume_retention(turn)
    else:
        scheduling.begin_retention(turn)


def _apply(group: Group, rows: Iterable[Row]) -> None:
    unread = group.header
    for row in rows:
        if isinstance(row, Unreadable):
            raise UnreadableError(row)
        group.apply(row)
    if group.header is unread and (group.members or group.tasks.definitions):
        raise UnreadableError(_without_header(group.name))
    for owned in group.tasks.ownership.values():
        if owned.owner is not None and owned.owner not in group.members:
            raise UnreadableError(_without_owner(owned))


def _without_header(group: str) -> Unreadable:
    """The group's own row is gone, which is stored with any member and any task.

    Without it the generation and the revision would begin again at 0, and the group would be Empty with
    members in it, which nobody could join.
    """
    return Unreadable(
        group=group,
        place=f"table groups, group {group}",
        why="there is no such row, though table members or tasks has rows of the group",
        kind=GroupRow,
        stored_key=(group,),
    )


def _without_owner(row: OwnershipRow) -> Unreadable:
    """The row of the task's owner is gone: nobody would ever release it, and nobody else be given it."""
    return Unreadable(
        group=row.group,
        place=f"table ownership, group {row.group}, task {row.task}",
        why=f"owner: {row.owner!r} has no row in table members",
        kind=OwnershipRow,
        stored_key=row.key,
    )
