"""What closed connections lead to (protocol §4, Broken connections)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core import connections, member_ids, purgatory, sessions
from manager.core.membership import rebalance
from manager.core.membership.departure import depart
from manager.core.tasks import errands

if TYPE_CHECKING:
    from manager.core.member import Connection, Member, Parked
    from manager.core.turn import Turn


def connection_closed(turn: Turn, connection: Connection, *, by_peer: bool) -> None:
    """A connection closed whose last request was a member's; `by_peer` unless the manager has closed it.

    A static member is spared: it may come back on another connection, in its own time. A dynamic one that
    was never confirmed is withdrawn and its id expected again; a confirmed one gets the grace period, unless
    it has another connection.
    """
    member = connection.member
    if member is None:
        errands.asker_gone(turn, connection)
        return
    if member.is_static:
        return
    parked = connection.parked
    if parked is not None and not member.confirmed:
        _withdraw(turn, member)
        return
    if _ends_what_was_in_use(turn, member, connection, parked) and by_peer:
        sessions.shorten(turn, member)
    else:
        sessions.resume(turn, member)


def _ends_what_was_in_use(turn: Turn, member: Member, connection: Connection, parked: Parked | None) -> bool:
    """Whether `connection` was the last one that `member` had in use; what waits there is given up."""
    if parked is None and not connections.was_in_use(turn.now, member, connection):
        member.kept.discard(connection)
        return False
    member.closed_at = turn.now
    if parked is not None:
        purgatory.give_up(turn.group, member, parked)
    return connections.lose(turn.group, member, connection)


def _withdraw(turn: Turn, member: Member) -> None:
    turn.group.joining.pop(member.id).settle()
    depart(turn, [member], "its connection closed before it was confirmed")
    member_ids.expect(turn, member.id, member.row.session_timeout_ms)
    rebalance.maybe_complete(turn)
