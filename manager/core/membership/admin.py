"""What admins do to members and groups (protocol §5, Admin endpoints)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from manager.core import checks, group_states
from manager.core.membership import expiry, rebalance
from manager.core.membership.departure import depart
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.base import Response
from protocol.states import GroupState
from protocol.worker_metadata import PROTOCOL_TYPE

if TYPE_CHECKING:
    from manager.core.commands import DeleteGroup, DrainMember, RemoveMember, StartRebalance
    from manager.core.member import Member, Parked
    from manager.core.turn import Turn


def remove_member(turn: Turn, request: RemoveMember, parked: Parked) -> None:
    """Fence a member from outside."""
    checks.known(turn.group)
    member = checks.member(turn.group, request.member_id, None)
    turn.answer(parked, Response())
    depart(turn, [member], "removed by an admin", reason=f"{member.id} was removed by an admin")


def drain_member(turn: Turn, request: DrainMember, parked: Parked) -> None:
    """Mark a worker, or take the mark off it, and have the leader assign anew; asking twice changes nothing.

    The mark lasts as long as the membership does; the leader is told of it with the members.
    """
    group = turn.group
    checks.known(group)
    member = checks.member(group, request.member_id, None)
    if group.protocol_type != PROTOCOL_TYPE:
        raise RefusedError(
            ErrorCode.INVALID_REQUEST, f"group {group.name} has no tasks to drain: its type is not sparkherd"
        )
    if member.row.draining is not request.draining:
        _mark(turn, member, draining=request.draining)
        verb = "is drained" if request.draining else "takes tasks again"
        rebalance.start(turn, f"{member.id} {verb}")
    turn.answer(parked, Response())


def _mark(turn: Turn, member: Member, *, draining: bool) -> None:
    member.row = msgspec.structs.replace(member.row, draining=draining)
    if member.stored is not None:
        turn.put(member.row)


def start_rebalance(turn: Turn, request: StartRebalance, parked: Parked) -> None:
    """Have everybody join anew; an Empty group has nobody to."""
    group = turn.group
    checks.known(group)
    if group.state is not GroupState.EMPTY:
        rebalance.start(turn, request.reason or "asked for by an admin")
    turn.answer(parked, Response())


def delete_group(turn: Turn, _: DeleteGroup, parked: Parked) -> None:
    """Forget an Empty group with all it keeps; only its tokens go on counting.

    It is Dead from now on, and gone once that is durable.
    """
    group = turn.group
    checks.known(group)
    if group.state is not GroupState.EMPTY:
        raise RefusedError(ErrorCode.NON_EMPTY_GROUP, f"group {group.name} has members")
    for task in group.transfers.moving:
        checks.not_moving(group, task)
    group_states.move(turn, group_states.BURY)
    expiry.forget_group(turn, "deleted by an admin")
    turn.answer(parked, Response())
