"""Draining a worker: its tasks move away, new ones keep off it (protocol §5, Admin endpoints)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from manager.core import checks
from manager.core.membership import rebalance
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.base import Response
from protocol.worker_metadata import PROTOCOL_TYPE

if TYPE_CHECKING:
    from manager.core.commands import DrainMember
    from manager.core.member import Member
    from manager.core.purgatory import Parked
    from manager.core.turn import Turn


def drain(turn: Turn, request: DrainMember, parked: Parked) -> None:
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
