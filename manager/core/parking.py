"""Parking a join: the request waits until the join phase completes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core import connections, sessions, waiting
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from manager.core.member import Member
    from manager.core.parked import Parked
    from manager.core.turn import Turn


def park_join(turn: Turn, member: Member, parked: Parked) -> None:
    """Let `parked` wait for the generation; a retry takes the place over."""
    waiting.refuse_join(turn, member, ErrorCode.REBALANCE_IN_PROGRESS)
    connections.carry(turn.group, member, parked.connection)
    sessions.arrived(turn, member)
    turn.group.joining[member.id] = parked
    parked.wait()
    sessions.suspend(turn, member)
